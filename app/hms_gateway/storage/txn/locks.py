"""Locks as rows, one for each component; only those that may be in a request's way are ever loaded."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    false,
    func,
    literal,
    or_,
    select,
)

from hms_gateway.metastore.vocabulary.texts import remembered
from hms_gateway.rpc.structs import LockState, LockType, ShowLocksResponseElement, Struct
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import DATABASE_NOW, Rows, Statement
from hms_gateway.storage.schema.txn import LOCKS, TXNS
from hms_gateway.storage.sql.repository import Repository, is_storable
from hms_gateway.storage.txn.state import TxnStateWrites, client_columns, object_columns, target_of
from hms_gateway.txn.ports.txn import Client, LockFilter, ShownLock
from hms_gateway.txn.rules.locks import NO_TXN, STRENGTH, AcquiredLock, Lock, LockId, TxnId
from hms_gateway.txn.rules.names import Target

# Strength, lock id and number first: the order in which locks are shown, but for the waiting ones.
_COMPONENT_COLUMNS: Final = (
    LOCKS.c.strength,
    LOCKS.c.lock_id,
    LOCKS.c.component_number,
    LOCKS.c.db_name,
    LOCKS.c.table_name,
    LOCKS.c.partition_name,
)
_REQUEST_COLUMNS: Final = (
    LOCKS.c.is_acquired,
    LOCKS.c.txn_id,
    LOCKS.c.last_heartbeat_ms,
    LOCKS.c.acquired_ms,
    LOCKS.c.user_name,
    LOCKS.c.host_name,
    LOCKS.c.agent_info,
    LOCKS.c.blocked_by_lock,
    LOCKS.c.blocked_by_component,
)
_COMPONENTS: Final = len(_COMPONENT_COLUMNS)
_FIRST: Final = select(*_COMPONENT_COLUMNS, *_REQUEST_COLUMNS).where(LOCKS.c.component_number == 1)
_FURTHER: Final = select(*_COMPONENT_COLUMNS).where(LOCKS.c.component_number > 1)
_CHUNK_ROWS: Final = 500

ComponentRow: TypeAlias = tuple[int, int, int, str, str, str]
RequestRow: TypeAlias = tuple[bool, int, int, int | None, str, str, str, int | None, int | None]


def read_locks(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], shown_types: Mapping[LockType, LockType]
) -> "LockList":
    """The locks of which `conditions` hold; types that are keys of `shown_types` are shown as another one."""
    first = _rows(connection, _FIRST.where(*conditions))
    components: list[ComponentRow] = [row[:_COMPONENTS] for row in first]
    requests: dict[int, RequestRow] = {row[1]: row[_COMPONENTS:] for row in first}
    components += _rows(connection, _FURTHER.where(*conditions))
    # A condition may hold of a request's later components only.
    missing = {row[1] for row in components} - requests.keys() if conditions else ()
    if missing:
        dialect = dialect_of(connection)
        found = _rows(connection, _first_of(dialect), {"ids": dialect.bound_list(missing)})
        requests.update((row[1], row[_COMPONENTS:]) for row in found)
    return LockList(components, requests, shown_types)


class LockList:
    """An EncodedList of ShowLocksResponseElements: acquired ones first, weak before strong, then by id."""

    def __init__(
        self,
        components: Iterable[ComponentRow],
        requests: Mapping[int, RequestRow],
        shown_types: Mapping[LockType, LockType],
    ) -> None:
        self._rows = _in_order(components, requests)
        self._requests = requests
        self._types = {strength: int(shown_types.get(type, type)) for type, strength in STRENGTH.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def tjson_chunks(self) -> Iterator[bytes]:
        return map(self._encode, self._chunks())

    def struct_chunks(self) -> Iterator[list[Struct]]:
        return map(self._build, self._chunks())

    def close(self) -> None:
        """There is nothing to give back: all rows are read."""

    def _chunks(self) -> Iterator[Sequence[ComponentRow]]:
        return (self._rows[start : start + _CHUNK_ROWS] for start in range(0, len(self._rows), _CHUNK_ROWS))

    def _encode(self, rows: Sequence[ComponentRow]) -> bytes:
        types, requests = self._types, self._requests
        pieces = []
        last_id, last_db = 0, None
        for strength, lock_id, number, db_name, table_name, partition_name in rows:
            if lock_id != last_id:
                last_id = lock_id
                before_type, after_type = _template(requests[lock_id])
            if db_name != last_db:
                last_db, db_text = db_name, _json(db_name)
            # Nearly all are a table with a name that needs no escaping.
            if table_name.isidentifier() and not partition_name:
                names = f'{db_text}}},"3":{{"str":"{table_name}"'
            else:
                names = _names(db_text, table_name, partition_name)
            pieces.append(
                f'{{"1":{{"i64":{lock_id}}},"2":{{"str":{names}{before_type}{types[strength]}{after_type}{number}}}}}'
            )
        return ",".join(pieces).encode()

    def _build(self, rows: Sequence[ComponentRow]) -> list[Struct]:
        types, requests = self._types, self._requests
        built: list[Struct] = []
        for strength, lock_id, number, db_name, table_name, partition_name in rows:
            is_acquired, txn_id, heartbeat_ms, acquired_ms, user, host, agent, blocker, blocker_number = requests[
                lock_id
            ]
            built.append(
                ShowLocksResponseElement(
                    lock_id,
                    db_name,
                    table_name or None,
                    partition_name or None,
                    _ACQUIRED if is_acquired else _WAITING,
                    types[strength],
                    txn_id,
                    heartbeat_ms,
                    acquired_ms if is_acquired else None,
                    user,
                    host,
                    None,
                    agent,
                    blocker,
                    blocker_number,
                    number,
                )
            )
        return built


_ACQUIRED: Final = int(LockState.ACQUIRED)
_WAITING: Final = int(LockState.WAITING)


def _in_order(components: Iterable[ComponentRow], requests: Mapping[int, RequestRow]) -> list[ComponentRow]:
    rows = sorted(components)
    waiting = {lock_id for lock_id, request in requests.items() if not request[0]}
    if waiting:
        rows.sort(key=lambda row: row[1] in waiting)
    return rows


def _template(request: RequestRow) -> tuple[str, str]:
    """The text between the names and the type of each component of a request, and from there to its number."""
    is_acquired, txn_id, heartbeat_ms, acquired_ms, user, host, agent, blocker, blocker_number = request
    acquired = "" if acquired_ms is None or not is_acquired else f',"9":{{"i64":{acquired_ms}}}'
    blocked = "" if blocker is None else f',"14":{{"i64":{blocker}}},"15":{{"i64":{blocker_number}}}'
    return (
        f'}},"5":{{"i32":{_ACQUIRED if is_acquired else _WAITING}}},"6":{{"i32":',
        f'}},"7":{{"i64":{txn_id}}},"8":{{"i64":{heartbeat_ms}}}{acquired}'
        f'{_client(user, host, agent)}{blocked},"16":{{"i64":',
    )


@remembered(1_024, lambda user, host, agent: len(user) + len(host) + len(agent))
def _client(user: str, host: str, agent: str) -> str:
    """A client makes many requests."""
    return f',"10":{{"str":{_json(user)}}},"11":{{"str":{_json(host)}}},"13":{{"str":{_json(agent)}}}'


def _names(db_text: str, table_name: str, partition_name: str) -> str:
    """Fields 2 to 4 from the first one's value on, without the end of the last one."""
    texts = (f'}},"{field}":{{"str":{_json(name)}' for field, name in ((3, table_name), (4, partition_name)) if name)
    return db_text + "".join(texts)


def _json(text: str) -> str:
    return _encoder.encode(text).decode()


def _rows(connection: Connection, statement: Select[Any], values: Mapping[str, object] | None = None) -> Any:
    """Rows of the driver: no row objects where there may be many."""
    return connection.execute(statement, values).cursor.fetchall()


@cache
def _first_of(dialect: Dialect) -> Select[Any]:
    return dialect.with_ids(_FIRST, LOCKS.c.lock_id)


_encoder: Final = msgspec.json.Encoder()


_TYPES: Final = {strength: type for type, strength in STRENGTH.items()}

# A transaction's heartbeat is that of its locks.
LOCK_ROWS: Final = select(
    LOCKS.c.lock_id,
    LOCKS.c.component_number,
    LOCKS.c.txn_id,
    LOCKS.c.db_name,
    LOCKS.c.table_name,
    LOCKS.c.partition_name,
    LOCKS.c.strength,
    LOCKS.c.is_acquired,
    LOCKS.c.shares_writes,
    func.coalesce(TXNS.c.last_heartbeat_ms, LOCKS.c.last_heartbeat_ms),
).select_from(LOCKS.outerjoin(TXNS, TXNS.c.txn_id == LOCKS.c.txn_id))

_SHOWN_ROWS: Final = select(
    LOCKS.c.lock_id,
    LOCKS.c.component_number,
    LOCKS.c.txn_id,
    LOCKS.c.db_name,
    LOCKS.c.table_name,
    LOCKS.c.partition_name,
    LOCKS.c.strength,
    LOCKS.c.is_acquired,
    LOCKS.c.shares_writes,
    LOCKS.c.last_heartbeat_ms,
    LOCKS.c.acquired_ms,
    LOCKS.c.user_name,
    LOCKS.c.host_name,
    LOCKS.c.agent_info,
    LOCKS.c.blocked_by_lock,
    LOCKS.c.blocked_by_component,
)


class LockReads(Repository):
    def shown_locks(self, filter: LockFilter) -> list[ShownLock]:
        """A transaction's lock shows no heartbeat of its own (semantics §5.7)."""
        statement = _SHOWN_ROWS.where(*_filter_conditions(filter))
        return [_shown(row) for row in self._connection.execute(statement)]

    def lock_list(self, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> LockList:
        return read_locks(self._connection, list(_filter_conditions(filter)), shown_types)


class LockWrites(LockReads, TxnStateWrites):
    def silent_locks(self, before_ms: int, limit: int) -> list[LockId]:
        statement = (
            select(LOCKS.c.lock_id)
            .where(LOCKS.c.txn_id == NO_TXN, LOCKS.c.last_heartbeat_ms < before_ms)
            .distinct()
            .limit(limit)
        )
        return [LockId(lock_id) for lock_id in self._connection.execute(statement).scalars()]


def lock_insertions(
    request: Sequence[Lock], client: Client, blocker: Lock | None, now_ms: int, dialect: Dialect
) -> list[dict[str, Any]]:
    """The rows of a request. Raises UnstorableText."""
    shared = {
        **client_columns(client),
        "blocked_by_lock": None if blocker is None else blocker.lock_id,
        "blocked_by_component": None if blocker is None else blocker.number,
        "principal": client.principal,
        "client_address": client.address,
    }
    return [
        {
            "lock_id": lock.lock_id,
            "component_number": lock.number,
            "txn_id": lock.txn_id,
            **object_columns(lock.target, dialect),
            "strength": STRENGTH[lock.type],
            "is_acquired": lock.is_acquired,
            "shares_writes": lock.shares_writes,
            "last_heartbeat_ms": 0 if lock.txn_id != NO_TXN else now_ms,
            "acquired_ms": now_ms,
            **shared,
        }
        for lock in request
    ]


def _filter_conditions(filter: LockFilter) -> Iterable[ColumnElement[bool]]:
    for column, name in (
        (LOCKS.c.db_name, filter.db_name),
        (LOCKS.c.table_name, filter.table_name),
        (LOCKS.c.partition_name, filter.partition_name),
    ):
        if name is not None:
            yield column == name if name and is_storable(name) else false()
    if filter.txn_id is not None:
        yield LOCKS.c.txn_id == filter.txn_id


def locks_of(rows: Iterable[Any]) -> list[Lock]:
    """Of LOCK_ROWS."""
    return [
        Lock(
            LockId(lock_id),
            number,
            TxnId(txn_id),
            target_of(db_name, table_name, partition_name),
            _TYPES[strength],
            is_acquired,
            shares_writes,
            heartbeat_ms,
        )
        for (
            lock_id,
            number,
            txn_id,
            db_name,
            table_name,
            partition_name,
            strength,
            is_acquired,
            shares_writes,
            heartbeat_ms,
        ) in rows
    ]


def _shown(row: Any) -> ShownLock:
    # Unpacked at once: reading a row's columns by name takes most of the time of a long list.
    *of_lock, acquired_ms, user, host, agent_info, blocker_id, blocker_number = row
    (lock,) = locks_of([of_lock])
    blocker = None if blocker_id is None else (LockId(blocker_id), blocker_number)
    return ShownLock(lock, Client(user, host, agent_info), acquired_ms, blocker)


_Place: TypeAlias = tuple[str, str | None]  # database and table; "" for the database itself, None for all in it
_LOCK_COLUMNS: Final = len(LOCK_ROWS.selected_columns)


class HeldLockStatements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        now: Any = DATABASE_NOW.scalar_subquery() if dialect.has_clock else literal(0, BigInteger)
        holders = (LOCKS.c.user_name, LOCKS.c.host_name, LOCKS.c.agent_info, LOCKS.c.principal, LOCKS.c.client_address)
        rows: Select[Any] = LOCK_ROWS.add_columns(*holders, now).where(LOCKS.c.is_acquired.is_(True))
        self.on_tables = dialect.with_pairs(rows, LOCKS.c.db_name, LOCKS.c.table_name)
        is_near = or_(LOCKS.c.table_name == "", LOCKS.c.table_name == bindparam("the_table"))
        self.on_table = rows.where(LOCKS.c.db_name == bindparam("the_db"), is_near)
        self.in_database = rows.where(LOCKS.c.db_name == bindparam("the_db"))


_statements: Final = cache(HeldLockStatements)


class KnownLocks:
    """Locks that a batch knows: complete for the places it has asked for."""

    def __init__(self, dialect: Dialect, clock: Clock, read: Callable[[Sequence[Statement]], Sequence[Rows]]) -> None:
        self._dialect = dialect
        self._clock = clock
        self._read = read
        self._held: dict[_Place, list[AcquiredLock]] = {}
        self._now_ms = 0

    def statements(self, tables: Iterable[tuple[str, str]]) -> list[Statement]:
        """Statements that read the locks on these tables by database and name, and on their databases."""
        return self._reading(_around(tables))

    def learn(self, tables: Iterable[tuple[str, str]], answers: Sequence[Rows]) -> None:
        """Take the answers to those statements: nothing most often."""
        if any(answers):
            self._learn(_around(tables), answers)
        else:
            for db_name, name in tables:
                self._held[db_name, name] = self._held[db_name, ""] = []

    def on(self, targets: Sequence[Target]) -> tuple[list[AcquiredLock], int]:
        """See `ports.HeldLocks`."""
        if all(self._are_free(each) for each in targets):
            return [], self._now_ms
        whole = {each.db_name for each in targets if each.table_name is None}
        tables = [(each.db_name, each.table_name) for each in targets if each.table_name and each.db_name not in whole]
        places: dict[_Place, None] = dict.fromkeys([*((db_name, None) for db_name in whole), *_around(tables)])
        if unknown := [place for place in places if place not in self._held]:
            self._learn(unknown, self._read(self._reading(unknown)))
        found = {(one.lock.lock_id, one.lock.number): one for place in places for one in self._held[place]}
        return list(found.values()), self._now_ms

    def _are_free(self, target: Target) -> bool:
        """Tell whether a table and its database are known not to be locked."""
        db_name, table_name, _ = target
        return table_name is not None and self._held.get((db_name, table_name)) == [] == self._held.get((db_name, ""))

    def _reading(self, places: Iterable[_Place]) -> list[Statement]:
        made = _statements(self._dialect)
        pairs = [(db_name, name) for db_name, name in places if name is not None]
        storable = [pair for pair in pairs if all(map(is_storable, pair))]
        databases = [db_name for db_name, name in places if name is None]
        return [
            *([self._on_tables(made, storable)] if pairs else []),
            *(Statement(made.in_database, {"the_db": one if is_storable(one) else ""}) for one in databases),
        ]

    def _on_tables(self, made: HeldLockStatements, pairs: Sequence[tuple[str, str]]) -> Statement:
        """Statement for one table, as most often, without lists: those take longer to read than the locks."""
        if len(pairs) == 2 and pairs[0] == (pairs[1][0], ""):
            return Statement(made.on_table, {"the_db": pairs[1][0], "the_table": pairs[1][1]})
        return Statement(made.on_tables, self._dialect.bound_pairs(pairs))

    def _learn(self, places: Iterable[_Place], answers: Sequence[Rows]) -> None:
        found: dict[_Place, dict[tuple[int, int], AcquiredLock]] = {place: {} for place in places}
        for rows in answers:
            if not self._dialect.has_clock:
                self._now_ms = self._clock.milliseconds()
            elif rows:
                self._now_ms = rows[0][-1]
            for one in _held_of(rows):
                db_name, table_name, _ = one.lock.target
                for place in ((db_name, table_name or ""), (db_name, None)):
                    if place in found:
                        found[place][one.lock.lock_id, one.lock.number] = one
        self._held |= {place: list(locks.values()) for place, locks in found.items()}


def _around(tables: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(place for db_name, name in tables for place in ((db_name, ""), (db_name, name))))


def _held_of(rows: Rows) -> list[AcquiredLock]:
    locks = locks_of(row[:_LOCK_COLUMNS] for row in rows)
    return [AcquiredLock(lock, *row[_LOCK_COLUMNS:-1]) for lock, row in zip(locks, rows, strict=True)]
