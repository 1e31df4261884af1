"""Filters as conditions, parts of an object that tasks read on their own, and the calls that read one."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_values
from hms_gateway.pipeline.catalog import CatalogReader, cut, earliest, events, latest, named_tables, partition_values
from hms_gateway.pipeline.connection import Client
from hms_gateway.pipeline.source.objects import (
    BATCH_ROWS,
    NAME_COLUMNS,
    ColumnRow,
    PartitionRow,
    StatisticsRow,
    key_type,
    key_value,
    partition_fields,
)
from hms_gateway.rpc.structs import (
    FieldSchema,
    GetPartitionsByNamesRequest,
    MetaException,
    Partition,
    ShowLocksRequest,
    Table,
)
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType
from hms_gateway.rpc.wire.tjson_shapes import Fields

# Spark's filters as conditions: evaluated here, exactly as Spark would, and as the metastore's filter text.
#
# The text may select more than the condition, never less; what it selects is compared again. So a metastore that
# compares otherwise, or refuses the text, changes the time that a query takes and not its result.


Path = tuple[str, ...]

_COMPARISONS: Final[dict[type[Any], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_EVALUATED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "!=": ne,
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
    "in": lambda value, wanted: value in wanted,
    "not in": lambda value, wanted: None not in wanted and value not in wanted,
    "starts": lambda value, wanted: value.startswith(wanted),
    "is not null": lambda value, wanted: True,
}
_VALUES_MAX: Final = 500
_PLAIN_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_WORDS: Final = frozenset(("and", "or", "not", "in", "between", "like", "struct", "const", "date", "timestamp"))
_PLAIN_TEXT: Final = re.compile("[A-Za-z0-9_-]+")
TEXT_TYPES: Final = ("string", "varchar")
_NUMBER_TYPES: Final = ("tinyint", "smallint", "int", "bigint")


class Condition(NamedTuple):
    """One filter. `value` is None for the two about null, a tuple for `in` and `not in`."""

    path: Path
    operator: str
    value: Any = None

    def holds(self, value: Any) -> bool:
        """True if SQL's WHERE keeps a row with this value."""
        if self.operator == "is null" or value is None:
            return self.operator == "is null" and value is None
        if self.value is None and self.operator != "is not null":
            return False
        return _EVALUATED[self.operator](value, self.value)


def condition_of(given: Filter) -> Condition | None:
    """None for a filter that is left to Spark."""
    if type(given) in _COMPARISONS:
        return Condition(given.attribute, _COMPARISONS[type(given)], given.value)
    if isinstance(given, In):
        return Condition(given.attribute, "in", tuple(given.value))
    if isinstance(given, StringStartsWith):
        return Condition(given.attribute, "starts", given.value)
    if isinstance(given, IsNull):
        return Condition(given.attribute, "is null")
    if isinstance(given, IsNotNull):
        return Condition(given.attribute, "is not null")
    return _negated(given.child) if isinstance(given, Not) else None


def _negated(child: Filter) -> Condition | None:
    if isinstance(child, EqualTo):
        return Condition(child.attribute, "!=", child.value)
    if isinstance(child, In):
        return Condition(child.attribute, "not in", tuple(child.value))
    return None


def keeps(conditions: Iterable[Condition], path: Path, value: Any) -> bool:
    """True if every condition about `path` holds for the value."""
    return all(condition.holds(value) for condition in conditions if condition.path == path)


def exact_values(conditions: Iterable[Condition], path: Path) -> list[str] | None:
    """The texts that alone can satisfy the conditions about `path`; None when they do not name any."""
    for condition in conditions:
        if condition.path == path and condition.operator in ("=", "in"):
            wanted = condition.value if condition.operator == "in" else (condition.value,)
            return sorted({text for text in wanted if isinstance(text, str) and keeps(conditions, path, text)})
    return None


def filter_text(conditions: Iterable[Condition], key_types: Mapping[str, str]) -> str:
    """The conditions on partition keys, as far as a metastore's filter can say them; "" for nothing."""
    parts = (_part(condition, key_types.get(condition.path[-1], "")) for condition in conditions)
    return " and ".join(part for part in parts if part)


def _part(condition: Condition, key_type: str) -> str:
    name, base = condition.path[-1], key_type.partition("(")[0]
    key = name if _PLAIN_NAME.fullmatch(name) and name not in _WORDS else f"`{name}`"
    if "`" in name or condition.operator in ("not in", "is null", "is not null"):
        return ""
    if condition.operator == "starts":
        is_plain = base in TEXT_TYPES and _PLAIN_TEXT.fullmatch(condition.value)
        return f"{key} like '{condition.value}.*'" if is_plain else ""
    if condition.operator != "in":
        text = _literal(condition.value, base)
        return f"{key} {condition.operator} {text}" if text else ""
    texts = [_literal(value, base) for value in condition.value if value is not None]
    if not texts or not all(texts) or len(texts) > _VALUES_MAX:
        return ""
    return f"({_alternatives(key, texts)})"


def _alternatives(key: str, texts: Sequence[str]) -> str:
    """Every metastore reads OR; IN came late."""
    return " or ".join(f"{key} = {text}" for text in texts)


def _literal(value: Any, base: str) -> str:
    """ "" for what the filter's grammar cannot write."""
    if base in TEXT_TYPES and isinstance(value, str) and value and "\\" not in value:
        quote = next((quote for quote in "'\"" if quote not in value), "")
        return f"{quote}{value}{quote}" if quote else ""
    if base in _NUMBER_TYPES and isinstance(value, int):
        return str(int(value))
    return value.isoformat() if base == "date" and type(value) is date else ""


# Parts of a query that tasks read on their own: by tables, by ranges of names, by event ids.


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
    """The scope of a query: options `database` and `table`, conditions of filters, and the size of a task."""

    database: str | None
    table: str | None
    conditions: tuple[Condition, ...] = ()
    per_task: int | None = None


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
    try:
        rows = partition_values(client, table, text)
    except (MetaException, ApplicationError):
        return None
    if any("%" in value for row in rows for value in row):
        return None
    key_names = [key.name or "" for key in keys]
    return [make_name(key_names, row) for row in rows]


def _satisfies(name: str, keys: Sequence[FieldSchema], conditions: Sequence[Condition]) -> bool:
    values = name_to_values(name)
    typed = {key.name: key_value(key_type(key.type or ""), value) for key, value in zip(keys, values, strict=True)}
    return all(condition.holds(typed[condition.path[1]]) for condition in conditions)


def event_parts(client: Client, scope: Scope) -> list[InputPartition]:
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


# Reads what a task was given: calls of bounded size, so that a task holds one reply at a time.


_TABLES_A_CALL: Final = 100
_STATISTICS_A_CALL: Final = 200


def rows(client: Client, object_name: str, part: InputPartition, wanted: Iterable[str] | None) -> Iterator[Any]:
    """The rows in `part` of an object; `wanted` are the columns that are read, without them objects are whole.

    Raises what the client raises.
    """
    columns = None if wanted is None else frozenset(wanted)
    if isinstance(part, Events):
        return events(client, part.after, part.last)
    if isinstance(part, PlannedNames):
        return _of_names(client, part, columns)
    if isinstance(part, PlannedTables):
        return _of_tables(client, object_name, part, columns)
    return iter(_WHOLE[object_name](client))


def _of_tables(client: Client, object_name: str, part: PlannedTables, wanted: frozenset[str] | None) -> Iterator[Any]:
    if object_name == "databases":
        for name in part.names:
            yield client.call("get_database", name)
        return
    for names in cut(part.names, _TABLES_A_CALL):
        for table in named_tables(client, part.database, names):
            if object_name == "tables":
                yield table
            elif object_name == "columns":
                yield from column_rows(table)
            elif object_name == "partitions":
                yield from _partitions(client, table, wanted)
            else:
                yield from _statistics(client, table)


def column_rows(table: Table) -> Iterator[ColumnRow]:
    fields = table.sd.cols if table.sd and table.sd.cols else []
    keys = table.partitionKeys or []
    for position, field in enumerate([*fields, *keys]):
        yield ColumnRow(table, field, position, position >= len(fields))


def _partitions(client: Client, table: Table, wanted: frozenset[str] | None) -> Iterator[PartitionRow]:
    if not table.partitionKeys:
        return iter(())
    names = partition_names(client, table, ())
    return _named(client, table.dbName or "", table.tableName or "", table.partitionKeys, names, wanted)


def _of_names(client: Client, part: PlannedNames, wanted: frozenset[str] | None) -> Iterator[PartitionRow]:
    keys = [] if _is_in_names(wanted) else client.call("get_table", part.database, part.table).partitionKeys
    return _named(client, part.database, part.table, keys, part.names(), wanted)


def _is_in_names(wanted: frozenset[str] | None) -> bool:
    """True if the names of partitions say all that is wanted."""
    return wanted is not None and wanted <= NAME_COLUMNS


def _named(
    client: Client,
    database: str,
    table: str,
    keys: Sequence[FieldSchema],
    names: Sequence[str],
    wanted: frozenset[str] | None,
) -> Iterator[PartitionRow]:
    """One that was dropped meanwhile is left out, unless its name is all that is wanted."""
    if _is_in_names(wanted):
        yield from (PartitionRow(database, table, name=name) for name in names)
        return
    key_names = [key.name or "" for key in keys]
    fields = None if wanted is None else partition_fields(wanted)
    skips_columns = fields is not None
    for part in cut(names, BATCH_ROWS):
        found = _without_columns(client, database, table, part, fields) if skips_columns else None
        if found is None:
            skips_columns = False
            found = client.call("get_partitions_by_names", database, table, list(part), fields=fields)
        for partition in found:
            yield PartitionRow(database, table, partition=partition, key_names=key_names)


def _without_columns(
    client: Client, database: str, table: str, names: Sequence[str], fields: Fields | None
) -> list[Partition] | None:
    """Partitions without their columns, which are most of a reply; None where the metastore is too old for it."""
    request = GetPartitionsByNamesRequest(
        db_name=database, tbl_name=table, names=list(names), skipColumnSchemaForPartition=True
    )
    try:
        found: list[Partition] = client.call("get_partitions_by_names_req", request, fields=fields).partitions
    except ApplicationError as refused:
        if refused.type is not ApplicationErrorType.UNKNOWN_METHOD:
            raise
        return None
    return found


def _statistics(client: Client, table: Table) -> Iterator[StatisticsRow]:
    database, name, reader = table.dbName or "", table.tableName or "", CatalogReader(client)
    for one in reader.table_statistics(table):
        yield StatisticsRow(database, name, None, one)
    for part in cut(reader.partition_names(table), _STATISTICS_A_CALL):
        found = reader.partition_statistics(table, part)
        yield from (StatisticsRow(database, name, partition, one) for partition in found for one in found[partition])


_WHOLE: Final[dict[str, Any]] = {
    "functions": lambda client: client.call("get_all_functions").functions or (),
    "privileges": lambda client: CatalogReader(client).grants(),
    "locks": lambda client: client.call("show_locks", ShowLocksRequest()).locks or (),
    "transactions": lambda client: client.call("get_open_txns_info").open_txns,
}
