"""`app.txn.ports` on SQL: everything of transactions and locks within one unit of work."""

from app.storage.txn_locks import LockReads, LockWrites
from app.storage.txn_state import TxnStateReads


class SqlTxnReads(LockReads, TxnStateReads):
    """`ports.TxnReads`."""


class SqlTxnWrites(LockWrites):
    """`ports.TxnWrites`."""
