"""The table whose partitions a call is about, and which of them it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from app.limits import Limits
from app.metastore.errors import required, table_not_found
from app.metastore.filters import BoundFilter, FilterError, bind, parse_filter
from app.metastore.names import display_name, normalize
from app.metastore.partition_names import PartitionNameError, make_name, partial_spec
from app.metastore.ports import Selection, Snapshot, StoredTable
from app.structs import EncodedList, MetaException, Partition
from app.structs.encoded import EncodedTexts


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

    def find(self, snapshot: Snapshot) -> StoredTable | None:
        """The table, None when there is none. Raises MetaException when a name was left out."""
        db_name = normalize(required(self.db_name, "database name"))
        tbl_name = normalize(required(self.tbl_name, "table name"))
        # No table has such a name, and not every database can be asked for it.
        if "\0" in db_name or "\0" in tbl_name:
            return None
        return snapshot.table(db_name, tbl_name)

    def load(self, snapshot: Snapshot) -> StoredTable:
        """The table. Raises NoSuchObjectException `db.t table not found`, and MetaException as `find`."""
        table = self.find(snapshot)
        if table is None:
            raise table_not_found(self.db_name, self.tbl_name)
        return table

    def load_shown(self, snapshot: Snapshot) -> StoredTable:
        """The table as its partitions are to show it. Raises as `load`."""
        table = self.load(snapshot)
        if self.shown_catalog is None:
            return table
        return replace(table, table=msgspec.structs.replace(table.table, catName=self.shown_catalog))


def values_name(table: StoredTable, values: Sequence[str] | None) -> str:
    """The name of the partition with these values. Raises MetaException for a wrong count (semantics §2.8)."""
    given = required(values, "partition values")
    try:
        return make_name(table.key_names, [required(value, "partition value") for value in given])
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def matching_partial(table: StoredTable, values: Sequence[str] | None, limit: int | None = None) -> Selection:
    """The partitions whose leading values are these, `""` meaning any (semantics §4.6). Raises MetaException."""
    given = required(values, "partition values")
    try:
        return Selection(partial_values=partial_spec(len(table.key_names), given), limit=limit)
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def bound_filter(table: StoredTable, text: str | None, limits: Limits) -> BoundFilter | None:
    """The filter for this table's keys, None for "every partition". Raises MetaException (semantics §4.1, §4.2)."""
    keys = [(key.name or "", key.type or "") for key in table.table.partitionKeys or []]
    try:
        parsed = parse_filter(text, limits)
        return None if parsed is None else bind(parsed, keys)
    except FilterError as error:
        raise MetaException(str(error)) from error


def matching_filter(table: StoredTable, text: str | None, limits: Limits) -> Selection:
    """The partitions a filter selects; no filter selects all. Raises MetaException."""
    return Selection(filter=bound_filter(table, text, limits))


def java_list(values: Sequence[str]) -> str:
    """A list as Java prints it, which is how Hive's texts show partition values."""
    return f"[{', '.join(values)}]"


def partitions_of(found: Sequence[Partition] | EncodedList) -> list[Partition]:
    """All of a list at once, also of one that would be read while it is sent."""
    if not isinstance(found, EncodedList):
        return list(found)
    return [one for chunk in found.struct_chunks() for one in chunk if isinstance(one, Partition)]


def names_of(found: Sequence[str] | EncodedTexts) -> list[str]:
    """All of a list of names at once, also of one that would be read while it is sent."""
    return [name for chunk in found.text_chunks() for name in chunk] if isinstance(found, EncodedTexts) else list(found)
