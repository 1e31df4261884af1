"""A batch gives what its calls give one by one and what the model in memory gives, and leaves the same rows behind."""

import random
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.sql.base import Generative

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.rpc.structs import LockType, MetaException
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.suspension import Result
from hms_gateway.storage.dialects import parse_url, writing_engine
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.schema.txn import COMPLETED_COMPONENTS, LOCKS, TXNS, WRITE_SETS
from hms_gateway.storage.txn.batch import Job, Reading
from hms_gateway.storage.txn.txns import SqlTxnReads
from hms_gateway.storage.writing.thread_writer import Batch
from hms_gateway.txn.ports.txn import Client, LockFilter, TxnWork
from hms_gateway.txn.rules.locks import STRENGTH, Lock, TxnId, weakest_conflicting
from hms_gateway.txn.rules.names import CommittedRefusal, target
from hms_gateway.txn.rules.transactions import TxnOperation, Write
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from tests.simulation.txn_memory import MemoryStore, MemoryTxns
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock
from tests.support.sample import sample

SEEDS = sample(6, of=100)
ROUNDS = 14
WHO = Client("who", "host", "agent")
GIVEN_IDS = ("component_id", "write_set_id")
PLACES = [
    target("d"),
    target("d", "t"),
    target("d", "u"),
    target("d", "t", "p=1"),
    target("d", "t", "p=1/q=1"),
    target("e", "v"),
]
TYPES = [LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE]


class Side:
    """The services, whose units of work are not run by a store."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.locks = LockService(None, TxnSettings(timeout_ms=100_000))
        self.txns = TransactionService(None, self.locks, TxnSettings(timeout_ms=100_000))

    def work(self, call: tuple[Any, ...]) -> Any:
        name, *arguments = call
        service = self.txns if name in ("open", "commit", "heartbeat", "abort") else self.locks
        named = {"checks_writes": True} if name == "commit" else {}
        return getattr(service, name)(*arguments, **named).work


class Database(Side):
    """A database of its own."""

    def __init__(self, file: Path, clock: ManualClock) -> None:
        super().__init__(clock)
        place_empty_database(file)
        self.engine = writing_engine(parse_url(f"sqlite:///{file}"))

    def state(self) -> Any:
        """What can be seen of transactions and locks."""
        with self.engine.connect() as connection:
            return state(SqlTxnReads(connection))

    def run(self, works: list[Any], keys: list[CallKey | None] | None = None) -> list[str]:
        jobs = [Job(work, Future(), key) for work, key in zip(works, keys or [None] * len(works), strict=True)]
        return [shown(outcome) for outcome in Batch(self.engine, self._clock, jobs).run()]

    def rows(self) -> dict[str, list[Any]]:
        """Without the ids that the database gives: those depend on which rows go before others come."""
        tables = {table.name: table.c for table in METADATA.sorted_tables if table.name != "warehouse_moves"}
        chosen = {name: [each for each in columns if each.name not in GIVEN_IDS] for name, columns in tables.items()}
        with self.engine.connect() as connection:
            return {name: sorted(map(repr, connection.execute(select(*columns)))) for name, columns in chosen.items()}


class Model(Side):
    """The same in memory, one call after the other."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self._memory = MemoryStore()
        self._memory.txns = ModelTxns(self._memory)

    def state(self) -> Any:
        return state(self._memory.txns)

    def run(self, works: list[Any], keys: list[CallKey | None] | None = None) -> list[str]:
        self._memory.clock_ms = self._clock.milliseconds()
        return [shown(self._outcome(work)) for work in works]

    def _outcome(self, work: Any) -> Any:
        try:
            return Result(self._memory.write(work))
        except Exception as error:
            return Result(None, error)


class ModelTxns(MemoryTxns):
    """What is past its time is taken away with what is in the way, so the model has to look at the same locks."""

    def conflict_candidates(self, request: Sequence[Lock], limit: int | None = None) -> list[Lock]:
        def matters(lock: Lock, mine: Lock) -> bool:
            return mine.target.reaches(lock.target) and STRENGTH[lock.type] >= weakest_conflicting(mine.type)

        found = super().conflict_candidates(request)
        return [lock for lock in found if any(matters(lock, mine) for mine in request)]


def state(txns: Any) -> Any:
    shown = sorted(txns.shown_locks(LockFilter()), key=lambda one: (one.lock.lock_id, one.lock.number))
    return txns.high_water_mark(), txns.unfinished_txns(), shown


def shown(outcome: Any) -> str:
    value = outcome.value if outcome.failure is None else outcome.failure
    return repr(value.reason if isinstance(value, CommittedRefusal) else value)


def unannounced(work: Any) -> Any:
    """The same work, which does not say what it will ask for."""
    return TxnWork(work.work)


def general(work: Any) -> Any:
    """The same work as a plain function that storage knows nothing about."""
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
            writes = Write(place, dice.choice([TxnOperation.INSERT, TxnOperation.UPDATE]))
            wanted.append(ComponentSpec(place, dice.choice(TYPES), writes if txn_id and dice.random() < 0.4 else None))
        return "lock", LockSpec(wanted, WHO, txn_id, shares_writes=dice.random() < 0.3)
    return name, some_id


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_together_is_as_one_by_one(seed: int, tmp_path: Path) -> None:
    dice, clock = random.Random(seed), ManualClock()
    model = Model(clock)
    together, missing, alone = (Database(tmp_path / f"{name}.db", clock) for name in ("together", "missing", "alone"))
    for _ in range(ROUNDS):
        calls = [random_call(dice, 25) for _ in range(dice.randint(1, 9))]
        expected = model.run([model.work(call) for call in calls])
        assert together.run([together.work(call) for call in calls]) == expected, calls
        assert missing.run([unannounced(missing.work(call)) for call in calls]) == expected, calls
        assert [alone.run([general(alone.work(call))])[0] for call in calls] == expected, calls
        assert together.state() == model.state(), calls
        assert together.rows() == missing.rows() == alone.rows(), calls
        clock.advance(dice.choice([0, 1, 60, 150]))


def test_a_failure_takes_back_only_its_own_changes(tmp_path: Path) -> None:
    side = Database(tmp_path / "one.db", ManualClock())

    def fails(txns: Any) -> None:
        txns.insert_txns(2, 0, WHO)
        txns.next_lock_id()
        raise MetaException("no")

    works = [side.work(("open", 1, WHO)), TxnWork(fails, opens=True), side.work(("open", 1, WHO))]
    assert side.run(works) == ["[1]", repr(MetaException("no")), "[2]"]
    assert len(side.rows()[TXNS.name]) == 2


def test_a_change_with_a_used_key_is_refused(tmp_path: Path) -> None:
    side = Database(tmp_path / "one.db", ManualClock())
    key = CallKey("who", "key", "open_txns", keeps_value=True)
    again, other = CallKey("who", "key", "open_txns"), CallKey("else", "key", "open_txns")
    works = [side.work(("open", 1, WHO)) for _ in range(3)]
    assert side.run(works, [key, again, other]) == ["[1]", repr(AlreadyConcluded("key")), "[2]"]
    assert side.run(works[:1], [again]) == [repr(AlreadyConcluded("key"))]
    assert len(side.rows()["outcomes"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("place", [target("d", "t"), target("d", "t", "p=1"), target("d")], ids=str)
def test_of_many_locks_the_first_that_matter_are_read(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_gateway.storage.txn.batch.CANDIDATES_MAX", 3)
    side = Database(tmp_path / "one.db", ManualClock())
    read, write = (LockSpec([ComponentSpec(place, type)], WHO) for type in (LockType.SHARED_READ, LockType.EXCLUSIVE))
    other = LockSpec([ComponentSpec(target("d", "t", "p=2"), LockType.SHARED_READ)], WHO)
    for call in [other] * 5:
        side.run([side.work(("lock", call))])
    outcome = side.run([side.work(("lock", call)) for call in (read, write, read)])
    assert ["ACQUIRED" in each for each in outcome] == [True, False, False]
    assert len(side.rows()[LOCKS.name]) == 8


@pytest.mark.parametrize(("held", "wanted"), [("p=1/q=1", "p=1"), ("p=1", "p=1/q=1"), ("p=1", "p=1/q=1/r=1")])
def test_of_many_locks_those_above_and_below_a_partition_are_read(
    held: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_gateway.storage.txn.batch.CANDIDATES_MAX", 3)
    monkeypatch.setattr("hms_gateway.txn.services.locks._CANDIDATES_AT_FIRST", 3)
    side = Database(tmp_path / "one.db", ManualClock())

    def lock(partition: str) -> bool:
        component = ComponentSpec(target("d", "t", partition), LockType.EXCLUSIVE)
        (outcome,) = side.run([side.work(("lock", LockSpec([component], WHO)))])
        return "ACQUIRED" in outcome

    assert all(lock(f"p={number}") for number in range(10, 20))
    assert lock(held)
    assert not lock(wanted)
    assert lock("p=2/q=1")


def test_changes_of_one_call_are_seen_by_the_next(tmp_path: Path) -> None:
    """Also those that nobody outside of the batch can know yet."""
    side = Database(tmp_path / "one.db", ManualClock())
    lock = LockSpec(
        [ComponentSpec(target("d", "t"), LockType.EXCLUSIVE, Write(target("d", "t"), TxnOperation.UPDATE))],
        WHO,
        TxnId(1),
    )
    calls = [("open", 2, WHO), ("lock", lock), ("check_lock", 1), ("heartbeat", 1, 2), ("commit", 1), ("check_lock", 1)]
    outcome = side.run([side.work(call) for call in [*calls, ("abort", 2), ("commit", 2)]])
    assert outcome[0] == "[1, 2]"
    assert ["ACQUIRED" in each for each in outcome[1:3]] == [True, True]
    assert [each.partition("(")[0] for each in outcome[3:]] == [
        "None",
        "True",
        "NoSuchLockException",
        "None",
        "TxnAbortedException",
    ]
    rows = side.rows()
    assert [len(rows[table.name]) for table in (TXNS, LOCKS, WRITE_SETS, COMPLETED_COMPONENTS)] == [2, 0, 1, 1]


def test_no_statement_is_made_for_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made for a call would also be kept as compiled, for ever."""
    side = Database(tmp_path / "one.db", ManualClock())
    made: list[object] = []
    generate = Generative._generate

    def counting(statement: Any) -> Any:
        made.append(statement)
        return generate(statement)

    def write_and_commit(txn_id: int) -> None:
        place = target("d", "t")
        component = ComponentSpec(place, LockType.SHARED_WRITE, Write(place, TxnOperation.UPDATE))
        for call in (("open", 1, WHO), ("lock", LockSpec([component], WHO, TxnId(txn_id))), ("commit", txn_id)):
            side.run([side.work(call)])

    write_and_commit(1)
    monkeypatch.setattr(Generative, "_generate", counting)
    write_and_commit(2)
    assert made == []


def test_what_the_database_refuses_ends_the_batch(tmp_path: Path) -> None:
    side = Database(tmp_path / "one.db", ManualClock())

    def reads_nonsense(txns: Any) -> None:
        txns._load(Reading(Statement(text("SELECT nonsense"), {}), print))

    with pytest.raises(StoreError):
        side.run([side.work(("open", 1, WHO)), TxnWork(reads_nonsense)])
    assert side.rows()[TXNS.name] == []
