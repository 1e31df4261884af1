"""Methods for people who look for something: names by a part of them, statements, the spread of partitions."""

from collections.abc import Callable
from typing import Final

from hms_gateway.catalog.arguments import database_name, table_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import filter_of_condition, matching_filter
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.vocabulary.create_text import create_table_text
from hms_gateway.metastore.vocabulary.names import normalize, trim
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import DatabaseCounts, FoundName, IcebergHistory, MetaException, PartitionGroup, Table
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits
from hms_gateway.runtime.shares import Holder

NAMES_MAX: Final = 1_000
PARTITION_NAMES_MAX: Final = 10_000
GROUPS_MAX: Final = 20_000
ENTRIES_MAX: Final = 10_000
_KEYS_MAX: Final = 2


class People:
    def __init__(
        self, store: Store, history_of: Callable[[Holder, Table, int], IcebergHistory], limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """`history_of` reads the metadata file of an Iceberg table for a holder (`hms_gateway.iceberg.history`)."""
        self._store = store
        self._history_of = history_of
        self._limits = limits

    def search_names(self, call: Call, text: str, max_names: int, details: bool) -> list[FoundName]:
        wanted = trim(required(text, "text")).lower()
        limit = min(_within(max_names, "max_names", f"1 to {NAMES_MAX}"), NAMES_MAX)
        db_text, dot, name = wanted.rpartition(".")
        return self._store.read(
            lambda snapshot: snapshot.search_names(db_text if dot else None, name, limit, bool(details))
        )

    def count_objects(self, call: Call, db_name: str, details: bool) -> list[DatabaseCounts]:
        name = normalize(database_name(db_name) or "") or None
        return self._store.read(lambda snapshot: snapshot.count_objects(name, bool(details)))

    def get_create_text(self, call: Call, db_name: str, tbl_name: str) -> str:
        table_name = table_named(db_name, tbl_name)

        def work(snapshot: Snapshot) -> str:
            table = table_name.load(snapshot).table
            database = snapshot.database(table.dbName or "")
            return create_table_text(table, None if database is None else database.database.locationUri)

        return self._store.read(work)

    def list_partition_names(
        self, call: Call, db_name: str, tbl_name: str, filter: str, after: str, descending: bool, max_names: int
    ) -> list[str]:
        table_name = table_named(db_name, tbl_name)
        limit = _within(max_names, "max_names", f"1 to {PARTITION_NAMES_MAX}", PARTITION_NAMES_MAX)

        def work(snapshot: Snapshot) -> list[str]:
            table = table_name.load(snapshot)
            selection = matching_filter(table, filter, self._limits)
            return snapshot.partition_names_from(
                table, selection, after or "", descending=bool(descending), limit=limit
            )

        return self._store.read(work)

    def count_partition_groups(
        self, call: Call, db_name: str, tbl_name: str, filter: str, keys: int, max_groups: int
    ) -> list[PartitionGroup]:
        table_name = table_named(db_name, tbl_name)
        key_count = _within(keys, "keys", f"1 or {_KEYS_MAX}", _KEYS_MAX)
        limit = _within(max_groups, "max_groups", f"1 to {GROUPS_MAX}", GROUPS_MAX)

        def work(snapshot: Snapshot) -> list[PartitionGroup]:
            table = table_name.load(snapshot)
            selection = matching_filter(table, filter, self._limits)
            return snapshot.partition_groups(table, selection, key_count, limit)

        return self._store.read(work)

    def translate_condition(self, call: Call, db_name: str, tbl_name: str, condition: str) -> str:
        table_name = table_named(db_name, tbl_name)
        text = required(condition, "condition")
        return filter_of_condition(self._store.read(table_name.load), text)

    def get_iceberg_history(self, call: Call, db_name: str, tbl_name: str, max_entries: int) -> IcebergHistory:
        table_name = table_named(db_name, tbl_name)
        most = _within(max_entries, "max_entries", f"1 to {ENTRIES_MAX}", ENTRIES_MAX)
        return self._history_of(call.holder, self._store.read(table_name.load).table, most)


def _within(given: int | None, name: str, range_text: str, most: int | None = None) -> int:
    """The number, 0 where it is left out. Raises MetaException outside of the range, which begins with 1."""
    number = given or 0
    if number < 1 or (most is not None and number > most):
        raise MetaException(f"{name} is {number}; ask for {range_text}")
    return number
