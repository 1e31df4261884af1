"""The exceptions of these methods with the texts of semantics §5.4 and §5.9."""

from hms_gateway.structs import (
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    ThriftException,
    TxnAbortedException,
)


class CommittedRefusal(Exception):
    """Carries an exception out of a unit of work that has to be committed all the same, such as an abort."""

    def __init__(self, reason: ThriftException) -> None:
        super().__init__(str(reason))
        self.reason = reason


def no_such_txn(txn_id: int) -> NoSuchTxnException:
    return NoSuchTxnException(f"No such transaction txnid:{txn_id}")


def already_committed(txn_id: int) -> NoSuchTxnException:
    return NoSuchTxnException(f"Transaction txnid:{txn_id} is already committed.")


def already_aborted(txn_id: int, reason: str | None = None) -> TxnAbortedException:
    """`reason` says why when it was not the client's own wish."""
    return TxnAbortedException(f"Transaction txnid:{txn_id} already aborted" + (f": {reason}" if reason else ""))


def no_such_lock(lock_id: int) -> NoSuchLockException:
    return NoSuchLockException(f"No such lock lockid:{lock_id}")


def no_such_lock_to_heartbeat(lock_id: int) -> NoSuchLockException:
    return NoSuchLockException(f"No such lock: lockid:{lock_id}")


def too_many(what: str, given: int, limit: int, name: str) -> MetaException:
    return MetaException(f"{given} {what} are more than {limit} (limit {name})")
