"""Steps of a call around its handler (`rpc.binding.Step`): what it may send, what it presents, what it has to say.

`composition.main.call_steps` is the list of them, with the rights (`handlers.rights.authorizer`) among them.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from hms_gateway.catalog.arguments import table_named
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.rpc.binding import Bound
from hms_gateway.rpc.call import Call, Uncacheable, Waiting
from hms_gateway.rpc.idl.method_facts import MethodFacts
from hms_gateway.rpc.structs import (
    IDL,
    GetTablesResult,
    InvalidOperationException,
    MetaException,
    Method,
    Struct,
    Table,
    TableMeta,
)
from hms_gateway.rpc.structs.catalogs import plain_name
from hms_gateway.rpc.structs.paths import argument_paths
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import Actor, LockCaller, acting, locking, presenting, recording
from hms_gateway.txn.rules.locks import LockedByAnother
from hms_gateway.txn.rules.write_ids import InvalidList, parse_valid_write_ids, split_table_id

_PATTERN: Final = "pattern_bytes_max"
_FILTER: Final = "filter_bytes_max"
LIMIT_OF_FIELD: Final = {
    **dict.fromkeys(
        (
            *("pattern", "db_patterns", "tbl_patterns", "tablesPattern", "tableNamePattern"),
            *("includeParamKeyPattern", "excludeParamKeyPattern"),
        ),
        _PATTERN,
    ),
    **dict.fromkeys(("filter", "filters", "expr", "condition"), _FILTER),
}
# A struct may contain itself; no such text lies deeper.
_DEPTH_MAX: Final = 5


LEASE_PROPERTY: Final = "hms.lease.id"
LOCK_PROPERTY: Final = "hms.lock.id"
TXN_PROPERTY: Final = "hms.txn.id"
_LEASE_SERVICE: Final = "HiveLease"
_CONTEXT: Final = "EnvironmentContext"
RECORDED_SECONDS_MAX: Final = 2**31 - 1


class BoundedTexts:
    """Bounds on what a caller writes in a small language: patterns, filters, expressions, schedules.

    They go by the fields' names, so that no method can be without them.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return bool(_text_paths(method))

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Raises MetaException that names the field and the limit."""
        for path in _text_paths(bound.method):
            name = path.rpartition(".")[2].partition("[")[0]
            for (text,) in argument_paths((path,)).values(arguments):
                if text is None:
                    continue
                self._check_length(name, text)
                if LIMIT_OF_FIELD[name] == _PATTERN:
                    self._check_alternatives(name, text)
        return go_on()

    def _check_length(self, name: str, text: str | bytes) -> None:
        limit = LIMIT_OF_FIELD[name]
        bytes_max: int = getattr(self._limits, limit)
        if _size(text) > bytes_max:
            raise MetaException(f"{name} is longer than {bytes_max} bytes; shorten it (limit {limit})")

    def _check_alternatives(self, name: str, text: str) -> None:
        """A list of names is looked up; every alternative with a wildcard is a condition of its own."""
        with_wildcard = sum("*" in alternative or "." in alternative for alternative in text.split("|"))
        if with_wildcard > self._limits.pattern_alternatives_max:
            raise MetaException(
                f"{name} has {with_wildcard} alternatives with wildcards; send at most"
                f" {self._limits.pattern_alternatives_max} (limit pattern_alternatives_max)"
            )


class PresentedLease:
    """The lease that a call presents, in a header or in an environment context: what it does not cover is refused.

    With `is_owned` only the user's own lease is of use. Calls about leases themselves are not fenced.
    """

    def __init__(self, *, is_owned: bool = False) -> None:
        self._is_owned = is_owned

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return method.service != _LEASE_SERVICE

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Raises InvalidOperationException for what is not a lease id, and for two that differ."""
        in_context = _in_environment(bound.method, arguments, LEASE_PROPERTY)
        if call.lease is None and in_context is None:
            return go_on()
        texts = {text for text in (call.lease, in_context) if text is not None}
        if len(texts) > 1:
            raise InvalidOperationException(f"Refused: the call presents two leases, {' and '.join(sorted(texts))}")
        text = texts.pop().strip()
        if not (text.isascii() and text.isdigit()):
            raise InvalidOperationException(f"Refused: {text[:80]!r} is not a lease id")
        with presenting(int(text), call.principal if self._is_owned else None):
            return go_on()


class ImplicitLocks:
    """Changes that others' locks stop: tried again every `pause_seconds`, for `wait_seconds`."""

    def __init__(self, timeout_ms: int, wait_seconds: float = 0.0, pause_seconds: float = 60.0) -> None:
        self._timeout_ms = timeout_ms
        self._wait_seconds = wait_seconds
        self._pause_seconds = pause_seconds

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return facts.changes and not facts.suspendable

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Raises Waiting for a change to be tried again, InvalidOperationException for the last time and wrong ids."""
        caller = LockCaller(
            call.principal,
            call.client_address,
            self._timeout_ms,
            _ids(LOCK_PROPERTY, call.lock_id, _in_environment(bound.method, arguments, LOCK_PROPERTY)),
            _ids(TXN_PROPERTY, call.txn_id, _in_environment(bound.method, arguments, TXN_PROPERTY)),
        )
        try:
            with locking(caller):
                return go_on()
        except LockedByAnother as error:
            left_seconds = self._wait_seconds - call.waited_seconds
            if left_seconds > 0:
                raise Waiting(min(self._pause_seconds, left_seconds)) from error
            raise InvalidOperationException(error.message) from error


class NotedChanges:
    """Changes that are noted as those of their caller."""

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return facts.changes

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        with acting(Actor(call.principal, call.client_address, bound.method.name, call.request_id, call.real_user)):
            return go_on()


class RecordedCalls:
    """Calls of administrators that record what another metastore knows, by a header."""

    def __init__(self, administrators: Container[str]) -> None:
        self._administrators = administrators

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return True

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Raises MetaException for users who are not administrators, and for what is not a time."""
        if call.recorded_at is None:
            return go_on()
        text = call.recorded_at.strip()
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; the header x-hms-recorded-at is for the users of the "
                "setting administrators"
            )
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= RECORDED_SECONDS_MAX):
            raise MetaException(
                f"the header x-hms-recorded-at is {text[:80]!r}; it is seconds since 1970, at most"
                f" {RECORDED_SECONDS_MAX}"
            )
        with recording(int(text)):
            return go_on()


class _Sent(NamedTuple):
    """A list as it came with a call, and the table's id beside it."""

    text: str
    table_id: int | None


class RequiredLists:
    """Reads of transactional tables without their list of write ids, where the operator wants them refused."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        return bool(facts.write_ids_in)

    def answer(self, bound: Bound, call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Raises MetaException for a read of a transactional table without its list."""
        sent = _sent(bound.facts, call, arguments)
        name = _table_of(bound.facts, arguments)
        if name is not None:
            self._check(self._store.read(lambda snapshot: [name.find(snapshot)]), sent)
            return go_on()
        value = go_on()
        shown = _shown(value.answer if isinstance(value, Uncacheable) else value)
        self._check(self._store.read(lambda snapshot: _stored(snapshot, shown)), sent)
        return value

    def _check(self, tables: Iterable[StoredTable | None], sent: _Sent | None) -> None:
        for found in tables:
            if found is not None and is_transactional(found.table.parameters or {}):
                _check(found, sent)


def _size(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode())


@cache
def _text_paths(method: Method) -> tuple[str, ...]:
    """Paths of such texts in the arguments of a method."""
    return tuple(_paths_to(LIMIT_OF_FIELD, method.definition.arguments, _DEPTH_MAX))


@cache
def _context_paths(method: Method) -> tuple[str, ...]:
    """Paths of environment contexts in the arguments of a method: among them, or in a request."""
    return tuple(_paths_to({_CONTEXT}, method.definition.arguments, 1))


def _paths_to(wanted: Container[str], fields: Iterable[Any], depth: int) -> Iterator[str]:
    """Paths to fields of a wanted name that are no structs, and to structs of a wanted name."""
    for field in fields:
        path, type = field.name, field.type
        while hasattr(type, "element"):
            path, type = f"{path}[]", type.element
        struct = IDL.structs.get(getattr(type, "name", ""))
        if field.name in wanted if struct is None else struct.name in wanted:
            yield path
        elif struct is not None and depth:
            yield from (f"{path}.{inner}" for inner in _paths_to(wanted, struct.fields, depth - 1))


def _in_environment(method: Method, arguments: Struct, name: str) -> str | None:
    """The property `name` of the environment context among the arguments, None where the call has none."""
    for path in _context_paths(method):
        for (context,) in argument_paths((path,)).values(arguments):
            found: str | None = None if context is None else (context.properties or {}).get(name)
            if found is not None:
                return found
    return None


def _ids(name: str, *texts: str | None) -> frozenset[int]:
    """One or several, with commas between."""
    return frozenset(_id(name, part.strip()) for text in texts if text is not None for part in text.split(","))


def _id(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise InvalidOperationException(f"{name} is {text[:80]!r}; it is the id of a lock or transaction, a number")
    return int(text)


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
    # Hive's requests of write ids name no catalog.
    names = (name, f"{plain_name(found.table.dbName or '')}.{found.table.tableName}")
    if listed is None or normalize(listed) not in names or sent.table_id not in (None, found.table_id):
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
    if facts.cached_by in ("", "named_tables"):
        return None
    db_name, tbl_name = argument_paths(facts.scope_paths).held(arguments) or ("", "")
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
