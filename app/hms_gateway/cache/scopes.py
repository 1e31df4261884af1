"""Which part of the catalog a reply was read from, and which part an event has changed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from hms_gateway.metastore.ports.store import StoredEvent
from hms_gateway.metastore.vocabulary.names import InvalidCatalogMarker, normalize, parse_database_argument
from hms_gateway.structs import Struct

Scope: TypeAlias = tuple[str, ...]
"""`("databases",)`, `("database", db)`, `("tables", db)` for the list of its tables, `("table", db, table)`,
`("functions",)`, or `("functions", db)`."""

DATABASES: Scope = ("databases",)
FUNCTIONS: Scope = ("functions",)
_Reader: TypeAlias = Callable[[Any], Iterable[Scope]]


def _database(name: str | None) -> str:
    return normalize(parse_database_argument(name).database or "")


def _table(db_name: str | None, tbl_name: str | None) -> Iterable[Scope]:
    return (("table", _database(db_name), normalize(tbl_name or "")),)


def _of_arguments(db_field: str, tbl_field: str) -> _Reader:
    return lambda arguments: _table(getattr(arguments, db_field), getattr(arguments, tbl_field))


def _of_columns(arguments: Any) -> Iterable[Scope]:
    """The columns may be asked for as those of `table.column` (semantics §2.5)."""
    return _table(arguments.db_name, (arguments.table_name or "").partition(".")[0])


def _of_request(request_field: str, db_field: str, tbl_field: str) -> _Reader:
    def scopes(arguments: Any) -> Iterable[Scope]:
        request = getattr(arguments, request_field)
        return _table(getattr(request, db_field), getattr(request, tbl_field))

    return scopes


def _tables(db_field: str) -> _Reader:
    return lambda arguments: (("tables", _database(getattr(arguments, db_field))),)


def _functions(arguments: Any) -> Iterable[Scope]:
    return (("functions", _database(arguments.dbName)),)


def _named_tables(arguments: Any) -> Iterable[Scope]:
    db_name = _database(arguments.dbname)
    return (("database", db_name), *(("table", db_name, normalize(name)) for name in arguments.tbl_names or ()))


_IN_TABLE = _of_arguments("db_name", "tbl_name")

# Reads that depend on nothing but the catalog: not on the caller, the time or anything kept elsewhere.
_READERS: Mapping[str, _Reader] = {
    "get_all_databases": lambda _: (DATABASES,),
    "get_databases": lambda _: (DATABASES,),
    "get_database": lambda arguments: (("database", _database(arguments.name)),),
    "get_all_tables": _tables("db_name"),
    "get_tables": _tables("db_name"),
    "get_tables_by_type": _tables("db_name"),
    "get_table": _of_arguments("dbname", "tbl_name"),
    "get_table_req": _of_request("req", "dbName", "tblName"),
    "get_table_objects_by_name": _named_tables,
    "get_function": _functions,
    "get_functions": _functions,
    "get_all_functions": lambda _: (FUNCTIONS,),
    "get_fields": _of_columns,
    "get_schema": _of_columns,
    **dict.fromkeys(
        (
            "get_partition",
            "get_partition_by_name",
            "get_partitions",
            "get_partition_names",
            "get_partitions_ps",
            "get_partition_names_ps",
            "get_partitions_by_filter",
            "get_num_partitions_by_filter",
            "get_partitions_by_names",
            "get_partitions_pspec",
            "get_part_specs_by_filter",
        ),
        _IN_TABLE,
    ),
}

_OF_ONE_TABLE = frozenset(
    {
        *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "INSERT", "RELOAD"),
        # Parameters of the table and of its partitions say which statistics are accurate.
        *("UPDATE_TBL_COL_STAT_EVENT", "DELETE_TBL_COL_STAT_EVENT"),
        *("UPDATE_PART_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"),
        *("ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT"),
        *("ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT"),
    }
)
_OF_FUNCTIONS = frozenset({"CREATE_FUNCTION", "ALTER_FUNCTION", "DROP_FUNCTION"})
# No reply about indexes is kept, and their tables have events of their own.
_OF_NOTHING_KEPT = frozenset({"CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX"})
_OF_TABLE_LISTS = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"})


def is_cacheable(method: str) -> bool:
    """Whether replies of the method may be kept."""
    return method in _READERS


def scopes_read(method: str, arguments: Struct) -> tuple[Scope, ...]:
    """What a reply to these arguments depends on; empty when it must not be kept."""
    try:
        return tuple(_READERS[method](arguments)) if method in _READERS else ()
    except (InvalidCatalogMarker, AttributeError):
        return ()


def scopes_changed(stored: StoredEvent) -> tuple[Scope, ...] | None:
    """What an event has changed; None for "anything"."""
    event = stored.event
    db_name = normalize(event.db_name)
    table = (("table", db_name, normalize(event.table_name or "")),)
    if event.event_type in _OF_ONE_TABLE:
        return table
    if event.event_type in _OF_TABLE_LISTS:
        renamed: tuple[Scope, ...] = ()
        if event.renamed_from is not None:
            old_db, old_table = event.renamed_from
            renamed = (("tables", old_db), ("table", old_db, old_table))
        return (("tables", db_name), *table, *renamed)
    if event.event_type in _OF_FUNCTIONS:
        old_db, _ = event.renamed_from or (db_name, "")
        return (FUNCTIONS, ("functions", db_name), ("functions", old_db))
    return () if event.event_type in _OF_NOTHING_KEPT else None
