"""Names of tables and partitions in transactions, and errors of the rules."""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from hms_gateway.rpc.structs import (
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    ThriftException,
    TxnAbortedException,
)
from hms_gateway.rpc.structs.catalogs import TRIMMED

T = TypeVar("T")


class Target(NamedTuple):
    """A database, a table of it, or a partition of that; what is not named is None."""

    db_name: str
    table_name: str | None = None
    partition_name: str | None = None

    def overlaps(self, other: "Target") -> bool:
        """Whether one is, contains or lies in the other (semantics §5.8)."""
        if self.db_name != other.db_name:
            return False
        if self.table_name is None or other.table_name is None:
            return True
        if self.table_name != other.table_name:
            return False
        return self.partition_name in (None, other.partition_name) or other.partition_name is None

    def reaches(self, other: "Target") -> bool:
        """Whether they overlap, or the name of one partition is a prefix of the other's: `ds=1` of `ds=1/hr=2`."""
        if self.overlaps(other):
            return True
        if self.partition_name is None or other.partition_name is None or self[:2] != other[:2]:
            return False
        return lies_below(self.partition_name, other.partition_name) or lies_below(
            other.partition_name, self.partition_name
        )

    def __str__(self) -> str:
        return ".".join(part for part in (self.db_name, self.table_name) if part is not None) + (
            f"/{self.partition_name}" if self.partition_name is not None else ""
        )


def lies_below(name: str, prefix: str) -> bool:
    """Whether a partition's name begins with the values that are known of it."""
    return name.startswith(prefix) and name[len(prefix) :].startswith("/")


def prefixes(name: str) -> Iterator[str]:
    """Those of a partition's name, the shortest first; the name itself is not one."""
    end = name.find("/")
    while end != -1:
        yield name[:end]
        end = name.find("/", end + 1)


def target(db_name: str | None, table_name: str | None = None, partition_name: str | None = None) -> Target:
    """The object of names as a caller spells them; empty names count as not given.

    Hive 2.3 took names as given, so that `T` and `t` were two locks (semantics §13 row 17); here they are one. A
    partition without its table is the database, since the level follows from the names (semantics §5.1).
    """
    table = fold(table_name or "") or None
    partition = normalize_partition(partition_name) if table is not None and partition_name else None
    return Target(fold(db_name or ""), table, partition)


def normalize_partition(name: str) -> str:
    """A partition name with the case of its keys folded: `DS=A/Hr=1` is `ds=A/hr=1`; values keep theirs."""
    return "/".join(_fold_key(part) for part in name.split("/"))


def _fold_key(part: str) -> str:
    key, separator, value = part.partition("=")
    return key.lower() + separator + value if separator else part


def fold(name: str) -> str:
    """The form of database and table names that is stored and compared."""
    return name.strip(TRIMMED).lower()


# The exceptions of these methods with the texts of semantics §5.4 and §5.9.


class CommittedRefusal(Exception):
    """Carries an exception out of a unit of work that has to be committed all the same, such as an abort."""

    def __init__(self, reason: ThriftException) -> None:
        super().__init__(str(reason))
        self.reason = reason


def value_of(outcome: T | CommittedRefusal) -> T:
    """The value of a unit of work. Raises what it refused."""
    if isinstance(outcome, CommittedRefusal):
        raise outcome.reason
    return outcome


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
