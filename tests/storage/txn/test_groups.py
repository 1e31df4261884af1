"""Units of work that run together give what they give one by one, and leave the same rows behind."""

import os
import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.clock import ManualClock
from hms_gateway.storage.dialects import parse_url, writing_engine
from hms_gateway.storage.migrations.revisions import migrate_engine
from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.schema.txn import LOCKS, TXNS
from hms_gateway.storage.writing.jobs import Failure, Job, Success
from hms_gateway.storage.writing.writer import _Batch
from hms_gateway.structs import LockType, MetaException
from hms_gateway.txn.ports.txn import Client, TxnWork
from hms_gateway.txn.rules.errors import Refused
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.rules.transactions import Operation, Write
from hms_gateway.txn.services.locks import LockCall, LockService, Wanted
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService

SEEDS = int(os.environ.get("TXN_GROUP_SEEDS", "6"))
ROUNDS = 14
WHO = Client("who", "host", "agent")
# Of tables with the same name in two databases the plain way looks at both, and may clear away more.
PLACES = [target("d"), target("d", "t"), target("d", "u"), target("d", "t", "p=1"), target("e", "v")]
TYPES = [LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE]


class Captured(Exception):
    pass


class CapturingStore:
    """Gives the units of work of a service instead of doing them."""

    def __init__(self) -> None:
        self.work: Any = None

    def write(self, work: Any) -> Any:
        self.work = work
        raise Captured

    def read(self, work: Any) -> Any:
        raise AssertionError


class Side:
    """A database of its own."""

    def __init__(self, file: Path, clock: ManualClock) -> None:
        self.engine = writing_engine(parse_url(f"sqlite:///{file}"))
        migrate_engine(self.engine)
        self._clock = clock
        self._store = CapturingStore()
        self.locks = LockService(self._store, TxnSettings(timeout_ms=100_000))
        self.txns = TransactionService(self._store, self.locks, TxnSettings(timeout_ms=100_000))

    def work(self, call: tuple[Any, ...]) -> Any:
        name, *arguments = call
        service = self.txns if name in ("open", "commit", "heartbeat", "abort") else self.locks
        named = {"checks_writes": True} if name == "commit" else {}
        with pytest.raises(Captured):
            getattr(service, name)(*arguments, **named)
        return self._store.work

    def run(self, works: list[Any], keys: list[CallKey | None] | None = None) -> list[str]:
        jobs = [Job(work, Future(), key) for work, key in zip(works, keys or [None] * len(works), strict=True)]
        return [shown(outcome) for outcome in _Batch(self.engine, self._clock, jobs).run()]

    def rows(self) -> dict[str, list[Any]]:
        with self.engine.connect() as connection:
            tables = (table for table in METADATA.sorted_tables if table.name != "warehouse_moves")
            return {table.name: sorted(map(repr, connection.execute(select(table)))) for table in tables}


def shown(outcome: Any) -> str:
    value = outcome.value if isinstance(outcome, Success) else outcome.reason
    return repr(value.reason if isinstance(value, Refused) else value)


def one_by_one(work: Any) -> Any:
    """The same work as the plain function that storage knows nothing about."""
    return lambda transaction: work(transaction)


def random_call(dice: random.Random, ids_max: int) -> tuple[Any, ...]:
    name = dice.choice(["open", "commit", "commit", "heartbeat", "abort", "lock", "lock", "check_lock", "unlock"])
    some_id = dice.randint(0, ids_max)
    if name == "open":
        return "open", dice.choice([1, 1, 1, 3, 0]), WHO
    if name == "heartbeat":
        return "heartbeat", dice.choice([0, some_id]), dice.randint(1, ids_max)
    if name == "lock":
        txn_id = TxnId(dice.choice([0, some_id]))
        wanted = []
        for place in dice.sample(PLACES, dice.choice([1, 1, 2])):
            writes = Write(place, dice.choice([Operation.INSERT, Operation.UPDATE]))
            wanted.append(Wanted(place, dice.choice(TYPES), writes if txn_id and dice.random() < 0.4 else None))
        return "lock", LockCall(wanted, WHO, txn_id, shares_writes=dice.random() < 0.3)
    return name, some_id


@pytest.mark.parametrize("seed", range(SEEDS))
def test_together_is_as_one_by_one(seed: int, tmp_path: Path) -> None:
    dice, clock = random.Random(seed), ManualClock()
    together, alone = Side(tmp_path / "together.db", clock), Side(tmp_path / "alone.db", clock)
    for _ in range(ROUNDS):
        calls = [random_call(dice, 25) for _ in range(dice.randint(1, 9))]
        expected = [alone.run([one_by_one(alone.work(call))])[0] for call in calls]
        assert together.run([together.work(call) for call in calls]) == expected, calls
        assert together.rows() == alone.rows(), calls
        clock.advance(dice.choice([0, 1, 60, 150]))


def test_a_failure_takes_back_only_its_own_changes(tmp_path: Path) -> None:
    side = Side(tmp_path / "one.db", ManualClock())

    def fails(txns: Any) -> None:
        txns.insert_txns(2, 0, WHO)
        txns.next_lock_id()
        raise MetaException("no")

    works = [side.work(("open", 1, WHO)), TxnWork(fails, opens=True), side.work(("open", 1, WHO))]
    assert side.run(works) == ["[1]", repr(MetaException("no")), "[2]"]
    assert len(side.rows()[TXNS.name]) == 2


def test_a_change_with_a_used_key_is_refused(tmp_path: Path) -> None:
    side = Side(tmp_path / "one.db", ManualClock())
    key = CallKey("who", "key", "open_txns", keeps_value=True)
    again, other = CallKey("who", "key", "open_txns"), CallKey("else", "key", "open_txns")
    works = [side.work(("open", 1, WHO)) for _ in range(3)]
    assert side.run(works, [key, again, other]) == ["[1]", repr(AlreadyConcluded("key")), "[2]"]
    assert side.run(works[:1], [again]) == [repr(AlreadyConcluded("key"))]
    assert len(side.rows()["outcomes"]) == 2


def test_many_locks_nearby_are_left_to_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_gateway.storage.txn.groups.NEAR_ROWS_MAX", 3)
    side = Side(tmp_path / "one.db", ManualClock())
    read = LockCall([Wanted(target("d", "t"), LockType.SHARED_READ)], WHO)
    write = LockCall([Wanted(target("d", "t"), LockType.EXCLUSIVE)], WHO)
    for _ in range(5):
        side.run([side.work(("lock", read))])
    outcome = side.run([side.work(("lock", read)), side.work(("lock", write))])
    assert ["ACQUIRED" in each for each in outcome] == [True, False]
    assert len(side.rows()[LOCKS.name]) == 7
    assert not isinstance(outcome[0], Failure)
