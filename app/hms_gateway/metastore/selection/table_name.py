"""The name of a table as the caller gave it, and the table of that name."""

from dataclasses import dataclass, field

import msgspec

from hms_gateway.metastore.checks.errors import required, table_not_found
from hms_gateway.metastore.ports.store import Snapshot, StoredTable
from hms_gateway.metastore.vocabulary.names import display_name, normalize
from hms_gateway.structs import NoSuchObjectException


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the caller named it; error texts repeat the caller's spelling.

    `shown_catalog` is the catalog that answers about its partitions name, None for callers that know of none.
    """

    db_name: str | None
    tbl_name: str | None
    shown_catalog: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return display_name(self.db_name, self.tbl_name)

    @property
    def foreseen(self) -> list[tuple[str, str]]:
        """What `load` will ask for; nothing for a name that cannot be one."""
        return [(normalize(self.db_name), normalize(self.tbl_name))] if self.db_name and self.tbl_name else []

    def load(self, snapshot: Snapshot) -> StoredTable:
        """The table. Raises NoSuchObjectException `db.t table not found`, MetaException when a name was left out."""
        db_name = normalize(required(self.db_name, "database name"))
        tbl_name = normalize(required(self.tbl_name, "table name"))
        # No table has such a name, and not every database can be asked for it.
        is_possible = "\0" not in db_name and "\0" not in tbl_name
        table = snapshot.table(db_name, tbl_name) if is_possible else None
        if table is None:
            raise table_not_found(self.db_name, self.tbl_name)
        return table

    def find(self, snapshot: Snapshot) -> StoredTable | None:
        """The table, None when it does not exist. Raises MetaException as `load`."""
        try:
            return self.load(snapshot)
        except NoSuchObjectException:
            return None

    def load_shown(self, snapshot: Snapshot) -> StoredTable:
        """The table as its partitions are to show it. Raises as `load`."""
        return self.shown(self.load(snapshot))

    def shown(self, table: StoredTable) -> StoredTable:
        """A found table as its partitions and statistics are to show it."""
        if self.shown_catalog is None:
            return table
        return msgspec.structs.replace(table, table=msgspec.structs.replace(table.table, catName=self.shown_catalog))
