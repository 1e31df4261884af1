"""The job: read everything, ask the log what changed meanwhile, read that again until nothing of it did.

Every round begins with the newest event. A round is the last when nothing that it read changed while it did: then all
that was read is as of the event with which it began.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession

from hms_gateway.pipeline.catalog import events, latest
from hms_gateway.pipeline.errors import EventsExpired, JobFailed, UsageRefused
from hms_gateway.pipeline.jobs.batches import RowBatch
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, Only, check_only
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.records import now
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.snapshot.manifest import KindFile, KindPart, Manifest, SnapshotFolder
from hms_gateway.pipeline.snapshot.objects import KINDS, LISTED, added, as_hex
from hms_gateway.pipeline.snapshot.steps import TO_SETTLE, ReadStep, SettleStep
from hms_gateway.pipeline.snapshot.units import (
    CATALOG,
    CONTENTS,
    DATABASES,
    REFERENCE,
    TABLES,
    WORK,
    Reading,
    Rounds,
    Unit,
    Work,
    is_settled,
    listed,
    pieces,
    to_read,
    units_of,
    works_of,
)

ROUNDS_MAX: Final = 100
# A round of so few names is read here: a job of Spark takes longer than they do, and the catalog goes on changing.
_NAMES_HERE_MAX: Final = 2_000
_LISTED_HERE_MAX: Final = 20_000
_SETTLED_A_BATCH: Final = 4


@dataclass(frozen=True, kw_only=True)
class SnapshotArguments:
    """`path` is the folder or fsspec URL of the snapshot, where nothing may be yet."""

    path: str
    rounds_max: int = ROUNDS_MAX


@dataclass(frozen=True, kw_only=True)
class SnapshotResult(JobResult):
    """`event` is what the snapshot is of; `digest` is the same for the same catalog."""

    path: str = ""
    event: int = 0
    rounds: int = 0
    digest: str = ""


def snapshot(
    options: JobOptions,
    arguments: SnapshotArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> SnapshotResult:
    """The whole catalog as Parquet as of one event. Raises JobFailed."""
    if options.where:
        raise UsageRefused("--where does not fit a snapshot", "it has whole tables; --only selects them")
    check_only(options)
    place = SnapshotFolder.of(arguments.path, options.storage)
    with Run.begin("snapshot", options, arguments, spark=spark, progress=progress) as run:
        place.check_free(run.id)
        taking = _Taking(run, place, arguments.rounds_max)
        plan = run.store("round-0", taking.plan, schema=WORK, rows_a_batch=1)
        if options.dry_run:
            return run.finish(SnapshotResult, counts={"pieces": plan.rows}, path=arguments.path)
        manifest = place.completed(run.id) or taking.take(plan)
        run.state.remove(run.path("read"))
        counts = {kind: part.rows for kind, part in manifest.kinds.items()}
        return run.finish(
            SnapshotResult,
            counts=counts,
            path=place.target.location,
            event=manifest.event,
            rounds=manifest.rounds,
            digest=manifest.digest,
        )


@dataclass
class _Found:
    """The result of a round: files, and of the kinds that are read whole digests and rows."""

    files: list[dict[str, Any]] = field(default_factory=list)
    listed: dict[str, str] = field(default_factory=dict)
    listed_rows: int = 0


@dataclass
class _Taking:
    """One snapshot being taken. A resume reads on with the first round; what later ones have read is read again."""

    run: Run
    place: SnapshotFolder
    rounds_max: int
    _readings: list[Reading] = field(default_factory=list)
    _found: list[_Found] = field(default_factory=list)
    _children: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._only = Only(self.run.options.only)

    def plan(self) -> list[dict[str, Any]]:
        """The work of the first round."""
        with self.run.client() as client:
            return [work.as_row() for work in self._everything(client)]

    def take(self, plan: Stored) -> Manifest:
        """Raises JobFailed."""
        began = now()
        self._begin_round(self.run.first_event, frozenset((Unit(CATALOG),)))
        self._in_executors("round-0", plan)
        with self.run.client() as client:
            version: str = client.call("getVersion")
            while True:
                newest = latest(client)
                since = self._since(client, newest)
                if self._is_settled(since):
                    break
                self._check_rounds(since)
                self._again(client, newest, to_read(since, self._children))
        return self._publish(began, version)

    def _since(self, client: PatientClient, newest: int) -> frozenset[Unit]:
        """Units that have changed since the last round began."""
        try:
            found = events(client, self._readings[-1].event, newest)
            units = {unit for event in found for unit in units_of(event)}
        except EventsExpired as expired:
            text = f"the metastore has forgotten events that it wrote since the snapshot was begun: {expired}"
            raise JobFailed(
                text, "take a new one; metastore.event_seconds_max of the gateway is how long it keeps them"
            ) from expired
        return frozenset(unit for unit in units if unit.kind == CATALOG or self._only.wants(unit.database, unit.table))

    def _is_settled(self, since: frozenset[Unit]) -> bool:
        """Two readings of what has no events have to be the same: one before the event, one behind it."""
        if len(self._readings) < 2 or self._found[-1].listed != self._found[-2].listed:
            return False
        return is_settled(self._readings[-1], since)

    def _check_rounds(self, since: frozenset[Unit]) -> None:
        if len(self._readings) < self.rounds_max:
            return
        changing = sorted({f"{unit.database}.{unit.table}" for unit in since} or {"privileges or functions"})
        shown = ", ".join(changing[:5])
        text = f"the catalog changed while it was read, in {self.rounds_max} rounds; the last time: {shown}"
        raise JobFailed(text, "take the snapshot when less is changed, or select tables with --only")

    def _again(self, client: PatientClient, newest: int, units: frozenset[Unit]) -> None:
        if Unit(CATALOG) in units:
            works = list(self._everything(client))
        else:
            tables = {unit.database: self._tables(client, unit.database) for unit in units if unit.kind == CONTENTS}
            works = [*works_of(units, tables), *listed()]
        is_small = sum(len(work.names) for work in works) <= _NAMES_HERE_MAX
        is_small = is_small and self._found[-1].listed_rows <= _LISTED_HERE_MAX
        self._begin_round(newest, units)
        name = f"round-{len(self._readings) - 1}-{newest}"
        if is_small:
            self._here(client, name, works)
        else:
            rows = [work.as_row() for work in works]
            self._in_executors(name, self.run.store(name, rows, schema=WORK, rows_a_batch=1))

    def _everything(self, client: PatientClient) -> Iterator[Work]:
        databases = [name for name in client.call("get_all_databases") if self._only.wants(name)]
        yield from pieces(DATABASES, databases)
        for database in databases:
            yield from pieces(TABLES, self._tables(client, database), database)
        yield from listed()

    def _tables(self, client: PatientClient, database: str) -> list[str]:
        return [name for name in client.call("get_all_tables", database) if self._only.wants(database, name)]

    def _begin_round(self, event: int, units: frozenset[Unit]) -> None:
        self._readings.append(Reading(event, units))
        self._found.append(_Found())

    def _step(self, name: str) -> ReadStep:
        return ReadStep(self.run.state, self.run.path(f"read/{name}"), self._only)

    def _here(self, client: PatientClient, name: str, works: list[Work]) -> None:
        step, remaining, number = self._step(name), works, 0
        while remaining:
            batch = pyarrow.Table.from_pylist([work.as_row() for work in remaining], WORK)
            outcome = step(client, RowBatch(name, f"here-{number}", batch))
            remaining, number = self._noted([] if outcome.rows is None else outcome.rows.to_pylist()), number + 1

    def _in_executors(self, name: str, plan: Stored) -> None:
        self.run.batches(plan, self._step(name), name=name)
        more = [work.as_row() for work in self._noted(self.run.results(name))]
        if more:
            inner = f"{name}-partitions"
            self._in_executors(inner, self.run.store(inner, more, schema=WORK, rows_a_batch=1))

    def _noted(self, rows: Iterable[dict[str, Any]]) -> list[Work]:
        """Notes rows; gives the work that is still to be done."""
        more, found = [], self._found[-1]
        for row in rows:
            if row["file"]:
                found.files.append({"round": len(self._readings) - 1, "kind": row["kind"], "file": row["file"]})
            if row["digest"]:
                found.listed[row["kind"]] = row["digest"]
                found.listed_rows += row["rows"]
            for work in (Work(**each) for each in row["work"]):
                if work.what == REFERENCE:
                    parent, child = work.names
                    self._children.setdefault((parent, child), set()).add((work.database, work.table))
                else:
                    more.append(work)
        return more

    def _publish(self, began: str, version: str) -> Manifest:
        last = self._found[-1].files
        files = [file for found in self._found for file in found.files if file["kind"] not in LISTED]
        files += [file for file in last if file["kind"] in LISTED]
        self.place.clear()
        name = f"settle-{uuid.uuid4().hex[:8]}"
        step = SettleStep(self.run.state, self.place.partial, Rounds(self._readings))
        plan = self.run.store(name, files, schema=TO_SETTLE, rows_a_batch=_SETTLED_A_BATCH)
        self.run.batches(plan, step, name=name)
        kinds = _kinds(list(self.run.results(name)))
        manifest = Manifest(
            event=self._readings[-1].event,
            metastore=self.run.options.connection.url,
            version=version,
            began=began,
            taken=now(),
            run=self.run.id,
            rounds=len(self._readings),
            only=self.run.options.only,
            digest=as_hex(added(int(part.digest, 16) for part in kinds.values())),
            kinds=kinds,
        )
        self.place.publish(manifest)
        return manifest


def _kinds(settled: list[dict[str, Any]]) -> dict[str, KindPart]:
    found = {}
    for kind in KINDS:
        own = [row for row in settled if row["kind"] == kind]
        files = tuple(KindFile(row["file"], row["rows"]) for row in own if row["rows"])
        digest = added(int(row["digest"], 16) for row in own)
        found[kind] = KindPart(sum(file.rows for file in files), as_hex(digest), files)
    return found
