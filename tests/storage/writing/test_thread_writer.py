"""The writer in its thread: what becomes of a batch of which the database refuses a statement."""

import resource
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select, text

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreFailure, StoreUnavailable
from hms_gateway.rpc.structs import TxnType
from hms_gateway.storage.dialects import parse_url, writing_engine
from hms_gateway.storage.dialects.sqlite import WRITER_CACHE_KIB
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.schema.catalog import DATABASES
from hms_gateway.storage.schema.txn import TXNS
from hms_gateway.storage.txn.batch import Job, Reading
from hms_gateway.storage.writing import thread_writer
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from hms_gateway.txn.ports.txn import Client, TxnWork
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS

WHO = Client("who", "host", "agent")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    place_empty_database(tmp_path / "one.db")
    engine = writing_engine(parse_url(f"sqlite:///{tmp_path / 'one.db'}"))
    yield engine
    engine.dispose()


@pytest.fixture
def writer(engine: Engine) -> Iterator[ThreadWriter]:
    writer = ThreadWriter(engine, ManualClock(), 100)
    yield writer
    writer.close()


def opens(txns: Any) -> list[int]:
    return list(txns.insert_txns(1, TxnType.DEFAULT, WHO))


def reads_nonsense(txns: Any) -> None:
    txns._load(Reading(Statement(text("SELECT nonsense"), {}), print))


def in_one_batch(writer: ThreadWriter, works: list[Any]) -> "list[Future[Any]]":
    """They all wait when the writer is done with what it does first."""
    is_waiting, may_end = threading.Event(), threading.Event()

    def waits(transaction: Any) -> None:
        is_waiting.set()
        assert may_end.wait(PATIENCE_SECONDS)

    writer._submit(Job(waits, Future(), None))
    assert is_waiting.wait(PATIENCE_SECONDS)
    outcomes: list[Future[Any]] = [Future() for _ in works]
    for work, outcome in zip(works, outcomes, strict=True):
        writer._submit(Job(work, outcome, None))
    may_end.set()
    return outcomes


def test_what_the_database_refuses_one_call_fails_that_call_only(writer: ThreadWriter, engine: Engine) -> None:
    works = [TxnWork(opens, opens=True), TxnWork(reads_nonsense), TxnWork(opens, opens=True), lambda _: "else"]
    before, refused, after, other = in_one_batch(writer, works)
    assert (before.result(PATIENCE_SECONDS), after.result(PATIENCE_SECONDS), other.result(PATIENCE_SECONDS)) == (
        [1],
        [2],
        "else",
    )
    with pytest.raises(StoreFailure, match="the database refused a statement"):
        refused.result(PATIENCE_SECONDS)
    with engine.connect() as connection:
        assert len(connection.execute(select(TXNS)).all()) == 2


def test_whom_the_database_refuses_is_found_by_halves(writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = thread_writer.Batch.run

    def running(batch: Any) -> Any:
        sizes.append(len(batch._jobs))
        return run(batch)

    monkeypatch.setattr(thread_writer.Batch, "run", running)
    outcomes = in_one_batch(writer, [TxnWork(opens, opens=True)] * 15 + [TxnWork(reads_nonsense)])
    assert [outcome.result(PATIENCE_SECONDS) for outcome in outcomes[:15]] == [[number] for number in range(1, 16)]
    assert isinstance(outcomes[15].exception(PATIENCE_SECONDS), StoreFailure)
    assert sizes == [1, 16, 8, 8, 4, 4, 2, 2, 1, 1]


def test_a_batch_that_may_have_been_committed_is_not_repeated(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    commit = thread_writer.Batch._commit

    def commits(batch: Any, changed: Any) -> None:
        runs.append(len(batch._jobs))
        if len(batch._jobs) > 1:
            raise OutcomeUnknown("the connection to the database was lost while committing")
        commit(batch, changed)

    monkeypatch.setattr(thread_writer.Batch, "_commit", commits)
    for outcome in in_one_batch(writer, [TxnWork(opens, opens=True)] * 2):
        with pytest.raises(OutcomeUnknown):
            outcome.result(PATIENCE_SECONDS)
    assert runs == [1, 2]


def test_what_ended_the_whole_transaction_is_told(writer: ThreadWriter, engine: Engine) -> None:
    """SQLite takes back everything where it cannot write, and knows no savepoint afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    row = {"description": "x" * 1_000_000, "location": "file:/d", "parameters": "{}"}
    file = Path(str(engine.url.database))

    def fills(tx: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 1_000_000, limits[1]))
        for number in range(2 * WRITER_CACHE_KIB // 1_000):
            tx.connection.execute(insert(DATABASES).values(name=str(number), **row))

    try:
        (outcome,) = in_one_batch(writer, [fills])
        with pytest.raises(StoreUnavailable, match="the database file cannot be used: reading or writing it failed"):
            outcome.result(PATIENCE_SECONDS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (outcome,) = in_one_batch(writer, [lambda tx: tx.database("0")])
    assert outcome.result(PATIENCE_SECONDS) is None
