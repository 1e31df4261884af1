"""Which databases and tables a call names in its arguments, for logs and figures: `sales`, `sales.orders`.

Found by the names that the IDL gives such fields, in the arguments and in the structs inside of them. Names are in
lower case, as the catalog keeps them.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from hms_gateway.idl import BaseType, Field, ListType, StructType
from hms_gateway.structs import Struct

OBJECTS_MAX = 16
_DEPTH_MAX = 3
_DATABASES = frozenset(
    {"db_name", "dbname", "dbName", "databaseName", "oldDbName", "database", "db", "table_db", "namespace"}
)
_TABLES = frozenset(
    {"tbl_name", "tblName", "tblname", "tableName", "tablename", "table_name", "table", "tbName", "origTableName",
     "base_tbl_name", "objectName", "funcName", "functionName"}
)  # fmt: skip
_LISTS_OF_TABLES = frozenset({"tbl_names", "tblNames", "tableNames"})
_QUALIFIED = frozenset({"fullTableNames"})
# Two objects beside each other.
_PAIRS = (
    ("source_db", "source_table_name"),
    ("dest_db", "dest_table_name"),
    ("parent_db_name", "parent_tbl_name"),
    ("foreign_db_name", "foreign_tbl_name"),
    ("pktable_db", "pktable_name"),
    ("fktable_db", "fktable_name"),
)
# Whose field `name` is that of a database.
_OF_DATABASES = frozenset(
    {"Database", "GetDatabaseRequest", "DropDatabaseRequest", "get_database_args", "drop_database_args"}
)
# And whose is that of a table.
_OF_TABLES = frozenset({"drop_table_args", "drop_table_with_environment_context_args"})


class _Place(NamedTuple):
    """Where names are in one struct."""

    database: str | None
    table: str | None
    tables: str | None
    qualified: str | None
    pairs: tuple[tuple[str, str], ...]
    inner: tuple[str, ...]


def objects_of(arguments: Struct) -> tuple[str, ...]:
    """The objects in the order in which they are named, OBJECTS_MAX at most."""
    found: dict[str, None] = {}
    for name in _names(arguments, 0):
        found[name] = None
        if len(found) == OBJECTS_MAX:
            break
    return tuple(found)


def _names(value: Struct, depth: int) -> Iterator[str]:
    place = _place(type(value))
    database = _text(value, place.database)
    tables = [] if place.tables is None else getattr(value, place.tables) or []
    table = _text(value, place.table)
    if table:
        yield f"{database}.{table}" if database else table
    elif database and not tables:
        yield database
    for each in tables[:OBJECTS_MAX]:
        yield f"{database}.{each.lower()}"
    for each in (getattr(value, place.qualified) or [])[:OBJECTS_MAX] if place.qualified else ():
        yield each.lower()
    for db_field, table_field in place.pairs:
        if _text(value, table_field):
            yield f"{_text(value, db_field)}.{_text(value, table_field)}"
    if depth < _DEPTH_MAX:
        for field in place.inner:
            yield from _inner_names(getattr(value, field), depth + 1)


def _inner_names(value: Any, depth: int) -> Iterator[str]:
    for each in value[:OBJECTS_MAX] if isinstance(value, list) else (value,):
        if isinstance(each, Struct):
            yield from _names(each, depth)


def _text(value: Any, field: str | None) -> str:
    text = None if field is None else getattr(value, field)
    if not isinstance(text, str):
        return ""
    # A database may be named as `@catalog#database`.
    return text.rpartition("#")[2].lower() if text.startswith("@") else text.lower()


@cache
def _place(kind: type[Struct]) -> _Place:
    fields = kind.definition.fields
    strings = [field.name for field in fields if field.type is BaseType.STRING]
    lists = [field.name for field in fields if isinstance(field.type, ListType)]
    databases = _DATABASES | ({"name"} if kind.__name__ in _OF_DATABASES else set())
    tables = _TABLES | ({"name"} if kind.__name__ in _OF_TABLES else set())
    return _Place(
        next((name for name in strings if name in databases), None),
        next((name for name in strings if name in tables), None),
        next((name for name in lists if name in _LISTS_OF_TABLES), None),
        next((name for name in lists if name in _QUALIFIED), None),
        tuple(pair for pair in _PAIRS if pair[1] in strings),
        tuple(field.name for field in fields if _has_inner(field)),
    )


def _has_inner(field: Field) -> bool:
    kind = field.type.element if isinstance(field.type, ListType) else field.type
    return isinstance(kind, StructType) and kind.name not in ("EnvironmentContext", "StorageDescriptor", "FieldSchema")
