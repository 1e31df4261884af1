"""Random calls about transactions and locks, of several callers at the same time, and about the notification log."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    CheckLockRequest,
    CommitTxnRequest,
    FireEventRequest,
    FireEventRequestData,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    InsertEventRequestData,
    LockComponent,
    NotificationEventRequest,
    OpenTxnRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.comparison.ids import event, lock, txn
from tests.comparison.objects import SOME_KEYS, database, table
from tests.comparison.random_choices import Choices, Weighted
from tests.comparison.scripts.locking import (
    DELETE,
    EXCLUSIVE,
    INSERT,
    SELECT,
    SHARED_READ,
    SHARED_WRITE,
    UPDATE,
    component,
    request,
)
from tests.comparison.servers import Step, call

DATABASES = ("{own}sales", "{own}hr")
TABLES = ("t1", "t2")
PARTITIONS = ("ds=1", "ds=2")
CALLERS = (("ann", "here"), ("ben", "there"), ("cid", "there"))
OPERATIONS = (SELECT, INSERT, UPDATE, DELETE)
# Most requests read; else everybody would soon wait.
TYPES = (SHARED_READ, SHARED_READ, SHARED_READ, SHARED_WRITE, EXCLUSIVE)
UNKNOWN_ID = 888_888_888


class TxnProgram(Choices):
    counts = True

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._opened = self._locked = self._told = 0

    def _weighted(self) -> Iterator[Weighted]:
        yield from (
            (3, (self._open, self._commit, self._read_transactions)),
            (1, (self._abort, self._abort_some, self._heartbeat_range)),
            (2, (self._heartbeat, self._add_dynamic_partitions)),
            (6, (self._lock,)),
            (4, (self._check, self._unlock)),
            (2, (self._show,)),
            (1, (self._fire, self._change_catalog, self._read_events)),
        )

    def _beginning(self) -> Iterator[Step]:
        yield self._open()

    # Transactions

    def _txn(self) -> int:
        if self._chance(0.03):
            return self._one((-1, UNKNOWN_ID))
        return txn(self._random.randrange(1, self._opened + 2))

    def _open(self) -> Step:
        count = self._random.randrange(1, 4)
        self._opened += count
        return call("open_txns", OpenTxnRequest(count, *self._one(CALLERS)))

    def _commit(self) -> Step:
        return call("commit_txn", CommitTxnRequest(self._txn()))

    def _abort(self) -> Step:
        return call("abort_txn", AbortTxnRequest(self._txn()))

    def _abort_some(self) -> Step:
        return call("abort_txns", AbortTxnsRequest([self._txn() for _ in range(self._random.randrange(3))]))

    def _heartbeat(self) -> Step:
        lock_id = self._lock_id() if self._chance(0.5) else None
        return call("heartbeat", HeartbeatRequest(lock_id, self._txn() if self._chance(0.5) else None))

    def _heartbeat_range(self) -> Step:
        first = self._random.randrange(1, self._opened + 1)
        return call("heartbeat_txn_range", HeartbeatTxnRangeRequest(txn(first), txn(first + self._random.randrange(4))))

    def _add_dynamic_partitions(self) -> Step:
        names = [self._one(PARTITIONS) for _ in range(self._random.randrange(1, 3))]
        place = (self._one(DATABASES), self._one(TABLES), names)
        return call("add_dynamic_partitions", AddDynamicPartitions(self._txn(), *place, self._one(OPERATIONS)))

    def _read_transactions(self) -> Step:
        return call(self._one(("get_open_txns", "get_open_txns_info")))

    # Locks

    def _lock_id(self) -> int:
        return UNKNOWN_ID if self._chance(0.03) else lock(self._random.randrange(1, self._locked + 2))

    def _component(self, operation: int | None) -> LockComponent:
        place = (self._one(DATABASES), self._one(TABLES), self._one(PARTITIONS))[: self._one((1, 2, 2, 3))]
        dynamic = True if self._chance(0.1) else None
        return component(self._one(TYPES), *place, operationType=operation, isDynamicPartitionWrite=dynamic)

    def _lock(self) -> Step:
        self._locked += 1
        txn_id = self._txn() if self._chance(0.6) else None
        wanted = [self._component(self._one(OPERATIONS)) for _ in range(self._one((1, 1, 2, 3)))]
        user, host = self._one(CALLERS)
        return call("lock", request(*wanted, txn_id=txn_id, user=user, host=host))

    def _check(self) -> Step:
        return call("check_lock", CheckLockRequest(self._lock_id()))

    def _unlock(self) -> Step:
        return call("unlock", UnlockRequest(self._lock_id()))

    def _show(self) -> Step:
        place = (self._one(DATABASES), self._one((*TABLES, None)), self._one((*PARTITIONS, None)))
        return call("show_locks", ShowLocksRequest(*place[: self._random.randrange(1, 4)]))

    # The log

    def _change_catalog(self) -> Step:
        """Changes of which each is one event, here and in Hive."""
        db_name, tbl_name = self._one(DATABASES), self._one(TABLES)
        return self._one(
            (
                call("create_database", database(db_name)),
                call("create_table", table(db_name, tbl_name, SOME_KEYS)),
                call("append_partition", db_name, tbl_name, [self._one("ab"), "1"]),
                call("drop_table", db_name, tbl_name, True),
            )
        )

    def _fire(self) -> Step:
        inserted = FireEventRequestData(InsertEventRequestData(["{elsewhere}/a"]))
        return call("fire_listener_event", FireEventRequest(True, inserted, self._one(DATABASES), self._one(TABLES)))

    def _read_events(self) -> Step:
        if self._chance(0.3):
            return call("get_current_notificationEventId")
        return call(
            "get_next_notification", NotificationEventRequest(event(self._random.randrange(8)), self._one((0, 1, 3)))
        )
