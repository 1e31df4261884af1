"""What a query reads, cut into parts that tasks read on their own: by tables, by ranges of names, by event ids."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_values
from hms_gateway.pipeline.connection import Client
from hms_gateway.pipeline.source.columns import key_type, key_value
from hms_gateway.pipeline.source.conditions import Condition, exact_values, filter_text, keeps
from hms_gateway.rpc.structs import (
    FieldSchema,
    MetaException,
    NotificationEventRequest,
    PartitionValuesRequest,
    Table,
)
from hms_gateway.rpc.wire import ApplicationError

TABLES_PER_TASK: Final = 500
PARTITIONS_PER_TASK: Final = 20_000
EVENTS_PER_TASK: Final = 10_000


class Everything(InputPartition):  # type: ignore[misc]
    """All of an object that comes in one reply."""

    def __init__(self) -> None:
        super().__init__(None)


@dataclass(frozen=True)
class PlannedTables(InputPartition):  # type: ignore[misc]
    """Some tables of a database, whole."""

    database: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class PlannedNames(InputPartition):  # type: ignore[misc]
    """A range of partitions of a table. The names stay as they are when the task is repeated; packed, since the
    driver holds all of them."""

    database: str
    table: str
    packed: bytes

    @classmethod
    def of(cls, database: str, table: str, names: Sequence[str]) -> "PlannedNames":
        return cls(database, table, zlib.compress("\n".join(names).encode(), 1))

    def names(self) -> list[str]:
        """A line break in a value is escaped in the name."""
        return zlib.decompress(self.packed).decode().split("\n")


@dataclass(frozen=True)
class Events(InputPartition):  # type: ignore[misc]
    """The events behind `after`, up to `last`."""

    after: int
    last: int


@dataclass(frozen=True)
class Scope:
    """Where to look: the options `database` and `table`, what the filters say, and how much a task reads."""

    database: str | None
    table: str | None
    conditions: tuple[Condition, ...] = ()
    per_task: int | None = None


def cut(items: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(items[at : at + size]) for at in range(0, len(items), size))


def databases(client: Client, scope: Scope) -> list[str]:
    """The names of the databases to look at."""
    names = client.call("get_all_databases")
    wanted = [name for name in names if scope.database in (None, name)]
    return [name for name in wanted if keeps(scope.conditions, ("database",), name)]


def tables(client: Client, scope: Scope) -> list[PlannedTables]:
    """The tables to look at; those that conditions name are not looked up before they are read."""
    found = []
    for database in databases(client, scope):
        names = _table_names(client, database, scope)
        found += [PlannedTables(database, part) for part in cut(names, scope.per_task or TABLES_PER_TASK)]
    return found


def _table_names(client: Client, database: str, scope: Scope) -> list[str]:
    if scope.table is not None:
        names = [scope.table]
    elif (exact := exact_values(scope.conditions, ("table",))) is not None:
        # Names are in lower case; the metastore would find them by others too.
        return [name for name in exact if name and name == name.lower()]
    else:
        names = client.call("get_all_tables", database)
    return [name for name in names if keeps(scope.conditions, ("table",), name)]


def partitions(client: Client, scope: Scope) -> list[InputPartition]:
    """By ranges of names for one table, by tables otherwise."""
    if scope.database is None or scope.table is None:
        return list(tables(client, scope))
    if not (_table_names(client, scope.database, scope) and databases(client, scope)):
        return []
    table = client.call("get_table", scope.database, scope.table)
    names = partition_names(client, table, scope.conditions)
    size = scope.per_task or PARTITIONS_PER_TASK
    return [PlannedNames.of(scope.database, scope.table, part) for part in cut(names, size)]


def partition_names(client: Client, table: Table, conditions: Sequence[Condition]) -> list[str]:
    """Names of the partitions that satisfy the conditions on `key`."""
    on_keys = [condition for condition in conditions if condition.path[0] == "key"]
    keys = table.partitionKeys or []
    text = filter_text(on_keys, {key.name or "": key.type or "" for key in keys})
    names = _selected(client, table, keys, text) if text else None
    if names is None:
        names = client.call("get_partition_names", table.dbName, table.tableName, -1)
    return [name for name in names if _satisfies(name, keys, on_keys)] if on_keys else names


def _selected(client: Client, table: Table, keys: list[FieldSchema], text: str) -> list[str] | None:
    """By the metastore's own filter; None where it refuses it, does not know the method, or may have escaped values.

    Hive 2.3.10 escapes values only without a filter, others always: what has a `%` can be read both ways.
    """
    request = PartitionValuesRequest(
        dbName=table.dbName, tblName=table.tableName, partitionKeys=keys, applyDistinct=False, filter=text
    )
    try:
        rows = client.call("get_partition_values", request).partitionValues
    except (MetaException, ApplicationError):
        return None
    if any("%" in value for row in rows for value in row.row):
        return None
    key_names = [key.name or "" for key in keys]
    return [make_name(key_names, row.row) for row in rows]


def _satisfies(name: str, keys: Sequence[FieldSchema], conditions: Sequence[Condition]) -> bool:
    values = name_to_values(name)
    typed = {key.name: key_value(key_type(key.type or ""), value) for key, value in zip(keys, values, strict=True)}
    return all(condition.holds(typed[condition.path[1]]) for condition in conditions)


def events(client: Client, scope: Scope) -> list[InputPartition]:
    """All that the metastore still has, as far as conditions on `id` reach."""
    after, last = earliest(client), latest(client)
    for condition in scope.conditions:
        after, last = _narrowed(after, last, condition)
    return list(event_ranges(after, last, scope.per_task or EVENTS_PER_TASK))


def _narrowed(after: int, last: int, condition: Condition) -> tuple[int, int]:
    if condition.path != ("id",) or not isinstance(condition.value, int):
        return after, last
    value = condition.value
    if condition.operator in (">", ">=", "="):
        after = max(after, value if condition.operator == ">" else value - 1)
    if condition.operator in ("<", "<=", "="):
        last = min(last, value - 1 if condition.operator == "<" else value)
    return after, last


def event_ranges(after: int, last: int, size: int) -> Iterator[Events]:
    return (Events(begin, min(begin + size, last)) for begin in range(after, last, size))


def latest(client: Client) -> int:
    """The id of the newest event."""
    number: int = client.call("get_current_notificationEventId").eventId
    return number


def earliest(client: Client) -> int:
    """The id before that of the oldest event that is kept."""
    found: Any = client.call("get_next_notification", NotificationEventRequest(lastEvent=0, maxEvents=1)).events
    return found[0].eventId - 1 if found else latest(client)
