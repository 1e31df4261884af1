"""Reads of transactional tables without their list of write ids, where the operator wants them refused."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from hms_gateway.catalog.arguments import table_named
from hms_gateway.idl.method_facts import MethodFacts, method_facts
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.structs import GetTablesResult, MetaException, Method, Struct, Table, TableMeta
from hms_gateway.txn.rules.write_ids import InvalidList, parse_valid_write_ids, split_table_id


class _Sent(NamedTuple):
    """A list as it came with a call, and the table's id beside it."""

    text: str
    table_id: int | None


class RequiredLists:
    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, method: Method, call: Call, arguments: Struct, handle: Callable[[], Any]) -> Any:
        """Answer by `handle`. Raises MetaException for a read of a transactional table without its list."""
        facts = method_facts()[method.name]
        if not facts.write_ids_in:
            return handle()
        sent = _sent(facts, call, arguments)
        name = _table_of(facts, arguments)
        if name is not None:
            self._check(self._store.read(lambda snapshot: [name.find(snapshot)]), sent)
            return handle()
        value = handle()
        shown = _shown(value.answer if isinstance(value, Uncacheable) else value)
        self._check(self._store.read(lambda snapshot: _stored(snapshot, shown)), sent)
        return value

    def _check(self, tables: Iterable[StoredTable | None], sent: _Sent | None) -> None:
        for found in tables:
            if found is not None and is_transactional(found.table.parameters or {}):
                _check(found, sent)


def _check(found: StoredTable, sent: _Sent | None) -> None:
    name = f"{found.table.dbName}.{found.table.tableName}"
    if sent is None:
        raise MetaException(
            f"table {name} is transactional and read without a list of write ids; send validWriteIdList, or the header"
            " x-hms-valid-write-ids (setting metastore.require_write_id_lists)"
        )
    try:
        listed = parse_valid_write_ids(sent.text).table
    except InvalidList as error:
        raise MetaException(f"validWriteIdList: {error}; get_valid_write_ids gives the list of {name}") from error
    if listed is None or normalize(listed) != name or sent.table_id not in (None, found.table_id):
        of_id = "" if sent.table_id is None else f" with the id {sent.table_id}"
        raise MetaException(
            f"validWriteIdList: the list is of table {listed}{of_id}; get_valid_write_ids gives the one of {name}"
        )


def _sent(facts: MethodFacts, call: Call, arguments: Struct) -> _Sent | None:
    """The list in the request, or else in the header, `db.table:…;id=17`."""
    try:
        sent = _Sent(*split_table_id(call.valid_write_ids or ""))
    except InvalidList as error:
        raise MetaException(f"x-hms-valid-write-ids: {error}") from error
    request = getattr(arguments, facts.write_ids_in, None)
    if text := getattr(request, "validWriteIdList", None):
        in_request = getattr(request, "id", None)
        return _Sent(text, sent.table_id if in_request is None or in_request < 0 else in_request)
    return sent if sent.text else None


def _table_of(facts: MethodFacts, arguments: Struct) -> TableName | None:
    """The one table that the call is about. A name that is missing is the handler's to miss."""
    kind, *fields = facts.cached_by or ("named_tables",)
    if kind == "named_tables":
        return None
    if len(fields) == 1:
        # get_foreign_keys, of whose tables the one with the keys counts.
        fields = [f"{fields[0]}.foreign_db_name", f"{fields[0]}.foreign_tbl_name"]
    try:
        db_name, tbl_name = (attrgetter(field)(arguments) for field in fields)
    except AttributeError:
        return table_named("", "")
    return table_named(db_name or "", (tbl_name or "").partition(".")[0])


def _shown(answer: Any) -> list[tuple[str, str]]:
    """The tables in an answer about several."""
    shown: Iterable[Table | TableMeta] = (answer.tables or ()) if isinstance(answer, GetTablesResult) else answer
    return [(one.dbName or "", one.tableName or "") for one in shown]


def _stored(snapshot: Snapshot, names: Iterable[tuple[str, str]]) -> list[StoredTable]:
    by_database: dict[str, list[str]] = defaultdict(list)
    for db_name, tbl_name in names:
        by_database[db_name].append(tbl_name)
    return [found for db_name, tables in by_database.items() for found in snapshot.tables(db_name, tables)]
