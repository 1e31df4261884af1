"""`txn.ports.txn` on SQL: everything of transactions and locks within one unit of work."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Table,
    and_,
    bindparam,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    update,
)

from hms_gateway.metastore.changes.events import allocated, opened
from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import CompactionType
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import DATABASES, TABLES
from hms_gateway.storage.schema.txn import (
    COMPACTIONS,
    COMPLETED_COMPONENTS,
    REBUILDS,
    REPLICATED_TXNS,
    TABLE_WRITE_IDS,
    TXN_COMPONENTS,
    TXN_WRITE_IDS,
    TXNS,
    WRITE_SETS,
)
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.repository import Repository, is_storable
from hms_gateway.storage.txn.batch import ConnectedBatch
from hms_gateway.storage.txn.locks import LockReads, LockWrites
from hms_gateway.storage.txn.state import TxnStateReads, TxnStateWrites, object_columns, target_of
from hms_gateway.txn.ports.txn import BatchedWrites, Rebuild
from hms_gateway.txn.rules.compaction import Compaction, CompactionDetails, CompactionFilter, CompactionState
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus


def _has_names(table: Table) -> ColumnElement[bool]:
    """The parameters are those of `_names`."""
    return and_(table.c.db_name == bindparam("the_db"), table.c.table_name == bindparam("the_table"))


_OF_TABLE: Final = _has_names(TXN_WRITE_IDS)
_THIS_TABLE: Final = _has_names(TABLE_WRITE_IDS)
_THIS_VIEW: Final = _has_names(REBUILDS)
_LAST: Final = select(TABLE_WRITE_IDS.c.last_write_id).where(_THIS_TABLE)
_TABLE_ID: Final = (
    select(TABLES.c.table_id)
    .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
    .where(DATABASES.c.name == bindparam("the_db"), TABLES.c.name == bindparam("the_table"))
)
_SET_LAST: Final = update(TABLE_WRITE_IDS).where(_THIS_TABLE).values(last_write_id=bindparam("new_last"))


class WriteIdReads(Repository):
    def table_id(self, table: Target) -> int | None:
        if not _is_storable(table):
            return None
        return self._connection.execute(_TABLE_ID, _names(table)).scalar()

    def last_write_id(self, table: Target) -> int | None:
        if not _is_storable(table):
            return None
        return self._connection.execute(_LAST, _names(table)).scalar()

    def hidden_write_ids(self, table: Target, high_water_mark: int, excepted: Sequence[int]) -> list[tuple[int, int]]:
        if not _is_storable(table):
            return []
        is_hidden = or_(
            TXN_WRITE_IDS.c.txn_id > high_water_mark,
            has_id_among(TXN_WRITE_IDS.c.txn_id, excepted, self._dialect),
        )
        statement = select(TXN_WRITE_IDS.c.txn_id, TXN_WRITE_IDS.c.write_id).where(_OF_TABLE, is_hidden)
        return [(txn_id, write_id) for txn_id, write_id in self._connection.execute(statement, _names(table))]


class WriteIdWrites(WriteIdReads):
    def write_ids_of(self, table: Target, txn_ids: Sequence[TxnId]) -> dict[int, int]:
        if not _is_storable(table):
            return {}
        among = has_id_among(TXN_WRITE_IDS.c.txn_id, txn_ids, self._dialect)
        statement = select(TXN_WRITE_IDS.c.txn_id, TXN_WRITE_IDS.c.write_id).where(_OF_TABLE, among)
        rows = self._connection.execute(statement, _names(table))
        return {row.txn_id: row.write_id for row in rows}

    def insert_write_ids(self, table: Target, write_ids: Mapping[TxnId, int]) -> None:
        names = _columns(table, self._dialect)
        rows = [{**names, "txn_id": txn_id, "write_id": write_id} for txn_id, write_id in write_ids.items()]
        if rows:
            self._connection.execute(insert(TXN_WRITE_IDS), rows)

    def delete_write_ids(self, table: Target, txn_ids: Sequence[TxnId]) -> None:
        among = has_id_among(TXN_WRITE_IDS.c.txn_id, txn_ids, self._dialect)
        self._connection.execute(delete(TXN_WRITE_IDS).where(_OF_TABLE, among), _names(table))

    def set_last_write_id(self, table: Target, write_id: int) -> None:
        columns = _columns(table, self._dialect)
        changed = self._connection.execute(_SET_LAST, {**_names(table), "new_last": write_id}).rowcount
        if not changed:
            self._connection.execute(insert(TABLE_WRITE_IDS).values(**columns, last_write_id=write_id))


def _names(table: Target) -> dict[str, str]:
    return {"the_db": table.db_name, "the_table": table.table_name or ""}


def _columns(table: Target, dialect: Dialect) -> dict[str, str]:
    """Raises UnstorableText."""
    columns = object_columns(table, dialect)
    del columns["partition_name"]
    return columns


def _is_storable(table: Target) -> bool:
    return all(is_storable(name) for name in table if name is not None)


_TYPES: Final = {int(type): type for type in CompactionType}
_STATES: Final = {state.value: state for state in CompactionState}


class CompactionReads(Repository):
    def compactions(self, filter: CompactionFilter) -> list[Compaction]:
        statement = select(COMPACTIONS).where(*_conditions(filter)).order_by(COMPACTIONS.c.compaction_id)
        return [_compaction(row) for row in self._connection.execute(statement).cursor.fetchall()]


class CompactionWrites(CompactionReads, TxnStateWrites):
    def next_compaction_id(self) -> int:
        return self._next_ids("compaction", 1)

    def save_compactions(self, compactions: Sequence[Compaction]) -> None:
        if not compactions:
            return
        rows = [_row(entry, self._dialect) for entry in compactions]
        self.delete_compactions([entry.compaction_id for entry in compactions])
        self._connection.execute(insert(COMPACTIONS), rows)

    def delete_compactions(self, compaction_ids: Sequence[int]) -> None:
        if compaction_ids:
            among = has_id_among(COMPACTIONS.c.compaction_id, compaction_ids, self._dialect)
            self._connection.execute(delete(COMPACTIONS).where(among))

    def forget_compacted(self, target: Target, highest_write_id: int | None) -> None:
        columns = object_columns(target, self._dialect)
        aborted = select(TXNS.c.txn_id).where(TXNS.c.state == TxnStatus.ABORTED.value)
        for components in (COMPLETED_COMPONENTS, TXN_COMPONENTS):
            conditions: list[ColumnElement[bool]] = [components.c[name] == value for name, value in columns.items()]
            if highest_write_id is not None:
                write_id = components.c.write_id
                conditions.append(or_(write_id <= highest_write_id, write_id.is_(None)))
            if components is TXN_COMPONENTS:
                conditions.append(components.c.txn_id.in_(aborted))
            self._connection.execute(delete(components).where(*conditions))

    def rebuild(self, view: Target) -> Rebuild | None:
        if not _is_storable(view):
            return None
        row = self._connection.execute(select(REBUILDS).where(_THIS_VIEW), _names(view)).first()
        return None if row is None else Rebuild(TxnId(row.txn_id), row.last_heartbeat_ms)

    def set_rebuild(self, view: Target, txn_id: TxnId) -> None:
        columns = _columns(view, self._dialect)
        self._connection.execute(delete(REBUILDS).where(_THIS_VIEW), _names(view))
        row = {**columns, "txn_id": txn_id, "last_heartbeat_ms": self.now_ms()}
        self._connection.execute(insert(REBUILDS).values(row))


def _conditions(filter: CompactionFilter) -> Iterable[ColumnElement[bool]]:
    named: dict[str, str | None] = {
        "db_name": filter.db_name,
        "table_name": filter.table_name,
        "partition_name": filter.partition_name,
    }
    if filter.target is not None:
        named |= dict(zip(named, (name or "" for name in filter.target), strict=True))
    for column, name in named.items():
        if name is not None:
            yield COMPACTIONS.c[column] == name if is_storable(name) else false()
    if filter.compaction_id is not None:
        yield COMPACTIONS.c.compaction_id == filter.compaction_id
    if filter.type is not None:
        yield COMPACTIONS.c.compaction_type == int(filter.type)
    if filter.states is not None:
        yield COMPACTIONS.c.state.in_([state.value for state in sorted(filter.states)])


def _row(entry: Compaction, dialect: Dialect) -> dict[str, Any]:
    # Escaped by JSON, so any text can be kept.
    details = json.dumps(
        {name: value for name, value in msgspec.structs.asdict(entry.details).items() if value is not None}
    )
    return {
        "compaction_id": entry.compaction_id,
        **object_columns(entry.target, dialect),
        "compaction_type": int(entry.type),
        "state": entry.state.value,
        "details": details,
    }


def _compaction(row: Sequence[Any]) -> Compaction:
    # Unpacked at once: reading a row's columns by name takes long in a long list, and so does finding enumerations.
    compaction_id, db_name, table_name, partition_name, type, state, details = row
    target = target_of(db_name, table_name, partition_name)
    return Compaction(compaction_id, target, _TYPES[type], _STATES[state], CompactionDetails(**json.loads(details)))


T = TypeVar("T")

_IS_OPEN: Final = TXNS.c.state == TxnStatus.OPEN.value
# Another name, since the newest ones are looked for beside those that are forgotten.
_VICTIMS: Final = TXNS.alias()


class SqlTxnReads(LockReads, WriteIdReads, CompactionReads, TxnStateReads):
    """`ports.TxnReads`."""


class SqlTxnWrites(LockWrites, WriteIdWrites, CompactionWrites):
    """`ports.TxnWrites`. `log` appends an event to the log."""

    def __init__(self, connection: Connection, clock: Clock, log: Callable[[Event], object]) -> None:
        super().__init__(connection, clock)
        self._log = log

    def batched(self, work: Callable[[BatchedWrites], T]) -> T:
        """What it asks for is read when it asks."""
        batch = ConnectedBatch(self._connection, self._clock)
        result = work(batch)
        for event in batch.take_events():
            self._log(event)
        batch.write()
        return result

    def insert_write_ids(self, table: Target, write_ids: Mapping[TxnId, int]) -> None:
        super().insert_write_ids(table, write_ids)
        if not write_ids:
            return
        of_txns = has_id_among(TXNS.c.txn_id, write_ids, self._dialect)
        has_none = select(TXNS.c.txn_id).where(of_txns, TXNS.c.has_write_ids.is_(None)).order_by(TXNS.c.txn_id)
        if first := list(self._connection.execute(has_none).scalars()):
            self._connection.execute(update(TXNS).where(of_txns).values(has_write_ids=True))
            self._log(opened(first, self._clock.seconds()))
        self._log(allocated(table, write_ids, self._clock.seconds()))

    def forget_finished(self, ended_before_ms: int, limit: int, *, victims_before_ms: int, victims_max: int) -> int:
        """An open transaction may still ask for what was hidden from it when it began, so that stays."""
        is_forgettable = or_(
            TXNS.c.state == TxnStatus.COMMITTED.value,
            (TXNS.c.state == TxnStatus.ABORTED.value)
            & TXNS.c.txn_id.not_in(select(TXN_COMPONENTS.c.txn_id))
            & TXNS.c.txn_id.not_in(select(TXN_WRITE_IDS.c.txn_id)),
        )
        is_shown_no_more = or_(
            TXNS.c.refused_lock.is_(None),
            TXNS.c.ended_ms < victims_before_ms,
            TXNS.c.txn_id <= _newest_victim_after(victims_max),
        )
        old = select(TXNS.c.txn_id).where(is_forgettable, TXNS.c.ended_ms < ended_before_ms, is_shown_no_more)
        txn_ids = list(self._connection.execute(old.limit(limit)).scalars())
        if txn_ids:
            self._connection.execute(delete(TXNS).where(has_id_among(TXNS.c.txn_id, txn_ids, self._dialect)))
            of_txns = has_id_among(REPLICATED_TXNS.c.txn_id, txn_ids, self._dialect)
            self._connection.execute(delete(REPLICATED_TXNS).where(of_txns))
        next_id = self.high_water_mark() + 1
        bounds = select(func.min(TXNS.c.txn_id), func.min(TXNS.c.min_open_txn)).where(_IS_OPEN)
        oldest_open, oldest_history = self._connection.execute(bounds).one()
        self._connection.execute(delete(WRITE_SETS).where(WRITE_SETS.c.commit_id < (oldest_open or next_id)))
        self._connection.execute(
            delete(TXN_WRITE_IDS).where(
                TXN_WRITE_IDS.c.txn_id < (oldest_history or next_id),
                TXN_WRITE_IDS.c.txn_id.not_in(select(TXNS.c.txn_id)),
            )
        )
        self._connection.execute(
            delete(REBUILDS).where(REBUILDS.c.txn_id.not_in(select(TXNS.c.txn_id).where(_IS_OPEN)))
        )
        return len(txn_ids)


def _newest_victim_after(count: int) -> ScalarSelect[int]:
    """The newest transaction that a deadlock has cost after so many newer ones; NULL where there are no more."""
    victims = select(_VICTIMS.c.txn_id).where(
        _VICTIMS.c.state == TxnStatus.ABORTED.value, _VICTIMS.c.refused_lock.is_not(None)
    )
    return victims.order_by(_VICTIMS.c.txn_id.desc()).offset(count).limit(1).scalar_subquery()
