"""What the rules of transactions and locks need from storage.

A unit of work is alone while it runs: what it reads stays true until it commits. Ids only grow and are never given
twice, also across restarts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hms_gateway.rpc.structs import EncodedList, LockType, TxnInfo, TxnType
from hms_gateway.runtime.suspension import Outdated, Runner
from hms_gateway.txn.rules.compaction import Compaction, CompactionFilter
from hms_gateway.txn.rules.locks import AcquiredLock, Lock, LockId, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import CommittedWrite, Txn, Unfinished, Write

T = TypeVar("T")


class Client(msgspec.Struct, frozen=True):
    """Who asked, as administrators are shown; and the authenticated user who sent that, from which address."""

    user: str
    hostname: str
    agent_info: str
    principal: str = ""
    address: str = ""


class ShownLock(msgspec.Struct, frozen=True):
    """A lock with all that show_locks returns. `since_ms` is since when it is acquired or waits, `blocker` the lock it
    waits for: its id and component number.
    """

    lock: Lock
    client: Client
    since_ms: int | None
    blocker: tuple[LockId, int] | None


class LockFilter(msgspec.Struct, frozen=True):
    """Which locks to show: all that are set must be equal. Names are normalised."""

    db_name: str | None = None
    table_name: str | None = None
    partition_name: str | None = None
    txn_id: TxnId | None = None


class Rebuild(msgspec.Struct, frozen=True):
    """Who rebuilds a materialized view."""

    txn_id: TxnId
    last_heartbeat_ms: int


class TxnReads(Protocol):
    """One consistent state."""

    def high_water_mark(self) -> TxnId:
        """The newest transaction's id, 0 before the first."""

    def unfinished(self) -> list[Unfinished]:
        """Open and aborted transactions by id."""

    def unfinished_txns(self) -> list[Txn]:
        """The same with everything that is stored about them."""

    def txns(self, txn_ids: Sequence[int]) -> list[Txn]:
        """Those that are there, in order of their ids."""

    def txn_infos(self) -> list[TxnInfo]:
        """The same as get_open_txns_info returns it."""

    def shown_locks(self, filter: LockFilter) -> list[ShownLock]:
        """In no particular order."""

    def lock_list(self, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> EncodedList:
        """The same as ShowLocksResponseElements, sorted as Hive does: acquired ones first, weak before strong, then by
        id (semantics §5.9). Types that are keys of `shown_types` are shown as another one.
        """

    def table_id(self, table: Target) -> int | None:
        """The id of the table that has the name now."""

    def last_write_id(self, table: Target) -> int | None:
        """The newest write id the table has given, None before it gave any."""

    def hidden_write_ids(self, table: Target, high_water_mark: int, excepted: Sequence[int]) -> list[tuple[int, int]]:
        """Transaction and write id of those behind the mark or excepted."""

    def completed_changes(self, table: Target) -> list[tuple[int, int]]:
        """Transaction and write id of updates and deletes that are committed and not compacted; 0 for no write id."""

    def compactions(self, filter: CompactionFilter) -> list[Compaction]:
        """By id."""


class BatchedWrites(Protocol):
    """What open, commit, abort, heartbeat, lock, check_lock and unlock ask for and change.

    A store runs many of them as one batch. Its values already contain what those before changed.
    """

    def now_ms(self) -> int:
        """The database's clock, milliseconds since the epoch."""

    # Transactions.

    def high_water_mark(self) -> TxnId:
        """The newest transaction's id, 0 before the first."""

    def count_open(self) -> int: ...

    def insert_txns(self, count: int, type: TxnType, client: Client) -> list[TxnId]:
        """Open so many new ones and return their ids, ascending and without a gap."""

    def txn(self, txn_id: int) -> Txn | None: ...

    def refresh_txns(self, txn_ids: Sequence[TxnId]) -> None:
        """A heartbeat of open transactions, now."""

    def abort_txns(self, txn_ids: Sequence[TxnId], reason: str | None, refused_lock: LockId | None = None) -> None:
        """Abort open transactions and delete their locks; what they wrote stays recorded.

        Those that have write ids have an event.
        """

    def commit_txn(
        self,
        txn_id: TxnId,
        writes: Sequence[Write],
        changes: Sequence[Write],
        commit_id: TxnId,
        names_write_ids: bool | None = None,
    ) -> None:
        """Commit an open transaction: its `writes` become completed ones, its locks are deleted.

        `changes` are kept with `commit_id` for those who commit later. One that has write ids has an event; they are
        looked up for it with `names_write_ids`, and without, None, where the transaction is known to have any.
        """

    def txn_of_refused_lock(self, lock_id: int) -> Txn | None:
        """The transaction that lost this waiting request to a deadlock."""

    def insert_writes(self, txn_id: TxnId, writes: Sequence[Write]) -> None: ...

    def writes_of(self, txn_id: TxnId) -> list[Write]: ...

    def committed_since(self, txn_id: TxnId, targets: Sequence[Target]) -> list[CommittedWrite]:
        """Updates and deletes of `targets` with a commit id of `txn_id` or more; it may return more."""

    # Locks.

    def next_lock_id(self) -> LockId: ...

    def insert_request(self, request: Sequence[Lock], client: Client, blocker: Lock | None) -> None:
        """Store a request's components; their state and their waiting for `blocker` as given."""

    def request(self, lock_id: int) -> list[Lock]:
        """The components of a request by number, none when it is not there."""

    def waiting_requests(self, txn_ids: Sequence[TxnId], lock_ids: Sequence[LockId]) -> list[Lock]:
        """The components of the waiting requests of these transactions, and of these requests if they wait."""

    def has_locks(self, txn_id: TxnId) -> bool: ...

    def held_locks(self, txn_id: TxnId) -> list[Lock]:
        """What a transaction has acquired."""

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        """Locks of other owners that may be in the request's way, the oldest `limit` ones; it may return more."""

    def grant(self, lock_id: LockId) -> None: ...

    def set_blocker(self, lock_id: LockId, blocker: Lock) -> None: ...

    def refresh_lock(self, lock_id: LockId) -> None:
        """A heartbeat of a request without a transaction, now."""

    def delete_locks(self, lock_ids: Sequence[LockId]) -> None: ...


class HeldLocks(Protocol):
    """What implicit locks are compared with."""

    def held_locks(self, targets: Sequence[Target]) -> tuple[list[AcquiredLock], int]:
        """The acquired locks on the targets' tables and databases, and perhaps others, and the database's time in
        milliseconds; of a target that is a database also all in it.
        """


class TxnWrites(TxnReads, Protocol):
    """A unit of work."""

    def batched(self, work: Callable[[BatchedWrites], T]) -> T:
        """Run it as a batch of one, whose changes are there for whatever follows."""

    def now_ms(self) -> int:
        """The database's clock, milliseconds since the epoch."""

    # Transactions.

    def txns_between(self, first: int, last: int) -> list[Unfinished]:
        """Open and aborted ones within the bounds, both included, in order."""

    def skip_txn_ids(self, last: TxnId) -> None:
        """Give no ids up to `last` any more."""

    def replicated(self, policy: str, source_ids: Sequence[int]) -> dict[int, TxnId]:
        """The transactions that were opened for those of a replication's source, by their ids there."""

    def insert_replicated(self, policy: str, txn_ids: Mapping[int, TxnId]) -> None: ...

    # Write ids.

    def write_ids_of(self, table: Target, txn_ids: Sequence[TxnId]) -> dict[int, int]: ...

    def insert_write_ids(self, table: Target, write_ids: Mapping[TxnId, int]) -> None:
        """With the events that say so."""

    def delete_write_ids(self, table: Target, txn_ids: Sequence[TxnId]) -> None: ...

    def set_last_write_id(self, table: Target, write_id: int) -> None: ...

    # Rebuilds of materialized views.

    def rebuild(self, view: Target) -> Rebuild | None: ...

    def set_rebuild(self, view: Target, txn_id: TxnId) -> None:
        """Its holder before loses it; its heartbeat is now."""

    # Compactions.

    def next_compaction_id(self) -> int: ...

    def save_compactions(self, compactions: Sequence[Compaction]) -> None:
        """Insert or replace."""

    def delete_compactions(self, compaction_ids: Sequence[int]) -> None: ...

    def forget_compacted(self, target: Target, highest_write_id: int | None) -> None:
        """Completed writes of the target up to that write id (all of them without one) and those of aborted
        transactions need no compaction any more.
        """

    # Expiry, at most `limit` at a time, oldest first.

    def silent_txns(self, before_ms: int, limit: int) -> list[TxnId]:
        """Open transactions whose last heartbeat is older."""

    def silent_locks(self, before_ms: int, limit: int) -> list[LockId]:
        """Requests without a transaction whose last heartbeat is older."""

    def forget_finished(self, ended_before_ms: int, limit: int, *, victims_before_ms: int, victims_max: int) -> int:
        """Forget transactions that ended before and that cannot be asked about any more; how many.

        Those are committed ones, and aborted ones that wrote nothing and have no write ids. Of those that a deadlock
        has cost the newest `victims_max` stay until they ended before `victims_before_ms`: operators ask for them. With
        the forgotten ones go changes and write ids that no open transaction can collide with or needs to hide.
        """


class Assumption(msgspec.Struct, frozen=True):
    """The rights by which a unit of work was let through; it is Outdated where they are not so any more.

    user     whose the transactions and locks are that it names; None for anybody's
    version  the newest event when the rights were read
    holds    tells whether they are the same after the events since
    """

    user: str | None
    version: int
    holds: Callable[[Sequence[Any]], bool]


class TxnWork(msgspec.Struct, Generic[T], frozen=True):
    """A unit of work that a store may run in a batch with others, and what it will ask for, as far as is known.

    That is read ahead for the whole batch. Whatever else `work` asks for it gets all the same.

    locks    targets and types of the components it requests
    checks   it tries again to acquire the requests `lock_ids`
    opens    it opens transactions
    commits  it commits `txn_ids`
    names_write_ids  as in `BatchedWrites.commit_txn`
    assumed  looked at in a batch, before `work` is run; Outdated anywhere else
    """

    work: Callable[[BatchedWrites], T]
    txn_ids: Sequence[int] = ()
    lock_ids: Sequence[int] = ()
    locks: Sequence[tuple[Target, LockType]] = ()
    checks: bool = False
    opens: bool = False
    commits: bool = False
    names_write_ids: bool | None = None
    assumed: Assumption | None = None

    def __call__(self, transaction: "TxnUnit") -> T:
        if self.assumed is not None:
            raise Outdated
        return transaction.txns.batched(self.work)


class TxnSnapshot(Protocol):
    @property
    def txns(self) -> TxnReads: ...


class TxnUnit(Protocol):
    @property
    def txns(self) -> TxnWrites: ...


class TxnStore(Runner, Protocol):
    """The units of work of `metastore.ports.store`, as far as they are used here."""

    def read(self, work: Callable[[TxnSnapshot], T]) -> T: ...

    def write(self, work: Callable[[TxnUnit], T]) -> T: ...
