"""One run of a job: what it is about, how far it came, and what it holds."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow.parquet
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hms_gateway.pipeline.catalog import latest
from hms_gateway.pipeline.errors import JobFailed, LeaseLost
from hms_gateway.pipeline.jobs import batches as batching
from hms_gateway.pipeline.jobs import records as recording
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, storage_of
from hms_gateway.pipeline.jobs.progress import Amount, Progress
from hms_gateway.pipeline.jobs.records import Lease, drop
from hms_gateway.pipeline.jobs.spark import run_in_tasks, session
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import ROWS_A_BATCH, Cut, Derive, Stored, derive, made, store, write_rows
from hms_gateway.pipeline.storage import Storage

Result = TypeVar("Result", bound=JobResult)
# A DataFrame, a table of Arrow, or an iterable of dictionaries.
Rows = Any


@dataclass
class Run:
    """A context manager; `begin` makes it. See the package for the shape of a job.

    id           names the run and its folder in the state
    spark        the session
    first_event  the newest event of the metastore when the run began
    """

    id: str
    kind: str
    options: JobOptions
    state: State
    record: dict[str, Any]
    spark: SparkSession
    progress: Progress
    _closing: ExitStack
    _began: float
    _lost: str = ""
    _lease: Lease | None = None

    @classmethod
    def begin(
        cls,
        kind: str,
        options: JobOptions,
        arguments: Any,
        *,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
        is_light: bool = True,
    ) -> Self:
        """A new run, or the one that `options.resume` names. Raises JobFailed.

        `arguments` is a dataclass of plain values. A resume has to have the same. `is_light` says that Spark's own
        operators have little to do.
        """
        state = State.of(options.state, options.storage)
        record = (
            recording.found(state, kind, options, arguments)
            if options.resume
            else recording.new(kind, options, arguments)
        )
        with ExitStack() as stack:
            record["first_event"] = record["first_event"] or _first_event(options)
            if record.get("lease"):
                # Executors of a driver that is gone may still be at work; from now on they are refused.
                drop(options.connection, record["lease"])
            run_id = record["run"]
            recording.note(state, record, status="running", lease=None, ended=None)
            recording.publish(options.connection, record, state)
            stack.enter_context(recording.beating(state, run_id))
            try:
                named = f"{kind} {run_id}"
                opened = stack.enter_context(session(named, options.master, options.conf, spark, is_light=is_light))
            except JobFailed as failed:
                recording.note(state, record, status="failed", ended=recording.now(), error=str(failed))
                recording.publish(options.connection, record, state)
                raise
            opened.sparkContext.setJobGroup(run_id, f"hms-gateway {kind}", interruptOnCancel=True)
            return cls(
                run_id,
                kind,
                options,
                state,
                record,
                opened,
                progress or Progress(),
                stack.pop_all(),
                time.monotonic(),
            )

    @property
    def first_event(self) -> int:
        number: int = self.record["first_event"]
        return number

    @property
    def lease_id(self) -> int | None:
        return self._lease.lease_id if self._lease else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._give_back(0)
            # A session that was given goes on without the run's name on its jobs.
            self.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
            if error is not None:
                with suppress(JobFailed):
                    said = str(error).strip()[:2_000]
                    recording.note(self.state, self.record, status="failed", ended=recording.now(), error=said)
                recording.publish(self.options.connection, self.record, self.state)
        finally:
            self._closing.close()

    @cached_property
    def storage(self) -> Storage:
        """The storage that the job may touch. Raises JobFailed."""
        with self.client() as client:
            return storage_of(client, self.options)

    def client(self) -> PatientClient:
        """A client for the driver's own calls, under the run's lease."""
        return PatientClient(self.options.connection, self.options.patience_seconds, lease_id=self.lease_id)

    def path(self, name: str) -> str:
        """A file of the run as `state` names it."""
        return f"{self.id}/{name}"

    def store(
        self,
        name: str,
        rows: Rows | Callable[[], Rows],
        *,
        rows_a_batch: int = ROWS_A_BATCH,
        together: Sequence[str] = (),
        schema: Any = None,
    ) -> Stored:
        """The rows as a table of the run: executors write it, in the order of the DataFrame.

        Done once: a resumed run gets what is there, and a function is not called then. Dictionaries need an Arrow
        `schema`. A batch has at most `rows_a_batch` rows, and one value only of each column in `together` (sort by
        them). Raises JobFailed.
        """
        folder = self.path(f"plan/{name}")
        if (found := Stored.find(self.state, folder)) is not None:
            return found
        given = rows() if callable(rows) else rows
        with self._in_spark(f"{self.kind}: {name}"):
            return store(self.state, folder, given, Cut(rows_a_batch, tuple(together)), schema)

    def derive(
        self,
        name: str,
        source: Stored,
        function: Derive,
        schema: Any,
        *,
        rows_a_batch: int = 5 * ROWS_A_BATCH,
        together: Sequence[str] = (),
        unit: str = "batches",
        then: tuple[str, batching.Step] | None = None,
    ) -> Stored:
        """The table that `function` makes of each batch of another one, in executors and in its order.

        Nothing of it comes through the driver or Spark's shuffles. A resumed run goes on behind the batches that are
        done. `function` may raise JobFailed to end the run. Raises JobFailed.

        `then` is the name of a step with the step, which `batches` is called with next: where Spark has no more
        processors than there may be calls, a task does it with each batch that it has made, so that one task makes the
        next batch while the gateway does what another one calls.
        """
        folder = self.path(f"plan/{name}")
        if (found := Stored.find(self.state, folder)) is not None:
            return found
        total = len(source.batches)
        if not total:
            return Stored.complete(self.state, folder, (), schema)
        with (
            self.progress.stage(name, unit, lambda: Amount(made(self.state, folder), total)),
            self._in_spark(f"{self.kind}: {name}"),
        ):
            cut, following = Cut(rows_a_batch, tuple(together)), None
            if then is not None and self.spark.sparkContext.defaultParallelism <= self.options.calls:
                following = self._task(Stored(self.state, (), ""), *then).following
            return derive(self.spark, self.state, folder, source, function, schema, cut, following)

    def levels(self, start: Stored, function: Derive, schema: Any, *, pending: int, rows_a_batch: int) -> list[Stored]:
        """The levels of a tree, `start` first: each is derived from the rows of kind `pending` of the one before."""
        levels = [start]
        while (wanted := levels[-1].where(lambda of: of[0] == pending)).batches:
            level = self.derive(
                f"level-{len(levels)}",
                wanted,
                function,
                schema,
                rows_a_batch=rows_a_batch,
                together=("kind",),
                unit="batches of directories",
            )
            levels.append(level)
        return levels

    def results(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of the outcomes of a name's batches, in their order."""
        folder = self.path(f"result/{name}")
        for file in self.state.names(folder):
            with self.state.input(f"{folder}/{file}") as opened:
                yield from pyarrow.parquet.read_table(opened).to_pylist()

    def stored(self, name: str) -> Stored | None:
        """A table that `store` has completed, in this run or before it was resumed."""
        return Stored.find(self.state, self.path(f"plan/{name}"))

    def batches(self, plan: Stored, step: batching.Step, *, name: str, unit: str = "batches") -> batching.Counts:
        """Run `step` on every batch of the plan that is not done, in `options.calls` tasks. Raises JobFailed."""
        task = self._task(plan, name, step)
        if plan.batches and task.pending():
            total = len(plan.batches)
            with (
                self.progress.stage(name, unit, lambda: Amount(total - len(task.pending()), total)),
                self._in_spark(f"{self.kind}: {name}"),
            ):
                run_in_tasks(self.spark, task.slots, task)
        return self.counted(name)

    def _task(self, plan: Stored, name: str, step: batching.Step) -> batching.BatchTask:
        slots = max(1, min(self.options.calls, len(plan.batches)))
        connection, patience = self.options.connection, self.options.patience_seconds
        return batching.BatchTask(self.id, name, plan, step, slots, connection, self.lease_id, patience)

    def counted(self, name: str) -> batching.Counts:
        """The outcome of a name's batches so far."""
        return batching.counted(self.state, self.id, name)

    def refusals(self, name: str) -> Iterator[batching.Refusal]:
        """The refusals of a name's batches."""
        return batching.refusals(self.state, self.id, name)

    def hold(self, tables: Sequence[str]) -> None:
        """Take an exclusive lease on tables (`database.table`, `database.*`) for the rest of the run.

        Raises TablesHeld, which names the holder.
        """
        assert self._lease is None, "a run holds one lease"
        if not tables:
            return
        lease = Lease(self.options.connection, self.state, self.options.patience_seconds, self._on_lost)
        lease_id = lease.grab(tables)
        self._lease = lease
        recording.note(self.state, self.record, lease=lease_id)

    def release(self) -> None:
        """Give the lease back, to a gateway that is away for a moment too; the end of the run does it too."""
        self._give_back(self.options.patience_seconds)

    def _give_back(self, patience_seconds: float) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.drop(patience_seconds)
            with suppress(JobFailed):
                recording.note(self.state, self.record, lease=None)

    def report(self, name: str, rows: Iterable[Mapping[str, Any]], schema: Any) -> str:
        """Rows of the driver as the file `result/NAME.parquet` of the run, written anew each time; its path."""
        file = self.path(f"result/{name}.parquet")
        write_rows(self.state, file, rows, schema)
        return self.state.path(file)

    def finish(
        self,
        kind: Callable[..., Result],
        *,
        counts: Mapping[str, int] | None = None,
        findings: int = 0,
        refused: int = 0,
        **fields: Any,
    ) -> Result:
        """The result, which is noted in the state; `fields` are those that the job's result has of its own."""
        self.release()
        result = kind(
            run=self.id,
            kind=self.kind,
            status="planned" if self.options.dry_run else "done",
            findings=findings,
            refused=refused,
            counts=dict(counts or {}),
            folder=self.state.path(self.id),
            seconds=round(time.monotonic() - self._began, 3),
            **fields,
        )
        self.state.write(self.path("result.json"), result.as_json().encode())
        ended = {"status": result.status, "ended": recording.now(), "counts": dict(counts or {}), "error": None}
        recording.note(self.state, self.record, **ended)
        recording.publish(self.options.connection, self.record, self.state)
        return result

    def _on_lost(self, reason: str) -> None:
        self._lost = reason
        self.spark.sparkContext.cancelJobGroup(self.id)

    @contextmanager
    def _in_spark(self, description: str) -> Iterator[None]:
        """Names work for Spark's pages, and puts Spark's errors into one line."""
        self.spark.sparkContext.setJobDescription(description)
        try:
            yield
        except JobFailed:
            raise
        except (PySparkException, Py4JJavaError) as error:
            self._check_lease(error)
            raise JobFailed(f"{description} failed in Spark: {_last_line(error)}", "resume the run") from error
        finally:
            with suppress(Exception):
                self.spark.sparkContext.setJobDescription(None)
        self._check_lease(None)

    def _check_lease(self, error: Exception | None) -> None:
        if self._lost:
            raise LeaseLost(f"the lease on the tables is lost: {self._lost}", "resume the run") from error


def _first_event(options: JobOptions) -> int:
    """Asked without patience: a job that cannot begin says so at once. Raises CallsRefused, GatewayAway."""
    with PatientClient(options.connection, 0) as client:
        return latest(client)


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if ": " in line and not line.startswith(("at ", "File ", "org.", "java."))]
    return (python or lines or [type(error).__name__])[-1]
