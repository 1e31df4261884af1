"""The one thread that changes the database: it takes every unit of work that is waiting and commits them once.

Each runs in a savepoint, so one that raises undoes itself only, and no caller hears of success before the commit is
durable (design D9). Across processes SQLite's write lock, elsewhere a lock on the catalog's row keeps "one at a time".
"""

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from sqlalchemy import Connection, Engine, select, update
from sqlalchemy.exc import DBAPIError

from app.call_keys import CallKey, current_call_key, recalled_value
from app.clock import Clock
from app.deferral import Deliver, Done, Given, given_now, is_taking, take
from app.metastore.ports import EventId, OutcomeUnknown, StoreUnavailable
from app.storage.errors import Retryable, detail_of, is_disconnect, is_worth_another_try, translated
from app.storage.schema import CATALOG
from app.storage.snapshot import SqlTransaction
from app.storage.txn_groups import GroupJob, NeedsDatabase, TxnGroup
from app.txn.ports import TxnWork

T = TypeVar("T")

_log = logging.getLogger(__name__)

# A batch holds the database's write lock, which other processes wait for.
BATCH_MAX: Final = 500
ATTEMPTS_MAX: Final = 4
# After so many that had to run alone the rest of a batch does, too.
ALONE_MAX: Final = 3

_LOCK: Final = select(CATALOG.c.last_event_id).with_for_update()


class Later(NamedTuple):
    """Who is told, and by whom."""

    done: Done
    deliver: Deliver


class Job(NamedTuple):
    work: Callable[[SqlTransaction], Any]
    outcome: "Future[Any] | Later"
    key: CallKey | None


class Success(NamedTuple):
    value: Any


class Failure(NamedTuple):
    reason: BaseException


Outcome: TypeAlias = Success | Failure


class Writer:
    """Runs units of work one after the other in a thread of its own."""

    def __init__(self, engine: Engine, clock: Clock, waiting_max: int) -> None:
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
        if is_taking() and isinstance(work, TxnWork):
            take(partial(self._start, work, current_call_key()))
        given = given_now()
        if given is not None:
            return cast(T, given.get())
        recalled = recalled_value()
        if recalled is not None:
            return cast(T, recalled.value)
        outcome: Future[T] = Future()
        self._submit(Job(work, outcome, current_call_key()))
        return outcome.result()

    def _start(self, work: TxnWork[Any], key: CallKey | None, done: Done, deliver: Deliver) -> None:
        self._submit(Job(work, Later(done, deliver), key))

    def _submit(self, job: Job) -> None:
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("the store is closed")
            if self._jobs.qsize() >= self._waiting_max:
                raise StoreUnavailable(f"more than {self._waiting_max} writes are waiting (limit write_queue_max)")
            self._jobs.put(job)

    def close(self) -> None:
        """Finish what is waiting, take nothing more."""
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
            self._finish(batch)
            if is_last:
                return

    def _finish(self, batch: list[Job]) -> None:
        """Run a batch, again when the database asks for it or went away before the commit, and tell the callers."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                outcomes = _Batch(self._engine, self._clock, batch).run()
            except (Retryable, StoreUnavailable) as error:
                if attempt < ATTEMPTS_MAX and is_worth_another_try(self._engine, error):
                    continue
                outcomes = [Failure(StoreUnavailable(str(error), detail_of(error)))] * len(batch)
            except BaseException as error:
                outcomes = [Failure(error)] * len(batch)
            _tell(batch, outcomes)
            return


class _Batch:
    def __init__(self, engine: Engine, clock: Clock, jobs: list[Job]) -> None:
        self._engine = engine
        self._clock = clock
        self._jobs = jobs
        self._alone_count = 0

    def run(self) -> list[Outcome]:
        """What became of each job. Raises StoreError or Retryable for all of them: then nothing was changed."""
        with translated(self._engine), self._engine.connect() as connection:
            last_event_id = before = EventId(connection.execute(_LOCK).scalar_one())
            outcomes: list[Outcome] = []
            while len(outcomes) < len(self._jobs):
                together = self._alike(len(outcomes))
                if together:
                    outcomes += self._run_together(connection, together)
                if len(outcomes) == len(self._jobs):
                    break
                transaction = SqlTransaction(connection, last_event_id, self._clock)
                outcomes.append(self._run_job(self._jobs[len(outcomes)], transaction))
                if isinstance(outcomes[-1], Success):
                    last_event_id = transaction.last_event_id
            if last_event_id != before:
                connection.execute(update(CATALOG).values(last_event_id=last_event_id))
            self._commit(connection)
            return outcomes

    def _alike(self, first: int) -> list[Job]:
        """The jobs from there on that are about transactions and locks only; none when it did not pay so far."""
        if self._alone_count >= ALONE_MAX:
            return []
        return list(itertools.takewhile(lambda job: isinstance(job.work, TxnWork), self._jobs[first:]))

    def _run_together(self, connection: Connection, jobs: list[Job]) -> list[Outcome]:
        """What became of them, up to the first that has to run alone."""
        as_group = [GroupJob(job.work, _open_key(job)) for job in jobs if isinstance(job.work, TxnWork)]
        group = TxnGroup(connection.dialect.name, self._clock, as_group)
        _read(connection, group)
        outcomes: list[Outcome] = []
        for job in as_group:
            try:
                outcomes.append(Success(group.run(job, self._clock.seconds())))
            except NeedsDatabase:
                self._alone_count += 1
                break
            except BaseException as error:
                if is_disconnect(self._engine, error):
                    raise
                outcomes.append(Failure(self._reason(error)))
        for sql, values in group.changes():
            connection.execute(sql, values)
        return outcomes

    def _run_job(self, job: Job, transaction: SqlTransaction) -> Outcome:
        transaction.savepoint()
        try:
            key = _open_key(job)
            if key is not None:
                transaction.refuse_second(key)
            value = job.work(transaction)
            if key is not None:
                transaction.conclude(key, self._clock.seconds(), value)
            transaction.write_events()
        except BaseException as error:
            if is_disconnect(self._engine, error):
                raise
            transaction.roll_back()
            return Failure(self._reason(error))
        transaction.release()
        return Success(value)

    def _reason(self, error: BaseException) -> BaseException:
        """What the caller gets: its own exceptions as they are, the driver's translated. Raises Retryable."""
        try:
            with translated(self._engine):
                raise error
        except Retryable:
            raise
        except BaseException as reason:
            return reason

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except DBAPIError as error:
            if is_disconnect(self._engine, error):
                raise OutcomeUnknown("the connection to the database was lost while committing") from error
            raise


def _read(connection: Connection, group: TxnGroup) -> None:
    reading = group.reading()
    asked = next(reading, None)
    while asked is not None:
        rows = {name: connection.execute(sql, values).all() for name, (sql, values) in asked.items()}
        try:
            asked = reading.send(rows)
        except StopIteration:
            return


def _tell(batch: list[Job], outcomes: list[Outcome]) -> None:
    """Give the callers their outcomes, those who are told by the same `deliver` together."""
    later: dict[Deliver, list[tuple[Done, Given]]] = {}
    for job, outcome in zip(batch, outcomes, strict=True):
        failure = outcome.reason if isinstance(outcome, Failure) else None
        if job.key is not None and failure is None:
            job.key.is_concluded = True
        value = outcome.value if isinstance(outcome, Success) else None
        if isinstance(job.outcome, Later):
            later.setdefault(job.outcome.deliver, []).append((job.outcome.done, Given(value, failure)))
        elif failure is not None:
            job.outcome.set_exception(failure)
        else:
            job.outcome.set_result(value)
    for deliver, told in later.items():
        try:
            deliver(told)
        except Exception:
            # Whoever waited is gone with its event loop; the others are not.
            _log.warning("%s outcomes could not be told", len(told), exc_info=True)


def _open_key(job: Job) -> CallKey | None:
    """The key of the call whose change this job is."""
    return None if job.key is None or job.key.is_concluded else job.key
