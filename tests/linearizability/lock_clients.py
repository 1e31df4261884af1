"""Clients of locks, transactions and write ids: what they call is drawn, what they are told goes into a journal."""

import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from hms_gateway.rpc.structs import ThriftException
from tests.linearizability.history import Failure, Journal, NotMade, Unknown
from tests.linearizability.services import GatewayServices, StoreServices

_TYPES: Final = ("SHARED_READ", "SHARED_WRITE", "EXCL_WRITE", "EXCLUSIVE")
_PLACES: Final = ((None, None), ("t", None), ("u", None), ("t", "p=1"), ("t", "p=1/q=1"), ("t", "p=2"))
_TABLES: Final = ("t", "u")
# Between two looks at a lock that is waited for, as real clients do, only faster.
_PAUSE_SECONDS_MAX: Final = 0.05
_TRIES_MAX: Final = 1_000
# What would be there twice.
_NOT_REPEATABLE: Final = frozenset({"open", "lock", "change"})


class LockClient:
    """Plays one world after the other. Half of those on a store are clients of Hive 4."""

    def __init__(
        self,
        number: int,
        services: StoreServices | GatewayServices,
        journal: Journal,
        random: Random,
        *,
        changes: bool = True,
    ) -> None:
        self._services = services
        self._journal = journal
        self._random = random
        self._changes = changes
        self._is_of_hive_4 = number % 2 == 1 and isinstance(services, StoreServices)
        self._txns: list[int] = []
        self._locks: dict[int, int] = {}
        self._first_txn = 0

    def enter(self, world: int) -> None:
        self._journal.world = world
        self._services.db_name = f"w{world}"
        self._txns, self._locks, self._first_txn = [], {}, 0

    def play(self, calls: int) -> None:
        """Make that many calls, more or less, and leave nothing behind."""
        end = self._journal.count + calls
        while self._journal.count < end:
            self._random.choices([action for action, _ in self._actions], [weight for _, weight in self._actions])[0]()
        self.leave()

    def leave(self) -> None:
        for txn_id in list(self._txns):
            self._end(txn_id)
        for lock_id, txn_id in list(self._locks.items()):
            if not txn_id:
                self._give_up(lock_id)

    def wait_and_commit(self, tables: int, after_first_lock: Callable[[], object] = lambda: None) -> None:
        """A transaction that locks one table after the other and never gives up; only an abort ends its waiting."""
        txn_id = self._open()
        for table in self._random.sample([("t", None), ("u", None), ("v", None), ("w", None)], tables):
            kind = self._random.choice(["EXCLUSIVE", "EXCL_WRITE", "SHARED_READ"])
            answer = self._lock(txn_id, [(table, kind)])
            if len(self._locks) == 1:
                after_first_lock()
            pause_seconds = 0.001
            while answer == "WAITING":
                time.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
                answer = self._check(next(reversed(self._locks)))
            if answer != "ACQUIRED":
                break
        self._end(txn_id)

    def look(self) -> None:
        self._call("show_locks")
        self._call("open_txns", 0)

    @property
    def _actions(self) -> list[tuple[Any, int]]:
        return [
            (self._open_some, 5),
            (self._lock_something, 12),
            (self._check_something, 12),
            (self._unlock_something, 5),
            (self._end_something, 5),
            (self._beat, 3),
            (self._write, 3),
            (self._allocate, 3),
            (self._look_around, 4),
            *([(self._change, 6), (self._see_changes, 4)] if self._changes else []),
        ]

    def _open_some(self) -> None:
        if len(self._txns) < 2:
            self._open(self._random.choice([1, 1, 2]))

    def _open(self, count: int = 1) -> int:
        ids = self._call("open", count)
        if isinstance(ids, Failure):
            return 0
        self._txns += ids
        self._first_txn = self._first_txn or ids[0]
        return int(ids[0])

    def _lock_something(self) -> None:
        if len(self._locks) < 3:
            places = self._random.sample(_PLACES, self._random.choice([1, 1, 1, 2]))
            types = [self._random.choice(_TYPES) for _ in places]
            self._lock(self._random.choice([0, *self._txns]), list(zip(places, types, strict=True)))

    def _lock(self, txn_id: int, wanted: list[tuple[Any, str]]) -> Any:
        parts = [
            ((self._services.db_name, *place), kind, self._operation() if txn_id and place[0] else None)
            for place, kind in wanted
        ]
        answer = self._call("lock", txn_id, self._is_of_hive_4, parts)
        if isinstance(answer, Failure):
            self._forget(txn_id)
            return answer
        self._locks[answer[0]] = txn_id
        return answer[1]

    def _operation(self) -> str | None:
        return self._random.choice([None, "INSERT", "UPDATE", "DELETE"])

    def _check_something(self) -> None:
        if self._locks:
            self._check(self._random.choice(list(self._locks)))

    def _check(self, lock_id: int) -> Any:
        answer = self._call("check_lock", lock_id)
        if isinstance(answer, Failure):
            del self._locks[lock_id]
        return answer

    def _unlock_something(self) -> None:
        if self._locks:
            self._give_up(self._random.choice(list(self._locks)))

    def _give_up(self, lock_id: int) -> None:
        if not isinstance(self._call("unlock", lock_id), Failure):
            self._locks.pop(lock_id, None)

    def _end_something(self) -> None:
        if self._txns:
            self._end(self._random.choice(self._txns))

    def _end(self, txn_id: int) -> None:
        if self._random.random() < 0.3:
            self._call("abort", txn_id)
        else:
            checks, is_strict = self._random.choice([(True, False), (True, True), (False, False)])
            self._call("commit", txn_id, checks, is_strict)
            if self._random.random() < 0.2:
                self._call("commit", txn_id, checks, is_strict)
        self._forget(txn_id)

    def _forget(self, txn_id: int) -> None:
        self._txns = [other for other in self._txns if other != txn_id]
        self._locks = {lock_id: owner for lock_id, owner in self._locks.items() if owner != txn_id or not owner}

    def _beat(self) -> None:
        lock_id = self._random.choice([0, *self._locks])
        txn_id = self._random.choice([0, *self._txns])
        if lock_id or txn_id:
            self._call("heartbeat", lock_id, txn_id)

    def _write(self) -> None:
        if self._txns:
            place = (self._services.db_name, "t", self._random.choice(["p=1", "p=2"]))
            operation = self._random.choice(["UPDATE", "DELETE", "INSERT"])
            self._call("add_writes", self._random.choice(self._txns), place, operation)

    def _allocate(self) -> None:
        if self._txns:
            self._call("allocate", self._random.choice(_TABLES), sorted(self._txns))

    def _change(self) -> None:
        places = _PLACES[1:] if isinstance(self._services, StoreServices) else _PLACES[1:3]
        place = (self._services.db_name, *self._random.choice(places))
        self._call("change", place, sorted(self._locks))

    def _see_changes(self) -> None:
        self._call("count_changes")

    def _look_around(self) -> None:
        kind = self._random.randrange(3)
        if kind == 0:
            self._call("show_locks")
        elif kind == 1:
            self._call("valid_write_ids", self._random.choice(_TABLES))
        elif self._first_txn:
            self._call("open_txns", self._first_txn)

    def _call(self, name: str, *arguments: Any) -> Any:
        """The answer. A call whose answer got lost is made again where that does no harm; else it is a Failure."""
        method = getattr(self._services, name)
        for _ in range(_TRIES_MAX):
            try:
                return self._journal.record(
                    name, arguments, lambda: self._services.made(lambda: method(*arguments)), ThriftException
                )
            except NotMade:
                time.sleep(_PAUSE_SECONDS_MAX)
            except Unknown as error:
                if name in _NOT_REPEATABLE:
                    return Failure("Unknown", str(error))
        raise TimeoutError(f"{name} is never answered")


def play_patiently(client: LockClient, calls: int, meet: Callable[[], object]) -> None:
    """Transactions that only a deadlock's end can end, one after the other.

    `meet` waits for the other clients. Each has asked for the first lock of its first transaction before any asks for
    the second: a deadlock comes about however the processes are scheduled.
    """
    client.wait_and_commit(3, meet)
    for _ in range(calls // 6 - 1):
        client.wait_and_commit(3)
