"""Which part of the catalog a reply was read from, and which part an event has changed."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from hms_gateway.metastore.changes.events import TXN_EVENTS
from hms_gateway.metastore.ports.store import StoredEvent
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import Struct
from hms_gateway.rpc.structs.catalogs import InvalidCatalogMarker, database_key
from hms_gateway.rpc.structs.paths import argument_paths

Scope: TypeAlias = tuple[str, ...]
"""`("databases",)`, `("database", db)`, `("tables", db)` for the list of its tables, `("table", db, table)`,
`("functions",)`, or `("functions", db)`."""

DATABASES: Scope = ("databases",)
FUNCTIONS: Scope = ("functions",)


def _database(name: str | None) -> str:
    return normalize(database_key(name) or "")


def _table(db_name: str | None, tbl_name: str | None) -> Iterable[Scope]:
    return (("table", _database(db_name), normalize(tbl_name or "")),)


def _columns(db_name: str | None, tbl_name: str | None) -> Iterable[Scope]:
    """The columns may be asked for as those of `table.column` (semantics §2.5)."""
    return _table(db_name, (tbl_name or "").partition(".")[0])


def _named_tables(db_name: str | None, names: Iterable[str] | None) -> Iterable[Scope]:
    """Without names it is all that a pattern matches, which is not kept: any table's change may be one of them."""
    if names is None:
        return ()
    database = _database(db_name)
    return (("database", database), *(("table", database, normalize(name)) for name in names))


def _foreign_keys(db_name: str | None, tbl_name: str | None) -> Iterable[Scope]:
    """Only the table that has the keys is sure to change with them, so it has to be named."""
    return () if tbl_name is None else _table(db_name, tbl_name)


# By the row "cached_by". All depend on nothing but the catalog: neither on the caller, nor on the time, nor on anything
# kept elsewhere.
_READERS: Mapping[str, Callable[..., Iterable[Scope]]] = {
    "databases": lambda: (DATABASES,),
    "database": lambda name: (("database", _database(name)),),
    "tables": lambda db_name: (("tables", _database(db_name)),),
    "table": _table,
    "columns": _columns,
    "named_tables": _named_tables,
    "foreign_keys": _foreign_keys,
    "functions": lambda *db_names: [("functions", *map(_database, db_names))],
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
# No reply about indexes is kept, and their tables have events of their own. Transactions change tags, not replies.
_OF_NOTHING_KEPT = frozenset({"CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX", *TXN_EVENTS})
_OF_TABLE_LISTS = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"})


def is_cacheable(method: str) -> bool:
    """True if replies of the method may be kept."""
    facts = method_facts().get(method)
    return facts is not None and bool(facts.cached_by)


def scopes_read(method: str, arguments: Struct) -> tuple[Scope, ...]:
    """What a reply to these arguments depends on; empty when it must not be kept."""
    facts = method_facts().get(method)
    if facts is None or not facts.cached_by:
        return ()
    named = argument_paths(facts.scope_paths).held(arguments) if facts.scope_paths else ()
    try:
        return () if named is None else tuple(_READERS[facts.cached_by](*named))
    except InvalidCatalogMarker:
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
