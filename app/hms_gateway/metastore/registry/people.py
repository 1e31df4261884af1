"""What people ask who look for something in the catalog: names by a part of them, statements, how partitions spread."""

from typing import Final

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.selection.partitions import filter_of_condition, matching_filter
from hms_gateway.metastore.selection.table_name import TableName
from hms_gateway.metastore.vocabulary.create_text import create_table_text
from hms_gateway.metastore.vocabulary.names import normalize, trim
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits
from hms_gateway.structs import DatabaseCounts, FoundName, MetaException, PartitionGroup

NAMES_MAX: Final = 1_000
PARTITION_NAMES_MAX: Final = 10_000
GROUPS_MAX: Final = 20_000
_KEYS_MAX: Final = 2


class PeopleService:
    def __init__(self, store: Store, limits: Limits = DEFAULT_LIMITS) -> None:
        self._store = store
        self._limits = limits

    def search_names(self, text: str | None, max_names: int, *, details: bool = False) -> list[FoundName]:
        """Raises MetaException."""
        wanted = trim(required(text, "text")).lower()
        if max_names < 1:
            raise MetaException(f"max_names is {max_names}; ask for 1 to {NAMES_MAX}")
        db_text, dot, name = wanted.rpartition(".")
        limit = min(max_names, NAMES_MAX)
        return self._store.read(lambda snapshot: snapshot.search_names(db_text if dot else None, name, limit, details))

    def count_objects(self, db_name: str | None, *, details: bool) -> list[DatabaseCounts]:
        name = normalize(db_name or "") or None
        return self._store.read(lambda snapshot: snapshot.count_objects(name, details))

    def partition_names(
        self, table_name: TableName, filter_text: str | None, after: str | None, *, descending: bool, max_names: int
    ) -> list[str]:
        """Raises NoSuchObjectException, MetaException."""
        if not 1 <= max_names <= PARTITION_NAMES_MAX:
            raise MetaException(f"max_names is {max_names}; ask for 1 to {PARTITION_NAMES_MAX}")

        def work(snapshot: Snapshot) -> list[str]:
            table = table_name.load(snapshot)
            selection = matching_filter(table, filter_text, self._limits)
            return snapshot.partition_names_from(table, selection, after or "", descending=descending, limit=max_names)

        return self._store.read(work)

    def create_text(self, table_name: TableName) -> str:
        """Raises NoSuchObjectException, MetaException."""

        def work(snapshot: Snapshot) -> str:
            table = table_name.load(snapshot).table
            database = snapshot.database(table.dbName or "")
            return create_table_text(table, None if database is None else database.database.locationUri)

        return self._store.read(work)

    def partition_groups(
        self, table_name: TableName, filter_text: str | None, keys: int, max_groups: int
    ) -> list[PartitionGroup]:
        """Raises NoSuchObjectException, MetaException."""
        if not 1 <= keys <= _KEYS_MAX:
            raise MetaException(f"keys is {keys}; ask for 1 or {_KEYS_MAX}")
        if not 1 <= max_groups <= GROUPS_MAX:
            raise MetaException(f"max_groups is {max_groups}; ask for 1 to {GROUPS_MAX}")

        def work(snapshot: Snapshot) -> list[PartitionGroup]:
            table = table_name.load(snapshot)
            selection = matching_filter(table, filter_text, self._limits)
            return snapshot.partition_groups(table, selection, keys, max_groups)

        return self._store.read(work)

    def translated_condition(self, table_name: TableName, condition: str | None) -> str:
        """Raises NoSuchObjectException, MetaException."""
        text = required(condition, "condition")
        table = self._store.read(table_name.load)
        return filter_of_condition(table, text)
