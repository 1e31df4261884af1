"""Pairs of calls of transactions and locks: the second needs the id that the first was given."""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from benchmarks.peer.caller import Caller, Prepared
from benchmarks.peer.content import DATABASE
from benchmarks.peer.load import MakeScript, Script, Step
from benchmarks.peer.measuring import Loaded, Operation, Single, Steps
from benchmarks.peer.sides import Side
from benchmarks.peer.speech import ID, FillId, Speech
from hms_gateway.rpc.structs import (
    CommitTxnRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    ShowLocksRequest,
    UnlockRequest,
)

OPEN = OpenTxnRequest(1, "bench", "localhost")
HELD, HELD_EACH = 10_000, 100


def pairs(clients: Sequence[int]) -> Iterator[Operation]:
    for count in clients:
        yield Loaded("open_txns + commit_txn", count, open_and_commit)
    for count in clients:
        yield Loaded("lock + unlock", count, lock_and_unlock)


def many_held() -> Iterator[Operation]:
    """What 10,000 held locks cost; they stay until they expire."""
    held = set[str]()
    yield Steps("lock + unlock, none held", lambda bench, side, caller: _lock_one(caller))
    yield Steps("lock + unlock, 10,000 held", lambda bench, side, caller: _hold_and_lock(side, caller, held))
    yield Single("show_locks, 10,000", lambda side, caller: _shown(caller))


def open_and_commit(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    return [_pair(caller, "open_txns", [OPEN], "commit_txn", [CommitTxnRequest(ID)])] * clients


def lock_and_unlock(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    """Each client locks a table of its own."""
    made = []
    for number in range(clients):
        request = lock_request(f"locked_{number:05}")
        made.append(_pair(caller, "lock", [request], "unlock", [UnlockRequest(ID)]))
    return made


def lock_request(*tables: str) -> LockRequest:
    components = [LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, DATABASE, name) for name in tables]
    return LockRequest(components, user="bench", hostname="localhost")


def _pair(caller: Caller, first: str, arguments: list[Any], second: str, others: list[Any]) -> MakeScript:
    """Both replies have the same size every time, so one pair is made to see it."""
    speech = caller.speech
    begin, end = speech.request(first, *arguments), speech.request_with_id(second, *others)
    begin_bytes, head = caller.seen(begin)
    end_bytes, _ = caller.seen(end(speech.id_in(head)))
    return lambda client: _script(speech, begin, begin_bytes, end, end_bytes)


def _script(speech: Speech, begin: bytes, begin_bytes: int | None, end: FillId, end_bytes: int | None) -> Script:
    while True:
        head = yield Step(begin, begin_bytes, None)
        yield Step(end(speech.id_in(head)), end_bytes, "call")


def _lock_one(caller: Caller) -> Iterator[list[float]]:
    script = _pair(caller, "lock", [lock_request("locked_alone")], "unlock", [UnlockRequest(ID)])(0)
    while True:
        yield [_timed_pair(caller, script) for _ in range(50)]


def _timed_pair(caller: Caller, script: Script) -> float:
    """The script stands before a pair; it does so again afterwards."""
    first = next(script)
    began = perf_counter()
    _, head = caller.seen(first.sent)
    second = script.send(head)
    caller.seen(second.sent)
    return perf_counter() - began


def _hold_and_lock(side: Side, caller: Caller, held: set[str]) -> Iterator[list[float]]:
    for first in range(0, HELD if side.data not in held else 0, HELD_EACH):
        tables = [f"held_{number:05}" for number in range(first, first + HELD_EACH)]
        caller.call("lock", lock_request(*tables))
    held.add(side.data)
    yield from _lock_one(caller)


def _shown(caller: Caller) -> tuple[Prepared, int]:
    prepared, _ = caller.prepare_and_count("show_locks", ShowLocksRequest())
    return prepared, len(caller.call("show_locks", ShowLocksRequest()).locks)
