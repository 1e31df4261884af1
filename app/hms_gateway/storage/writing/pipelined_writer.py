"""Writes batches of calls on transactions and locks without a thread: the event loop sends what they ask and change,
and goes on when PostgreSQL has answered.

It is a second writer beside `thread_writer.ThreadWriter`, on a connection of its own; the lock on the catalog's row
lets one of them change something at a time, as among processes. A batch is two messages each way: the lock and
everything that is read, then everything that is written and the commit. With a thread and a statement at a time it took
four times as long.

Whatever is unusual goes to the other writer, as long as nothing can have happened: units of work that ask for what was
not read ahead, statements that are refused (but for the lock on the catalog), and all that comes without a connection.
"""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from time import monotonic, perf_counter
from typing import Final, NamedTuple, Protocol

import structlog

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreUnavailable
from hms_gateway.runtime.call_record import TraceSpans, shared_notes
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.suspension import Done, Job, Later, Result, call_in_loop
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.kinds import as_unavailable
from hms_gateway.storage.dialects.statements import BEGIN, COMMIT, ConnectionLost, Rows, Statement, StatementRefused
from hms_gateway.storage.txn.batch import BatchMiss, TxnBatch
from hms_gateway.storage.txn.batch_statements import LOCK_CATALOG


def deliver_results(jobs: Sequence[Job], results: Sequence[Result]) -> None:
    """Give the callers their results, those of one event loop together."""
    later: dict[asyncio.AbstractEventLoop, list[tuple[Done, Result]]] = {}
    for job, result in zip(jobs, results, strict=True):
        job.ended(result)
        if isinstance(job.outcome, Later):
            later.setdefault(job.outcome.loop, []).append((job.outcome.done, result))
        elif result.failure is not None:
            job.outcome.set_exception(result.failure)
        else:
            job.outcome.set_result(result.value)
    for loop, results_of in later.items():
        call_in_loop(loop, _hand_over, results_of)


def _hand_over(results: Sequence[tuple[Done, Result]]) -> None:
    for done, result in results:
        done(result)


# A batch holds the database's write lock, which other processes wait for.
BATCH_MAX: Final = 500
CONNECT_AGAIN_SECONDS: Final = 1.0

_LOCK: Final = Statement(LOCK_CATALOG, {})

_log = structlog.get_logger("hms_gateway.storage")


class Pipeline(Protocol):
    """A connection whose answers are fetched when they are there. After an error it is of no more use."""

    def fileno(self) -> int:
        """The socket, readable when there may be answers. Known also when the connection is lost."""

    def send(self, statements: Iterable[Statement]) -> None:
        """Begin to send statements; the ones before are answered. Raises ConnectionLost."""

    def flush(self) -> bool:
        """Send more of it, as much as the socket takes; whether all is sent. Raises ConnectionLost."""

    def answers(self) -> list[Rows] | None:
        """The rows of each statement that was sent, None before all have arrived or when nothing was sent.

        Raises ConnectionLost and StatementRefused.
        """

    def close(self) -> None:
        """Give the connection back."""


class _InFlightBatch(NamedTuple):
    jobs: Sequence[Job]
    steps: "_Steps"


# Results are None for jobs that the other writer has to run.
_Steps = Generator[Sequence[Statement], list[Rows], list[Result | None]]


class PipelinedWriter:
    """Used from the thread of one event loop, but for `close`."""

    def __init__(
        self,
        connect: Callable[[], Pipeline],
        dialect: Dialect,
        clock: Clock,
        waiting_max: int,
        hand_over: Callable[[Job], None],
    ) -> None:
        """`connect` takes time and raises StoreUnavailable; `hand_over` gives a job to the other writer, and may raise
        that, too.
        """
        self._open_connection = connect
        self._dialect = dialect
        self._clock = clock
        self._waiting_max = waiting_max
        self._hand_over = hand_over
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pipeline: Pipeline | None = None
        # Open, while the loop has not yet run `_keep`: a loop that has ended never does.
        self._arriving: Pipeline | None = None
        self._waiting: list[Job] = []
        self._batch: _InFlightBatch | None = None
        self._is_committing = False
        self._is_connecting = False
        self._is_closed = False
        self._connect_at = 0.0

    def take(self, job: Job) -> bool:
        """Whether the job is run here: one that gets its outcome later. Raises StoreUnavailable when too many wait."""
        loop = _running_loop()
        if loop is None or self._is_closed:
            return False
        if self._pipeline is None or loop is not self._loop:
            self._connect(loop)
            return False
        if len(self._waiting) >= self._waiting_max:
            text = f"more than {self._waiting_max} writes are waiting (limit write_queue_max)"
            raise StoreUnavailable(text, limit="write_queue_max")
        self._waiting.append(job)
        if self._batch is None and len(self._waiting) == 1:
            # Those that are started by the same turn of the loop are committed together.
            loop.call_soon(self._begin)
        return True

    @property
    def waiting(self) -> int:
        """Jobs that are not begun."""
        return len(self._waiting)

    def close(self) -> None:
        """Take nothing more and close the connection. Jobs under way get what is known of them."""
        self._is_closed = True
        loop = self._loop
        if loop is None or loop is _running_loop() or loop.is_closed():
            self._close_arriving()
            self._drop()
        else:
            call_in_loop(loop, self._drop)

    # The connection.

    def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        is_of_another = self._pipeline is not None and self._loop is not None and not self._loop.is_closed()
        if self._is_connecting or is_of_another or monotonic() < self._connect_at:
            return
        self._is_connecting = True
        threading.Thread(target=self._connect_in_thread, args=(loop,), name="store-connect", daemon=True).start()

    def _connect_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        pipeline = None
        try:
            pipeline = self._open_connection()
        except Exception as error:
            # The other writer says what is wrong.
            _log.debug("no connection for writing from the event loop", problem=repr(error))
            forget_frames(error)
        self._arriving = pipeline
        if not call_in_loop(loop, self._keep, loop, pipeline):
            self._is_connecting = False
            self._close_arriving()

    def _keep(self, loop: asyncio.AbstractEventLoop, pipeline: Pipeline | None) -> None:
        self._is_connecting, self._arriving = False, None
        if pipeline is None:
            self._connect_at = monotonic() + CONNECT_AGAIN_SECONDS
        elif self._is_closed:
            pipeline.close()
        else:
            if self._pipeline is not None:  # of a loop that is closed
                self._pipeline.close()
            self._pipeline, self._loop = pipeline, loop
            loop.add_reader(pipeline.fileno(), self._readable)

    def _close_arriving(self) -> None:
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            arriving.close()

    def _drop(self) -> None:
        """Give the connection up; what waits for it goes to the other writer, as long as nothing can have happened."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(pipeline.fileno())
                self._loop.remove_writer(pipeline.fileno())
            pipeline.close()
        batch, self._batch = self._batch, None
        waiting, self._waiting = self._waiting, []
        if batch is not None and self._is_committing:
            lost = OutcomeUnknown("the connection to the database was lost while committing")
            _tell(batch.jobs, [Result(None, lost)] * len(batch.jobs))
        elif batch is not None:
            waiting = [*batch.jobs, *waiting]
        self._pass_on(waiting)

    def _fail(self, error: Exception) -> None:
        _log.debug("the connection for writing from the event loop is given up", problem=repr(error))
        forget_frames(error)
        if isinstance(error, StatementRefused):
            self._is_committing = False
            reason = self._dialect.translation(error.__cause__ or error)
            if isinstance(reason, StoreUnavailable) and self._batch is not None:
                # The other writer would wait for the catalog as long again.
                jobs = [*self._batch.jobs, *self._waiting]
                self._batch, self._waiting = None, []
                self._drop()
                _tell(jobs, [Result(None, as_unavailable(reason)) for _ in jobs])
                return
        self._drop()

    def _pass_on(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            try:
                self._hand_over(job)
            except StoreUnavailable as error:
                _tell([job], [Result(None, error)])

    # Batches.

    def _begin(self) -> None:
        if self._batch is None and self._waiting and self._pipeline is not None:
            jobs, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            self._is_committing = False
            self._batch = _InFlightBatch(jobs, self._steps(jobs))
            self._go_on(self._pipeline, self._batch, None)

    def _readable(self) -> None:
        pipeline = self._pipeline
        if pipeline is None:
            return
        try:
            rows = pipeline.answers()
        except Exception as error:
            self._fail(error)
            return
        if rows is None:
            # A server that dies with unread questions leaves a last notice and an error. libuv tells an error once.
            assert self._loop is not None
            self._loop.remove_reader(pipeline.fileno())
            self._loop.add_reader(pipeline.fileno(), self._readable)
        elif self._batch is not None:
            self._go_on(pipeline, self._batch, rows)

    def _go_on(self, pipeline: Pipeline, batch: _InFlightBatch, rows: list[Rows] | None) -> None:
        try:
            statements = next(batch.steps) if rows is None else batch.steps.send(rows)
        except StopIteration as end:
            self._batch = None
            # PostgreSQL has something to do meanwhile.
            self._begin()
            self._pass_on(_tell(batch.jobs, end.value))
            return
        except Exception as error:
            self._fail(error)
            return
        try:
            pipeline.send(statements)
            self._flush()
        except ConnectionLost as error:
            self._fail(error)
        except Exception as error:
            # It cannot be sent as it is, and the commit, which is the last of it, was not.
            self._is_committing = False
            self._fail(error)

    def _flush(self) -> None:
        pipeline, loop = self._pipeline, self._loop
        assert pipeline is not None
        assert loop is not None
        if pipeline.flush():
            loop.remove_writer(pipeline.fileno())
        else:
            loop.add_writer(pipeline.fileno(), self._flush_more)

    def _flush_more(self) -> None:
        try:
            self._flush()
        except ConnectionLost as error:
            self._fail(error)

    def _steps(self, jobs: Sequence[Job]) -> _Steps:
        """Gives what is to be sent, is sent what came back, and ends with what became of each job."""
        batch = TxnBatch(self._dialect, self._clock, jobs)
        notes = shared_notes(job.notes for job in jobs)
        reading = batch.reading([BEGIN, _LOCK])
        asked = next(reading)
        while asked:
            begin = perf_counter()
            rows = yield asked
            self._note(notes, begin, asked)
            asked = reading.send(rows)
        results = [self._run(batch, job) for job in batch.jobs]
        statements = [*batch.changes(), COMMIT]
        self._is_committing = True
        begin = perf_counter()
        yield statements
        self._note(notes, begin, statements)
        if notes is not None:
            notes.add("commit", begin)
        return results

    def _note(self, notes: TraceSpans | None, begin: float, statements: Sequence[Statement]) -> None:
        if notes is not None:
            notes.add("sql", begin, self._dialect.text_of(statements), len(statements))

    def _run(self, batch: TxnBatch, job: Job) -> Result | None:
        try:
            return Result(batch.run(job, self._clock.seconds()))
        except BatchMiss:
            return None
        except Exception as error:
            return Result(None, error)


def _tell(jobs: Sequence[Job], results: Sequence[Result | None]) -> list[Job]:
    """Deliver to the callers at once, in this thread. Returns the jobs without result."""
    left = []
    for job, result in zip(jobs, results, strict=True):
        if result is None:
            left.append(job)
            continue
        assert isinstance(job.outcome, Later)
        try:
            job.outcome.done(job.ended(result))
        except Exception:
            _log.exception("an outcome could not be delivered")
    return left


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
