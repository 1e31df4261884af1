"""What may be done with a transaction in which state (semantics §5.4), and whose changes collide (§5.6)."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from hms_gateway.rpc.structs import DataOperationType, MetaException, ThriftException, TxnType
from hms_gateway.txn.rules.locks import LockId, TxnId
from hms_gateway.txn.rules.names import Target, already_aborted, already_committed, no_such_txn

_HYSTERESIS: Final = 0.9


class TxnStatus(StrEnum):
    """As stored. A committed transaction is remembered for a while, so that a repeated commit is answered OK
    (semantics §13 row 18).
    """

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


class TxnOperation(StrEnum):
    """What a transaction did to an object."""

    SELECT = "s"
    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


OPERATIONS: Final = {
    DataOperationType.SELECT: TxnOperation.SELECT,
    DataOperationType.INSERT: TxnOperation.INSERT,
    DataOperationType.UPDATE: TxnOperation.UPDATE,
    DataOperationType.DELETE: TxnOperation.DELETE,
}


class Txn(msgspec.Struct, frozen=True):
    """A transaction as stored. Times in milliseconds of the database's clock.

    min_open_txn  the oldest transaction that was open when this one began, itself included
    reason        why it was aborted, when its client did not ask for it
    refused_lock  the waiting request that a deadlock cost it, so that asking for it returns what happened
    has_write_ids whether it was given any
    """

    txn_id: TxnId
    state: TxnStatus
    type: TxnType
    user: str
    hostname: str
    agent_info: str | None
    started_ms: int
    last_heartbeat_ms: int
    min_open_txn: TxnId
    reason: str | None = None
    refused_lock: LockId | None = None
    has_write_ids: bool = False


class Unfinished(NamedTuple):
    """An open or aborted transaction, as lists of them need it."""

    txn_id: TxnId
    is_open: bool
    type: TxnType


class Write(msgspec.Struct, frozen=True):
    """An object that a transaction works on, and how. Recorded by lock and add_dynamic_partitions."""

    target: Target
    operation: TxnOperation
    write_id: int | None = None


class CommittedWrite(msgspec.Struct, frozen=True):
    """An update or delete of a committed transaction; `commit_id` is the newest transaction's id at its commit."""

    txn_id: TxnId
    commit_id: TxnId
    target: Target
    operation: TxnOperation


def open_txn(txn_id: int, txn: Txn | None) -> Txn:
    """`txn` if it is open. Raises NoSuchTxnException, TxnAbortedException: the columns of semantics §5.4."""
    if txn is None:
        raise no_such_txn(txn_id)
    if txn.state is TxnStatus.COMMITTED:
        raise already_committed(txn_id)
    if txn.state is TxnStatus.ABORTED:
        raise already_aborted(txn_id, txn.reason)
    return txn


def needs_commit(txn_id: int, txn: Txn | None) -> bool:
    """False for one that is committed already: repeating a commit is fine. Raises as `open_txn`."""
    if txn is not None and txn.state is TxnStatus.COMMITTED:
        return False
    open_txn(txn_id, txn)
    return True


def needs_abort(txn_id: int, txn: Txn | None) -> bool:
    """False for one that is aborted already. Raises NoSuchTxnException."""
    if txn is not None and txn.state is TxnStatus.ABORTED:
        return False
    open_txn(txn_id, txn)
    return True


def batch_size(asked: int, batch_max: int) -> int:
    """How many transactions one request gets: silently fewer than it asks for (semantics §5.2)."""
    if asked < 0:
        raise MetaException(f"Invalid input for number of txns: {asked}")
    return min(asked, batch_max)


def may_open(open_count: int, open_max: int, is_refusing: bool) -> bool:
    """Once refused at the limit, new transactions have to wait until a tenth is free (semantics §5.2)."""
    return open_count < (open_max * _HYSTERESIS if is_refusing else open_max)


def too_many_open() -> ThriftException:
    return MetaException("Maximum allowed number of open transactions has been reached. See hive.max.open.txns.")


def recorded_operation(
    operation_type: int | None, is_transactional: bool | None, is_dynamic: bool
) -> TxnOperation | None:
    """What a lock component writes into its transaction's record, None for nothing (semantics §5.7, step 2).

    `is_transactional` False means that the client said so: Python clients say so without meaning to, since they send
    default values. That switches off their protection against lost updates, as in Hive. Raises MetaException for an
    operation that a transaction's lock must name and did not.
    """
    if is_transactional is False:
        return None
    if operation_type == DataOperationType.NO_TXN:
        return None
    if operation_type in (None, DataOperationType.UNSET):
        raise MetaException("a lock within a transaction must say its operation type")
    operation = OPERATIONS.get(_known_operation(operation_type))
    return None if operation is TxnOperation.SELECT or is_dynamic else operation


def dynamic_operation(operation_type: int | None) -> TxnOperation:
    """What add_dynamic_partitions records; an update when the client does not say (semantics §5.13)."""
    if operation_type in (None, DataOperationType.UNSET):
        return TxnOperation.UPDATE
    if operation_type == DataOperationType.NO_TXN:
        raise MetaException("partitions are added by a transaction: NO_TXN is not an operation of a transaction")
    return OPERATIONS[_known_operation(operation_type)]


def changes_to_check(writes: Iterable[Write]) -> list[Write]:
    """The updates and deletes, each once: what first-committer-wins is about. Inserts collide with nothing."""
    return list(
        dict.fromkeys(
            Write(write.target, write.operation)
            for write in writes
            if write.operation in (TxnOperation.UPDATE, TxnOperation.DELETE)
        )
    )


def collision(
    txn_id: TxnId, changes: Sequence[Write], committed: Iterable[CommittedWrite], *, is_strict: bool
) -> tuple[Write, CommittedWrite] | None:
    """The first change that a transaction committed since `txn_id` began made as well (semantics §5.6 step 2).

    Two deletes do not collide, unless `is_strict` (Hive 4 with exclWriteEnabled=false); a change of a whole table does
    not collide with one of a partition (§13 row 37). `committed` may hold writes that do not matter.
    """
    mine: dict[Target, list[Write]] = {}
    for change in changes:
        mine.setdefault(change.target, []).append(change)
    for other in sorted(committed, key=lambda write: (write.commit_id, write.txn_id)):
        if other.txn_id == txn_id or other.commit_id < txn_id:
            continue
        for change in mine.get(other.target, ()):
            if is_strict or TxnOperation.UPDATE in (change.operation, other.operation):
                return change, other
    return None


def collision_text(txn_id: TxnId, commit_id: TxnId, change: Write, other: CommittedWrite) -> str:
    db_name, table_name, partition_name = change.target
    place = f"{db_name}/{table_name}" + (f"/{partition_name}" if partition_name is not None else "")
    return (
        f"Aborting [txnid:{txn_id},{commit_id}] due to a write conflict on {place}"
        f" committed by [txnid:{other.txn_id},{other.commit_id}] {change.operation}/{other.operation}"
    )


def _known_operation(operation_type: int | None) -> DataOperationType:
    try:
        return DataOperationType(operation_type or 0)
    except ValueError:
        raise MetaException(f"unknown operation type {operation_type}") from None
