"""Who may rebuild a materialized view: one transaction at a time."""

from hms_gateway.txn.ports.txn import Rebuild, Store, TxnWrites
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import State
from hms_gateway.txn.services.settings import TxnSettings


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
    return any(txn.state is State.OPEN for txn in txns.txns([txn_id]))
