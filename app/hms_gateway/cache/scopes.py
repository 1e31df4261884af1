"""Which part of the catalog a reply was read from, and which part an event has changed."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

from hms_gateway.idl.method_facts import method_facts
from hms_gateway.metastore.changes.events import TXN_EVENTS
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


def _of_databases() -> _Reader:
    return lambda _: (DATABASES,)


def _of_database(field: str) -> _Reader:
    name = attrgetter(field)
    return lambda arguments: (("database", _database(name(arguments))),)


def _of_tables(db_field: str) -> _Reader:
    return lambda arguments: (("tables", _database(getattr(arguments, db_field))),)


def _of_table(db_field: str, tbl_field: str) -> _Reader:
    """The fields are those of the arguments, or of a request in them, such as `req.dbName`."""
    db_name, tbl_name = attrgetter(db_field), attrgetter(tbl_field)
    return lambda arguments: _table(db_name(arguments), tbl_name(arguments))


def _of_columns(db_field: str, tbl_field: str) -> _Reader:
    """The columns may be asked for as those of `table.column` (semantics §2.5)."""
    db_name, tbl_name = attrgetter(db_field), attrgetter(tbl_field)
    return lambda arguments: _table(db_name(arguments), (tbl_name(arguments) or "").partition(".")[0])


def _of_named_tables(db_field: str, names_field: str) -> _Reader:
    """Without names it is all that a pattern matches, which is not kept: any table's change may be one of them."""
    db_of, names_of = attrgetter(db_field), attrgetter(names_field)

    def scopes(arguments: Any) -> Iterable[Scope]:
        db_name, names = _database(db_of(arguments)), names_of(arguments)
        if names is None:
            return ()
        return (("database", db_name), *(("table", db_name, normalize(name)) for name in names))

    return scopes


def _of_foreign_keys(field: str) -> _Reader:
    """Only the table that has the keys is sure to change with them, so it has to be named."""
    request_of = attrgetter(field)

    def scopes(arguments: Any) -> Iterable[Scope]:
        request = request_of(arguments)
        if request.foreign_tbl_name is None:
            return ()
        return (*_table(request.foreign_db_name, request.foreign_tbl_name),)

    return scopes


def _of_functions(db_field: str | None = None) -> _Reader:
    if db_field is None:
        return lambda _: (FUNCTIONS,)
    db_name = attrgetter(db_field)
    return lambda arguments: (("functions", _database(db_name(arguments))),)


# By the first word of the column "cached by". All depend on nothing but the catalog: neither on the caller, nor on the
# time, nor on anything kept elsewhere.
_READERS: Mapping[str, Callable[..., _Reader]] = {
    "databases": _of_databases,
    "database": _of_database,
    "tables": _of_tables,
    "table": _of_table,
    "columns": _of_columns,
    "named_tables": _of_named_tables,
    "foreign_keys": _of_foreign_keys,
    "functions": _of_functions,
}


@cache
def _reader(method: str) -> _Reader | None:
    """What names the scopes of a method's replies in its arguments, by its words in `schema/methods.txt`."""
    facts = method_facts().get(method)
    if facts is None or not facts.cached_by:
        return None
    kind, *fields = facts.cached_by
    return _READERS[kind](*fields)


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
# No reply about indexes is kept, and their tables have events of their own. Transactions change tags, not replies.
_OF_NOTHING_KEPT = frozenset({"CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX", *TXN_EVENTS})
_OF_TABLE_LISTS = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"})


def is_cacheable(method: str) -> bool:
    """Whether replies of the method may be kept."""
    return _reader(method) is not None


def scopes_read(method: str, arguments: Struct) -> tuple[Scope, ...]:
    """What a reply to these arguments depends on; empty when it must not be kept."""
    try:
        reader = _reader(method)
        return () if reader is None else tuple(reader(arguments))
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
