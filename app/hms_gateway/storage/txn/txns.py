"""`txn.ports.txn` on SQL: everything of transactions and locks within one unit of work."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from sqlalchemy import Connection, ScalarSelect, delete, func, or_, select, update

from hms_gateway.metastore.changes.events import allocated, opened
from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.txn import REBUILDS, REPLICATED_TXNS, TXN_COMPONENTS, TXN_WRITE_IDS, TXNS, WRITE_SETS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.txn.compactions import CompactionReads, CompactionWrites
from hms_gateway.storage.txn.connected_batch import ConnectedBatch
from hms_gateway.storage.txn.locks import LockReads, LockWrites
from hms_gateway.storage.txn.state import TxnStateReads
from hms_gateway.storage.txn.write_ids import WriteIdReads, WriteIdWrites
from hms_gateway.txn.ports.txn import BatchedWrites
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus

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
