"""Transactions as rows, and what they wrote."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from hms_gateway.metastore.vocabulary.texts import remembered
from hms_gateway.rpc.structs import TxnInfo, TxnState, TxnType
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import DATABASE_NOW
from hms_gateway.storage.schema.txn import COMPLETED_COMPONENTS, REPLICATED_TXNS, TXN_COUNTERS, TXNS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.repository import Repository, check_name, check_text, is_storable
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.locks import LockId, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import CommittedWrite, Txn, TxnOperation, TxnStatus, Unfinished, Write

_ADD: Final = (
    update(TXN_COUNTERS)
    .where(TXN_COUNTERS.c.name == bindparam("the_name"))
    .values(last_id=TXN_COUNTERS.c.last_id + bindparam("count"))
)
_ADD_AND_TELL: Final = _ADD.returning(TXN_COUNTERS.c.last_id)
_LAST_ID: Final = select(TXN_COUNTERS.c.last_id).where(TXN_COUNTERS.c.name == bindparam("the_name"))


def next_ids(connection: Connection, name: str, count: int) -> int:
    """Take so many ids of a kind and return the last one. The caller holds the lock on the catalog."""
    values = {"the_name": name, "count": count}
    if connection.dialect.update_returning:
        last = connection.execute(_ADD_AND_TELL, values).scalar()
    else:
        connection.execute(_ADD, values)
        last = connection.execute(_LAST_ID, {"the_name": name}).scalar()
    if last is None:
        last = count
        connection.execute(insert(TXN_COUNTERS).values(name=name, last_id=last))
    return int(last)


class CountingWrites(Repository):
    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self._clock = clock
        self._now_ms: int | None = None

    def now_ms(self) -> int:
        """One time for the whole unit of work. The process that writes a SQLite file is its server."""
        if self._now_ms is None:
            if self._dialect.has_clock:
                self._now_ms = self._connection.execute(DATABASE_NOW).scalar_one()
            else:
                self._now_ms = self._clock.milliseconds()
        return self._now_ms

    def _next_ids(self, name: str, count: int) -> int:
        """Take so many ids; the last one of them."""
        return next_ids(self._connection, name, count)


_OBJECT: Final = ("db_name", "table_name", "partition_name")
COMPONENT_COLUMNS: Final = ("txn_id", *_OBJECT, "operation", "write_id")
WRITE_SET_COLUMNS: Final = ("txn_id", "commit_id", *_OBJECT, "operation")

# Finding a member of an enumeration by its value takes longer than all else that is done for a row of a long list.
_TYPES: Final = {int(type): type for type in TxnType}
_OPEN_TEXT: Final = TxnStatus.OPEN.value
_OPEN: Final = int(TxnState.OPEN)
_ABORTED: Final = int(TxnState.ABORTED)

_UNFINISHED: Final = TXNS.c.state.in_([TxnStatus.OPEN.value, TxnStatus.ABORTED.value])
_ALL_UNFINISHED: Final = select(TXNS.c.txn_id, TXNS.c.state, TXNS.c.txn_type).where(_UNFINISHED).order_by(TXNS.c.txn_id)
_UNFINISHED_INFOS: Final = (
    select(
        TXNS.c.txn_id,
        TXNS.c.state,
        TXNS.c.user_name,
        TXNS.c.host_name,
        TXNS.c.agent_info,
        TXNS.c.reason,
        TXNS.c.started_ms,
        TXNS.c.last_heartbeat_ms,
    )
    .where(_UNFINISHED)
    .order_by(TXNS.c.txn_id)
)


class TxnStateReads(Repository):
    def high_water_mark(self) -> TxnId:
        return TxnId(self._connection.execute(_LAST_ID, {"the_name": "txn"}).scalar() or 0)

    def unfinished(self) -> list[Unfinished]:
        return _unfinished(self._connection.execute(_ALL_UNFINISHED).cursor.fetchall())

    def unfinished_txns(self) -> list[Txn]:
        rows = self._connection.execute(select(TXNS).where(_UNFINISHED).order_by(TXNS.c.txn_id))
        return [txn_of(row) for row in rows]

    def txns(self, txn_ids: Sequence[int]) -> list[Txn]:
        condition = has_id_among(TXNS.c.txn_id, txn_ids, self._dialect)
        return [txn_of(row) for row in self._connection.execute(select(TXNS).where(condition).order_by(TXNS.c.txn_id))]

    def txn_infos(self) -> list[TxnInfo]:
        return [
            TxnInfo(txn_id, _OPEN if state == _OPEN_TEXT else _ABORTED, user, host, agent, None, reason, started, beat)
            for txn_id, state, user, host, agent, reason, started, beat in self._connection.execute(
                _UNFINISHED_INFOS
            ).cursor.fetchall()
        ]

    def completed_changes(self, table: Target) -> list[tuple[int, int]]:
        if not all(is_storable(name) for name in table if name is not None):
            return []
        completed = COMPLETED_COMPONENTS.c
        statement = select(completed.txn_id, completed.write_id).where(
            completed.db_name == table.db_name,
            completed.table_name == (table.table_name or ""),
            completed.operation.in_([TxnOperation.UPDATE.value, TxnOperation.DELETE.value]),
        )
        return [(row.txn_id, row.write_id or 0) for row in self._connection.execute(statement)]


class TxnStateWrites(TxnStateReads, CountingWrites):
    def txns_between(self, first: int, last: int) -> list[Unfinished]:
        statement = (
            select(TXNS.c.txn_id, TXNS.c.state, TXNS.c.txn_type)
            .where(TXNS.c.txn_id.between(first, last), _UNFINISHED)
            .order_by(TXNS.c.txn_id)
        )
        return _unfinished(self._connection.execute(statement))

    def skip_txn_ids(self, last: TxnId) -> None:
        newest = self.high_water_mark()
        if last > newest:
            self._next_ids("txn", last - newest)

    def replicated(self, policy: str, source_ids: Sequence[int]) -> dict[int, TxnId]:
        if not is_storable(policy):
            return {}
        columns = (REPLICATED_TXNS.c.source_txn_id, REPLICATED_TXNS.c.txn_id)
        among = has_id_among(REPLICATED_TXNS.c.source_txn_id, source_ids, self._dialect)
        rows = self._connection.execute(select(*columns).where(REPLICATED_TXNS.c.policy == policy, among))
        return {source_id: TxnId(txn_id) for source_id, txn_id in rows}

    def insert_replicated(self, policy: str, txn_ids: Mapping[int, TxnId]) -> None:
        check_name("policy", policy, self._dialect)
        rows = [
            {"policy": policy, "source_txn_id": source_id, "txn_id": txn_id} for source_id, txn_id in txn_ids.items()
        ]
        if rows:
            self._connection.execute(insert(REPLICATED_TXNS), rows)

    def silent_txns(self, before_ms: int, limit: int) -> list[TxnId]:
        statement = (
            select(TXNS.c.txn_id)
            .where(TXNS.c.state == TxnStatus.OPEN.value, TXNS.c.last_heartbeat_ms < before_ms)
            .order_by(TXNS.c.last_heartbeat_ms)
            .limit(limit)
        )
        return [TxnId(txn_id) for txn_id in self._connection.execute(statement).scalars()]


def txn_insertions(
    txn_ids: Iterable[int], type: TxnType, client: Client, now_ms: int, oldest_open: int
) -> list[dict[str, Any]]:
    """Rows of TXNS for transactions that are opened. Raises UnstorableText."""
    row = {
        "state": TxnStatus.OPEN.value,
        "txn_type": int(type),
        **client_columns(client),
        "started_ms": now_ms,
        "last_heartbeat_ms": now_ms,
        "min_open_txn": oldest_open,
    }
    return [{"txn_id": txn_id, **row} for txn_id in txn_ids]


def write_insertions(txn_id: TxnId, writes: Sequence[Write], dialect: Dialect) -> list[dict[str, Any]]:
    """Rows of TXN_COMPONENTS. Raises UnstorableText."""
    return [
        {
            "txn_id": txn_id,
            **object_columns(write.target, dialect),
            "operation": write.operation.value,
            "write_id": write.write_id,
        }
        for write in writes
    ]


def write_set_insertions(
    txn_id: TxnId, changes: Sequence[Write], commit_id: TxnId, dialect: Dialect
) -> list[dict[str, Any]]:
    """Rows of WRITE_SET_COLUMNS. Raises UnstorableText."""
    return [
        {
            "txn_id": txn_id,
            "commit_id": commit_id,
            **object_columns(change.target, dialect),
            "operation": change.operation.value,
        }
        for change in changes
    ]


def committed_write_of(row: Iterable[Any]) -> CommittedWrite:
    """A row of WRITE_SET_COLUMNS."""
    txn_id, commit_id, db_name, table_name, partition_name, operation = row
    target = target_of(db_name, table_name, partition_name)
    return CommittedWrite(TxnId(txn_id), TxnId(commit_id), target, TxnOperation(operation))


def write_of(row: Iterable[Any]) -> Write:
    """A row of COMPONENT_COLUMNS."""
    _, db_name, table_name, partition_name, operation, write_id = row
    return Write(target_of(db_name, table_name, partition_name), TxnOperation(operation), write_id)


def object_columns(target: Target, dialect: Dialect) -> dict[str, str]:
    """A target as columns: what is absent is an empty text. Raises UnstorableText."""
    for kind, name in zip(("database", "table", "partition"), target, strict=True):
        if name is not None:
            check_name(kind, name, dialect)
    return {"db_name": target[0], "table_name": target[1] or "", "partition_name": target[2] or ""}


def target_of(db_name: str, table_name: str, partition_name: str) -> Target:
    """The reverse of `object_columns`."""
    return Target(db_name, table_name or None, partition_name or None)


@remembered(1_024, lambda client: len(client.user) + len(client.hostname) + len(client.agent_info))
def client_columns(client: Client) -> Mapping[str, str]:
    """A client makes many requests. Raises UnstorableText."""
    for text in (client.user, client.hostname, client.agent_info):
        check_text("user, host or agent", text)
    return {"user_name": client.user, "host_name": client.hostname, "agent_info": client.agent_info}


def _unfinished(rows: Iterable[Any]) -> list[Unfinished]:
    return [Unfinished(txn_id, state == _OPEN_TEXT, _TYPES[kind]) for txn_id, state, kind in rows]


def txn_of(row: Iterable[Any]) -> Txn:
    """A row of TXNS."""
    txn_id, state, type, user, host, agent_info, started_ms, heartbeat_ms, _, min_open_txn, *others = row
    reason, refused_lock, has_write_ids = others
    return Txn(
        txn_id=TxnId(txn_id),
        state=TxnStatus(state),
        type=TxnType(type),
        user=user,
        hostname=host,
        agent_info=agent_info,
        started_ms=started_ms,
        last_heartbeat_ms=heartbeat_ms,
        min_open_txn=TxnId(min_open_txn),
        reason=reason,
        refused_lock=None if refused_lock is None else LockId(refused_lock),
        has_write_ids=bool(has_write_ids),
    )
