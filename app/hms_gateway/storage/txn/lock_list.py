"""The answer of show_locks, from rows to TJSON or structs without values between them (design D5).

The components of a request share all but their numbers, objects and types, so the rest is read once for each request:
with its first component.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, select

from hms_gateway.runtime.remembering import remembered
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.schema.txn import LOCKS
from hms_gateway.structs import LockState, LockType, ShowLocksResponseElement, Struct
from hms_gateway.txn.rules.locks import STRENGTH

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
    """As the driver gives them: no row objects where there may be many."""
    return connection.execute(statement, values).cursor.fetchall()


@cache
def _first_of(dialect: Dialect) -> Select[Any]:
    return dialect.with_ids(_FIRST, LOCKS.c.lock_id)


_encoder: Final = msgspec.json.Encoder()
