"""A small world of clients, servers and one database, played under a seed, with everything checked after each step.

The clock is the database's and jumps, also backwards; the database may be lost before, in the middle of and after a
unit of work, or ask for it once more; clients die and leave things behind; servers die and start again; who does what
next is drawn. What must hold (semantics §5.14) is checked by plain code that shares nothing with the code under test.
"""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreUnavailable
from hms_gateway.rpc.structs import LockState, LockType, ThriftException
from hms_gateway.txn.ports.txn import Client, LockFilter, ShownLock
from hms_gateway.txn.rules.locks import TIMED_OUT, Lock, LockId, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import Txn, TxnOperation, TxnStatus, Write
from hms_gateway.txn.services.compaction import Expiry
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.simulation.exclusion import exclude
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.txn_memory import MemoryStore
from tests.simulation.violations import Violation as Violation

TIMEOUT_MS = 300_000
REMEMBERED_MS = 900_000
CLIENTS = 5
SERVERS = 2
PLACES = [
    Target("d"),
    Target("d", "t"),
    Target("d", "u"),
    Target("d", "t", "p=1"),
    Target("d", "t", "p=1/q=1"),
    Target("d", "t", "p=2"),
]
TABLES = [Target("d", "t"), Target("d", "u")]
NEWEST_LOCK = LockId(2**62)
WHO = Client("u", "h", "a")


class Server:
    def __init__(self, store: Any) -> None:
        settings = TxnSettings(
            timeout_ms=TIMEOUT_MS,
            remembered_ms=REMEMBERED_MS,
            victims_remembered_ms=4 * REMEMBERED_MS,
            victims_max=2,
            expiry_batch=3,
        )
        self.locks = LockService(store, settings)
        self.transactions = TransactionService(store, self.locks, settings)
        self.write_ids = WriteIdService(store, settings)
        self.expiry = Expiry(store, settings)


@dataclass
class ClientState:
    txns: list[int] = field(default_factory=list)
    locks: list[int] = field(default_factory=list)


class Simulation:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.step_number = 0
        self.random = Random(seed)
        self.store = MemoryStore()
        self._connections = [FaultyStore(self.store, self.random, skew) for skew in (0, 400_000)]
        self._servers = [Server(connection) for connection in self._connections]
        self._clients = [ClientState() for _ in range(CLIENTS)]
        # What clients were told, and what was seen to be so.
        self.txn_ids: list[int] = []
        self.lock_ids: set[int] = set()
        self.newest_lock = 0
        self.alive_ms: dict[tuple[str, int], int] = {}
        self.given_up: set[int] = set()
        self.acquired: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.seen_committed: dict[int, int] = {}
        self.aborted: set[int] = set()
        self.changed: dict[int, set[tuple[Target, str]]] = {}
        self.write_ids: dict[tuple[Target, int], int] = {}
        self.seen_over: set[int] = set()
        self.latest_ms = self.store.clock_ms
        # As they were at the last look: what is the same object still has been looked at.
        self._old_requests: dict[int, list[ShownLock]] = {}
        self._old_txns: dict[int, Txn] = {}
        self._has_new_requests = False
        # What was asked for last, which nobody finds any more when it was refused.
        self._asked: list[Lock] = []

    def run(self, steps: int) -> None:
        """Raises Violation."""
        actions = [action for action, weight in self._actions() for _ in range(weight)]
        for _ in range(steps):
            self.step_number += 1
            action = self.random.choice(actions)
            faults = 0.02 if self.random.random() < 0.5 else 0.0
            for connection in self._connections:
                connection.faults = faults
            with contextlib.suppress(ThriftException, StoreUnavailable, OutcomeUnknown):
                action()
            self._check()

    def fail(self, text: str) -> None:
        raise Violation(f"seed {self.seed}, step {self.step_number}: {text}")

    def _actions(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._open, 6),
            (self._lock, 14),
            (self._check_lock, 16),
            (self._unlock, 5),
            (self._commit, 6),
            (self._abort, 2),
            (self._heartbeat, 10),
            (self._add_writes, 6),
            (self._allocate, 4),
            (self._see, 3),
            (self._die, 1),
            (self._restart_server, 1),
            (self._wait, 8),
            (self._expire, 3),
        ]

    # What clients do.

    @property
    def _server(self) -> Server:
        return self.random.choice(self._servers)

    @property
    def _client(self) -> ClientState:
        return self.random.choice(self._clients)

    def _open(self) -> None:
        client = self._client
        if len(client.txns) < 2:
            newest = self.store.txns.last_txn
            given = self._server.transactions.open(self.random.randint(1, 2), WHO).result()
            for txn_id in given:
                if self.txn_ids and txn_id <= self.txn_ids[-1]:
                    self.fail(f"txnid:{txn_id} given after {self.txn_ids[-1]}")
                self.txn_ids.append(txn_id)
                self.alive_ms["txn", txn_id] = self.store.clock_ms
            if given[0] != newest + 1:
                self.fail(f"txnid:{given[0]} was given after {newest}")
            client.txns += given

    def _lock(self) -> None:
        client = self._client
        txn_id = self.random.choice([*client.txns, 0])
        if len(client.locks) >= 4:
            return
        places = self.random.sample(PLACES, self.random.choice([1, 1, 1, 2]))
        wanted = [ComponentSpec(place, self.random.choice(list(LockType))) for place in places]
        call = LockSpec(
            wanted, self._who(client), TxnId(txn_id), self.random.random() < 0.3, self.random.random() < 0.1
        )
        now_ms = self.store.clock_ms
        self._asked = [
            Lock(NEWEST_LOCK, number, call.txn_id, one.target, one.type, False, call.shares_writes)
            for number, one in enumerate(wanted, 1)
        ]
        answer = self._server.locks.lock(call).result()
        if answer.lock_id in self.lock_ids or answer.lock_id < self.newest_lock:
            self.fail(f"lockid:{answer.lock_id} given twice")
        self.lock_ids.add(answer.lock_id)
        if answer.state is not LockState.NOT_ACQUIRED:
            client.locks.append(answer.lock_id)
            self.alive_ms["lock", answer.lock_id] = now_ms
        if answer.state is LockState.ACQUIRED:
            self.acquired[answer.lock_id] = txn_id
        elif answer.state is LockState.WAITING and not self._is_blocked(self.store.txns.request(answer.lock_id)):
            self.fail(f"lockid:{answer.lock_id} waits for nothing")

    def _who(self, client: ClientState) -> Client:
        return WHO

    def _check_lock(self) -> None:
        client = self._client
        if not client.locks:
            return
        lock_id = self.random.choice(client.locks)
        before = self.store.txns.request(lock_id)
        try:
            answer = self._server.locks.check_lock(lock_id).result()
        except ThriftException:
            client.locks.remove(lock_id)
            if before and before[0].txn_id == 0:
                self.fail(f"lockid:{lock_id} is there and was not found")
            raise
        if before[0].txn_id:
            self.alive_ms["txn", before[0].txn_id] = self.store.clock_ms
        else:
            self.alive_ms["lock", lock_id] = self.store.clock_ms
        if answer.state is LockState.ACQUIRED:
            self.acquired[lock_id] = before[0].txn_id
        elif not self._is_blocked(self.store.txns.request(lock_id)):
            self.fail(f"lockid:{lock_id} waits for nothing")

    def _unlock(self) -> None:
        client = self._client
        if client.locks:
            lock_id = self.random.choice(client.locks)
            self.given_up.add(lock_id)
            txn_id = self.acquired.get(lock_id, 0)
            try:
                self._server.locks.unlock(lock_id).result()
            except ThriftException:
                self.given_up.discard(lock_id)
                raise
            if txn_id and self._is_open(txn_id):
                self.fail(f"lockid:{lock_id} of an open transaction was unlocked")
            client.locks.remove(lock_id)

    def _commit(self) -> None:
        client = self._client
        if not client.txns:
            return
        txn_id = self.random.choice(client.txns)
        is_strict = self.random.random() < 0.2
        try:
            self._server.transactions.commit(txn_id, checks_writes=True, is_strict=is_strict).result()
        except OutcomeUnknown:
            if self.random.random() < 0.5:
                raise
            self._repeat_commit(txn_id)
        except ThriftException:
            client.txns.remove(txn_id)
            if self.latest_ms - self.seen_committed.get(txn_id, 0) <= REMEMBERED_MS:
                self.fail(f"the repeated commit of txnid:{txn_id} was refused")
            if self._state(txn_id) is TxnStatus.OPEN:
                self.fail(f"txnid:{txn_id} was refused and is open")
            raise
        if self._state(txn_id) is not TxnStatus.COMMITTED:
            self.fail(f"txnid:{txn_id} was told to be committed")
        client.txns.remove(txn_id)

    def _repeat_commit(self, txn_id: int) -> None:
        """As clients do whose answer was lost."""
        for connection in self._connections:
            connection.faults = 0.0
        state = self._state(txn_id)
        try:
            self._server.transactions.commit(txn_id, checks_writes=True).result()
        except ThriftException:
            if state is TxnStatus.COMMITTED:
                self.fail(f"the repeated commit of txnid:{txn_id} was refused")
            raise

    def _abort(self) -> None:
        client = self._client
        if client.txns:
            txn_id = self.random.choice(client.txns)
            client.txns.remove(txn_id)
            self._server.transactions.abort(txn_id).result()
            if self._state(txn_id) is TxnStatus.OPEN:
                self.fail(f"txnid:{txn_id} was aborted and is open")

    def _heartbeat(self) -> None:
        client = self._client
        now_ms = self.store.clock_ms
        if client.txns and self.random.random() < 0.7:
            txn_id = self.random.choice(client.txns)
            self._server.transactions.heartbeat(0, txn_id).result()
            if not self._is_open(txn_id):
                self.fail(f"a heartbeat of txnid:{txn_id} was fine, and it is not open")
            self.alive_ms["txn", txn_id] = now_ms
        elif client.locks:
            lock_id = self.random.choice(client.locks)
            request = self.store.txns.request(lock_id)
            self._server.transactions.heartbeat(lock_id, 0).result()
            txn_id = request[0].txn_id if request else 0
            self.alive_ms[("txn", txn_id) if txn_id else ("lock", lock_id)] = now_ms

    def _add_writes(self) -> None:
        client = self._client
        if client.txns:
            txn_id = self.random.choice(client.txns)
            write = Write(self.random.choice(PLACES[1:]), self.random.choice([TxnOperation.UPDATE, *TxnOperation]))
            self._server.transactions.add_writes(txn_id, [write.target], write.operation, None)
            self.changed.setdefault(txn_id, set()).add((write.target, write.operation.value))

    def _allocate(self) -> None:
        client = self._client
        if not client.txns:
            return
        table = self.random.choice(TABLES)
        txn_ids = self.random.sample(client.txns, self.random.randint(1, len(client.txns)))
        for txn_id, write_id in self._server.write_ids.allocate(table, txn_ids).items():
            if self.write_ids.setdefault((table, txn_id), write_id) != write_id:
                self.fail(f"txnid:{txn_id} has two write ids of {table}")
        of_table = [given for (place, _), given in self.write_ids.items() if place == table]
        if len(of_table) != len(set(of_table)):
            self.fail(f"a write id of {table} was given twice")

    def _see(self) -> None:
        """A snapshot must show exactly the committed ones, now and whenever it is asked for again."""
        server = self._server
        found = server.transactions.open_txns()
        listed = {txn.txn_id for txn in found.unfinished}
        for txn_id in self.txn_ids:
            if txn_id <= found.high_water_mark and txn_id not in listed:
                self.seen_over.add(txn_id)
                if self._is_open(txn_id):
                    self.fail(f"txnid:{txn_id} is open, not above {found.high_water_mark}, and not listed")
        for txn_id in self.aborted - listed:
            if self.changed.get(txn_id):
                self.fail(f"txnid:{txn_id} is aborted and not listed")
        table = self.random.choice(TABLES)
        ((seen, _),) = server.write_ids.valid_write_ids([("t", table)], None)
        for (place, txn_id), write_id in self.write_ids.items():
            if place == table and seen.ids.is_valid(write_id) != (self._state(txn_id) in (TxnStatus.COMMITTED, None)):
                self.fail(f"write id {write_id} of txnid:{txn_id} in {table} is seen wrongly")

    # What happens to everybody.

    def _die(self) -> None:
        self._clients[self.random.randrange(CLIENTS)] = ClientState()

    def _restart_server(self) -> None:
        number = self.random.randrange(SERVERS)
        self._servers[number] = Server(self._connections[number])

    def _wait(self) -> None:
        self.store.clock_ms += self.random.choice([10, 1_000, 20_000, 100_000, 301_000, -10, -2_000])
        self.latest_ms = max(self.latest_ms, self.store.clock_ms)
        # A heartbeat whose answer gets lost may be noted with a time before that of the last one that was answered.
        self.alive_ms = {owner: min(alive_ms, self.store.clock_ms) for owner, alive_ms in self.alive_ms.items()}

    def _expire(self) -> None:
        for connection in self._connections:
            connection.faults = 0.0
        self._server.expiry.expire()
        before_ms = self.store.clock_ms - TIMEOUT_MS
        for txn in self.store.txns.unfinished_txns():
            if txn.state is TxnStatus.OPEN and txn.last_heartbeat_ms < before_ms:
                self.fail(f"txnid:{txn.txn_id} is silent for too long and open")

    # What must hold.

    def _check(self) -> None:
        self._check_txns()
        self._check_locks()
        self._check_kept()
        if self._has_new_requests and self.step_number % 5 == 0:
            self._has_new_requests = False
            self._check_cycles()

    def _check_txns(self) -> None:
        known = self.store.txns.known
        for txn_id, txn in known.items():
            if self._old_txns.get(txn_id) is not txn:
                self._check_txn(txn)
        self._old_txns = dict(known)

    def _check_txn(self, txn: Txn) -> None:
        txn_id = txn.txn_id
        if txn.state is not TxnStatus.COMMITTED and txn_id in self.seen_over:
            self.fail(f"txnid:{txn_id} was over for a reader and is not")
        if txn.state is TxnStatus.OPEN:
            if txn_id in self.aborted or txn_id in self.committed:
                self.fail(f"txnid:{txn_id} was over and is open")
        elif txn.state is TxnStatus.COMMITTED:
            if txn_id not in self.seen_committed:
                # It is remembered from its own time on, which is before the latest where the clock went back.
                self.seen_committed[txn_id] = self.store.clock_ms
                self._check_commit(txn_id)
            if txn_id in self.aborted:
                self.fail(f"txnid:{txn_id} was aborted and is committed")
        elif txn_id not in self.aborted:
            self.aborted.add(txn_id)
            if txn_id in self.committed:
                self.fail(f"txnid:{txn_id} was committed and is aborted")
            silent_ms = self.store.clock_ms - self.alive_ms.get(("txn", txn_id), 0)
            if txn.reason == TIMED_OUT and silent_ms <= TIMEOUT_MS:
                self.fail(f"txnid:{txn_id} timed out {silent_ms} ms after its heartbeat")
            if "deadlock" in (txn.reason or ""):
                self._check_victim(txn_id, txn.reason or "")

    def _check_commit(self, txn_id: int) -> None:
        """Whoever changed the same was over before this one began, or begins now."""
        commit_id = self.store.txns.last_txn
        mine = {place for place, operation in self.changed.get(txn_id, ()) if operation == "u"}
        for other, its_commit in self.committed.items():
            theirs = {place for place, operation in self.changed.get(other, ()) if operation == "u"}
            if mine & theirs and other != txn_id and its_commit >= txn_id and commit_id >= other:
                self.fail(f"txnid:{txn_id} and txnid:{other} both changed {mine & theirs}")
        self.committed[txn_id] = commit_id

    def _check_victim(self, txn_id: int, reason: str) -> None:
        """It is younger than all others of the cycle, and these are in each other's way."""
        others = re.findall(r"(txnid|lockid):(\d+)", reason.partition(", closed on")[0])
        if not others or any(kind == "txnid" and int(number) >= txn_id for kind, number in others):
            self.fail(f"txnid:{txn_id} was the victim of: {reason}")
        before = [shown.lock for request in self._old_requests.values() for shown in request]
        cycle = [(1, txn_id), *((int(kind == "txnid"), int(number)) for kind, number in others)]
        for owner, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            asks = [lock for lock in (*before, *self._asked) if not lock.is_acquired and _owner(lock) == owner]
            theirs = [lock for lock in (*before, *self._asked) if _owner(lock) == following]
            if not any(self._is_in_the_way(lock, mine, before) for mine in asks for lock in theirs):
                self.fail(f"{owner} did not wait for {following}: {reason}")

    def _check_locks(self) -> None:
        requests = self.store.txns.locks
        for lock_id, request in requests.items():
            first = request[0].lock
            if first.txn_id and not self._is_open(first.txn_id):
                self.fail(f"{first} of a transaction that is over")
            if self._old_requests.get(lock_id) is not request:
                self._has_new_requests = True
                self.newest_lock = max(self.newest_lock, lock_id)
                self._check_request(request)
        self._old_requests = dict(requests)

    def _check_request(self, request: list[ShownLock]) -> None:
        for shown in request:
            for others in self.store.txns.locks.values():
                for other in others:
                    if other is not shown:
                        self._check_pair(shown.lock, other.lock)

    def _check_pair(self, one: Lock, other: Lock) -> None:
        if one.lock_id == other.lock_id:
            if one.is_acquired != other.is_acquired:
                self.fail(f"{one} and {other} are of one request")
        elif self._exclude(one, other):
            if one.is_acquired and other.is_acquired and not self._are_of_one_caller(one, other):
                self.fail(f"{one} beside {other}")
            first, second = sorted((one, other), key=lambda lock: lock.lock_id)
            everyone = [shown.lock for request in self.store.txns.locks.values() for shown in request]
            if not second.is_acquired or first.is_acquired or self._may_overtake(second):
                return
            if not self._may_pass(second, first, everyone):
                self.fail(f"{second} overtook {first}")

    def _may_overtake(self, lock: Lock) -> bool:
        return False

    def _are_of_one_caller(self, one: Lock, other: Lock) -> bool:
        return False

    def _check_kept(self) -> None:
        """Acquired locks stay until they are given up, or their owner was silent or is over."""
        for lock_id, txn_id in list(self.acquired.items()):
            if lock_id in self.store.txns.locks:
                continue
            del self.acquired[lock_id]
            silent_ms = self.store.clock_ms - self.alive_ms.get(("lock", lock_id), 0)
            if txn_id:
                if self._is_open(txn_id):
                    self.fail(f"lockid:{lock_id} of open txnid:{txn_id} is gone")
            elif lock_id not in self.given_up and silent_ms <= TIMEOUT_MS:
                self.fail(f"lockid:{lock_id} is gone {silent_ms} ms after its heartbeat")

    def _check_cycles(self) -> None:
        """Somebody must be able to go on: no transaction waits, through others, for itself."""
        locks = [shown.lock for request in self.store.txns.locks.values() for shown in request]
        edges: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for waiting in locks:
            if not waiting.is_acquired:
                edges.setdefault(_owner(waiting), set()).update(
                    _owner(other) for other in locks if self._is_in_the_way(other, waiting, locks)
                )
        for start in edges:
            seen: set[tuple[int, int]] = set()
            front = set(edges[start])
            while front:
                seen |= front
                front = {following for owner in front for following in edges.get(owner, ())} - seen
            if start in seen:
                self.fail(f"{start} waits for itself")

    def _is_blocked(self, request: list[Lock]) -> bool:
        others = [shown.lock for shown in self.store.txns.shown_locks(LockFilter())]
        return any(self._is_in_the_way(other, mine, others) for mine in request for other in others)

    def _is_in_the_way(self, other: Lock, mine: Lock, everyone: list[Lock]) -> bool:
        """It is held, or waits and came earlier, unless mine may pass."""
        if not self._exclude(mine, other):
            return False
        return other.is_acquired or (other.lock_id < mine.lock_id and not self._may_pass(mine, other, everyone))

    def _may_pass(self, mine: Lock, waiting: Lock, everyone: list[Lock]) -> bool:
        """The waiting request, in any component, waits for something else that the same transaction holds."""
        held = [
            one
            for one in everyone
            if one.is_acquired and one.txn_id and one.txn_id == mine.txn_id and one.lock_id != mine.lock_id
        ]
        return any(self._exclude(one, part) for one in held for part in everyone if part.lock_id == waiting.lock_id)

    def _exclude(self, one: Lock, other: Lock) -> bool:
        return _owner(one) != _owner(other) and exclude(
            (one.target, one.type, one.shares_writes), (other.target, other.type, other.shares_writes)
        )

    def _state(self, txn_id: int) -> TxnStatus | None:
        txn = self.store.txns.known.get(txn_id)
        return None if txn is None else txn.state

    def _is_open(self, txn_id: int) -> bool:
        return self._state(txn_id) is TxnStatus.OPEN


def _owner(lock: Lock) -> tuple[int, int]:
    return (1, lock.txn_id) if lock.txn_id else (0, lock.lock_id)
