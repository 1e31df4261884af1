"""`txn.ports.txn` on SQL: everything of transactions and locks within one unit of work."""

from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import delete, func, or_, select

from hms_gateway.storage.schema.txn import REBUILDS, REPLICATED_TXNS, TXN_COMPONENTS, TXN_WRITE_IDS, TXNS, WRITE_SETS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.txn.compactions import CompactionReads, CompactionWrites
from hms_gateway.storage.txn.connected_batch import ConnectedBatch
from hms_gateway.storage.txn.locks import LockReads, LockWrites
from hms_gateway.storage.txn.state import TxnStateReads
from hms_gateway.storage.txn.write_ids import WriteIdReads, WriteIdWrites
from hms_gateway.txn.ports.txn import BatchedWrites
from hms_gateway.txn.rules.transactions import State

T = TypeVar("T")

_IS_OPEN: Final = TXNS.c.state == State.OPEN.value


class SqlTxnReads(LockReads, WriteIdReads, CompactionReads, TxnStateReads):
    """`ports.TxnReads`."""


class SqlTxnWrites(LockWrites, WriteIdWrites, CompactionWrites):
    """`ports.TxnWrites`."""

    def batched(self, work: Callable[[BatchedWrites], T]) -> T:
        """What it asks for is read when it asks."""
        batch = ConnectedBatch(self._connection, self._clock)
        result = work(batch)
        batch.write()
        return result

    def forget_finished(self, ended_before_ms: int, limit: int) -> int:
        """An open transaction may still ask for what was hidden from it when it began, so that stays."""
        is_forgettable = or_(
            TXNS.c.state == State.COMMITTED.value,
            (TXNS.c.state == State.ABORTED.value)
            & TXNS.c.txn_id.not_in(select(TXN_COMPONENTS.c.txn_id))
            & TXNS.c.txn_id.not_in(select(TXN_WRITE_IDS.c.txn_id)),
        )
        old = select(TXNS.c.txn_id).where(is_forgettable, TXNS.c.ended_ms < ended_before_ms).limit(limit)
        txn_ids = list(self._connection.execute(old).scalars())
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
