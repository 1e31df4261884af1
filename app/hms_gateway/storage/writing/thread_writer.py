"""The one thread that changes the database: it takes every unit of work that is waiting and commits them once.

Each runs in a savepoint, those on transactions and locks in a batch (`storage.txn.batch`), so one that raises undoes
itself only. No caller hears of success before the commit is durable (design D9). Across processes SQLite's write lock,
elsewhere a lock on the catalog's row keeps "one at a time".
"""

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hms_gateway.metastore.ports.store import CatalogWork, EventId, OutcomeUnknown, StoreUnavailable
from hms_gateway.runtime.call_keys import current_call_key, recalled_value
from hms_gateway.runtime.call_record import WorkTimes, current_notes, set_notes, shared_notes
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import current_actor
from hms_gateway.runtime.suspension import Done, Job, Later, Result, awaited
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.catalog.batch import CatalogBatch
from hms_gateway.storage.dialects import dialect_of
from hms_gateway.storage.dialects.base import Retryable
from hms_gateway.storage.dialects.kinds import (
    as_unavailable,
    is_disconnect,
    is_driver_error,
    is_worth_another_try,
    translated,
)
from hms_gateway.storage.dialects.statements import ConnectionLost, Statement
from hms_gateway.storage.txn.batch import ConnectedBatch
from hms_gateway.storage.txn.batch_statements import LOCK_CATALOG
from hms_gateway.storage.writing.availability import Availability
from hms_gateway.storage.writing.pipelined_writer import (
    BATCH_MAX,
    Pipeline,
    PipelinedWriter,
    deliver_results,
)
from hms_gateway.storage.writing.transaction import SqlTransaction
from hms_gateway.txn.ports.txn import TxnWork

T = TypeVar("T")

ATTEMPTS_MAX: Final = 4


class ThreadWriter:
    """Runs units of work one after the other in a thread of its own."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        waiting_max: int,
        connect: Callable[[], Pipeline] | None = None,
        times: WorkTimes | None = None,
        availability: Availability | None = None,
    ) -> None:
        """`connect` gives the connection of `PipelinedWriter`, where the database is one for it."""
        self._times = times or WorkTimes()
        self._availability = availability or Availability()
        self._event_loop = connect and PipelinedWriter(connect, dialect_of(engine), clock, waiting_max, self._submit)
        self._engine = engine
        self._clock = clock
        self._waiting_max = waiting_max
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[SqlTransaction], T]) -> T:
        """Run `work` and return its result when it is committed. Raises what `work` raises, and StoreError.

        Within the repetition of a call that made its change before, that change's result is returned and nothing run.
        """
        assert threading.current_thread() is not self._thread, "a unit of work cannot wait for another one"
        recalled = recalled_value()
        if recalled is not None:
            return cast(T, recalled.value)
        outcome: Future[T] = Future()
        begin = time.perf_counter()
        self._submit(Job(work, outcome, current_call_key(), current_actor(), current_notes()))
        try:
            value = awaited(outcome)
        except BaseException as error:
            self._availability.note("write", error)
            raise
        else:
            self._availability.note("write")
            return value
        finally:
            self._times.note("write", begin)

    def start(self, work: TxnWork[Any], done: Done) -> None:
        """Do as `write`, but wait for nothing: the result is handed over in the running event loop."""
        begin = time.perf_counter()

        def noted(result: Result) -> None:
            self._times.note("write", begin)
            self._availability.note("write", result.failure)
            done(result)

        job = Job(work, Later(noted, asyncio.get_running_loop()), current_call_key(), notes=current_notes())
        if self._event_loop is None or not self._event_loop.take(job):
            self._submit(job)

    def _submit(self, job: Job) -> None:
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("the store is closed")
            if self._jobs.qsize() >= self._waiting_max:
                text = f"more than {self._waiting_max} writes are waiting (limit write_queue_max)"
                raise StoreUnavailable(text, limit="write_queue_max")
            self._jobs.put(job)

    @property
    def waiting(self) -> int:
        """Units of work that are not begun."""
        return self._jobs.qsize() + (0 if self._event_loop is None else self._event_loop.waiting)

    def close(self) -> None:
        """Finish what is waiting, take nothing more."""
        if self._event_loop is not None:
            self._event_loop.close()
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch = [job]
            is_last = False
            while len(batch) < BATCH_MAX and not self._jobs.empty():
                following = self._jobs.get()
                if following is None:
                    is_last = True
                    break
                batch.append(following)
            set_notes(shared_notes(job.notes for job in batch))
            self._finish(batch)
            if is_last:
                return

    def _finish(self, batch: list[Job]) -> None:
        """Run a batch, again when the database asks for it or went away before the commit, and deliver the outcomes."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            running = Batch(self._engine, self._clock, batch)
            try:
                results = running.run()
            except (Retryable, StoreUnavailable) as error:
                forget_frames(error)
                if attempt < ATTEMPTS_MAX and is_worth_another_try(self._engine, error):
                    continue
                results = [Result(None, as_unavailable(error))] * len(batch)
            except BaseException as error:
                if len(batch) > 1 and not isinstance(error, OutcomeUnknown):
                    # Nothing was changed because of one of them: the others get their own outcome.
                    forget_frames(error)
                    half = len(batch) // 2
                    self._finish(batch[:half])
                    self._finish(batch[half:])
                    return
                results = [Result(None, error)] * len(batch)
            deliver_results(batch, results)
            return


class Batch:
    def __init__(self, engine: Engine, clock: Clock, jobs: list[Job]) -> None:
        self._engine = engine
        self._clock = clock
        self._jobs = jobs

    def run(self) -> list[Result]:
        """What became of each job. Raises StoreError or Retryable for all of them: then nothing was changed."""
        with translated(self._engine), self._engine.connect() as connection:
            if all(map(_is_about_txns, self._jobs)):
                alone = ConnectedBatch(connection, self._clock, self._jobs)
                alone.read_ahead([Statement(LOCK_CATALOG, {})])
                results = self._run_batched(alone)
                self._commit(alone)
                return results
            batch = CatalogBatch(connection, self._clock)
            batch.begin(Statement(LOCK_CATALOG, {}), *self._foreseen())
            results = []
            for is_about_txns, jobs in itertools.groupby(self._jobs, _is_about_txns):
                if is_about_txns:
                    batch.flush()
                    results += self._run_together(batch, list(jobs))
                    batch.forget_calls()
                    continue
                for job in jobs:
                    results.append(self._run_job(job, SqlTransaction(batch, job.actor)))
            self._commit(batch)
            return results

    def _foreseen(self) -> tuple[list[CatalogWork[Any]], list[tuple[str, str]]]:
        """What the jobs say they will ask for, and the keys of those that the catalog's batch concludes."""
        works = [job.work for job in self._jobs if isinstance(job.work, CatalogWork)]
        keys = [job.open_key for job in self._jobs if not isinstance(job.work, TxnWork)]
        return works, [(key.principal, key.text) for key in keys if key is not None]

    def _run_together(self, catalog: CatalogBatch, jobs: list[Job]) -> list[Result]:
        """Their results, between units of work on the catalog."""
        batch = ConnectedBatch(catalog.connection, self._clock, jobs)
        batch.last_event_id = catalog.last_event_id
        batch.read_ahead()
        results = self._run_batched(batch)
        batch.write()
        catalog.last_event_id = EventId(batch.last_event_id)
        return results

    def _run_batched(self, batch: ConnectedBatch) -> list[Result]:
        """A statement that the database refuses ends the batch."""
        results = []
        for job in batch.jobs:
            try:
                results.append(Result(batch.run(job, self._clock.seconds())))
            except BaseException as error:
                if self._is_of_database(error):
                    raise
                results.append(Result(None, self._reason(error)))
        return results

    def _run_job(self, job: Job, transaction: SqlTransaction) -> Result:
        try:
            key = job.open_key
            if key is not None:
                transaction.refuse_second(key)
            value = job.work(transaction)
            if key is not None:
                transaction.conclude(key, value)
        except BaseException as error:
            # Without a savepoint what the database refuses is refused to all of them.
            if is_disconnect(self._engine, error) or (
                self._is_of_database(error) and not transaction.is_behind_savepoint
            ):
                raise
            try:
                transaction.fail()
            except Exception as undone:
                # The database has ended the whole transaction already, as SQLite does where its disk is full.
                raise (error if self._is_of_database(error) else undone) from None
            return Result(None, self._reason(error))
        transaction.succeed()
        return Result(value)

    def _is_of_database(self, error: BaseException) -> bool:
        return isinstance(error, SQLAlchemyError) or is_driver_error(self._engine, error)

    def _reason(self, error: BaseException) -> BaseException:
        """What the caller gets: its own exceptions as they are, the driver's translated. Raises Retryable."""
        try:
            with translated(self._engine):
                raise error
        except Retryable:
            raise
        except BaseException as reason:
            return reason

    def _commit(self, batch: CatalogBatch | ConnectedBatch) -> None:
        notes, begin = current_notes(), time.perf_counter()
        try:
            batch.commit()
        except ConnectionLost as error:
            raise OutcomeUnknown("the connection to the database was lost while committing") from error
        if notes is not None:
            notes.add("commit", begin)


def _is_about_txns(job: Job) -> bool:
    return isinstance(job.work, TxnWork)
