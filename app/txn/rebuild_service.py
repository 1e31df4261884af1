"""Who may rebuild a materialized view: one transaction at a time."""

from app.txn.locks import TxnId
from app.txn.names import Target
from app.txn.ports import Rebuild, Store, TxnWrites
from app.txn.settings import TxnSettings
from app.txn.transactions import State


class RebuildService:
    def __init__(self, store: Store, settings: TxnSettings) -> None:
        self._store = store
        self._settings = settings

    def acquire(self, view: Target, txn_id: int) -> bool:
        """Take the view for an open transaction, unless another one that is alive has it."""

        def work(txns: TxnWrites) -> bool:
            if not _is_open(txns, txn_id):
                return False
            held = txns.rebuild(view)
            if held is not None and held.txn_id != txn_id and self._is_alive(txns, held):
                return False
            txns.set_rebuild(view, TxnId(txn_id))
            return True

        return self._store.write(lambda transaction: work(transaction.txns))

    def heartbeat(self, view: Target, txn_id: int) -> bool:
        """Keep it; False when the transaction does not have it."""

        def work(txns: TxnWrites) -> bool:
            held = txns.rebuild(view)
            if held is None or held.txn_id != txn_id or not _is_open(txns, txn_id):
                return False
            txns.set_rebuild(view, held.txn_id)
            return True

        return self._store.write(lambda transaction: work(transaction.txns))

    def _is_alive(self, txns: TxnWrites, held: Rebuild) -> bool:
        is_silent = held.last_heartbeat_ms < txns.now_ms() - self._settings.timeout_ms
        return not is_silent and _is_open(txns, held.txn_id)


def _is_open(txns: TxnWrites, txn_id: int) -> bool:
    txn = txns.txn(txn_id)
    return txn is not None and txn.state is State.OPEN
