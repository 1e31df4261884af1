"""The job `migrate`: a catalog goes from one metastore to another, in bulk first, then what has changed meanwhile."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow
import pyarrow.parquet

from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE
from hms_gateway.pipeline.catalog import CatalogReader, events, latest, table_names
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import CallsRefused, EventsExpired, UsageRefused
from hms_gateway.pipeline.events import Changes
from hms_gateway.pipeline.jobs.batches import Counts, Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, check_only
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored, texts
from hms_gateway.pipeline.migrate.shared_objects import BEFORE_TABLES, KINDS, SharedObjects
from hms_gateway.pipeline.migrate.sides import CONFLICT, GATEWAY_TARGET, OTHER_CATALOG, THRIFT_TARGET, Difference, Sides
from hms_gateway.pipeline.migrate.steps import Compare, CopyPartitions, CopyTables, Refresh, WriteIdsOf, difference_rows
from hms_gateway.pipeline.migrate.writing import REFUSALS, RecordingClient, Writer, now, reason
from hms_gateway.rpc.structs import MetaException, SeedTxnIdRequest
from hms_gateway.rpc.wire import ApplicationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFLICTS: Final = ("skip", "replace", "fail")
VERIFICATIONS: Final = ("full", "none")
ALL_KINDS: Final = ("databases", "partitions", "statistics", "constraints", "functions", "roles", "grants")
TABLES_A_BATCH: Final = 20
_ROUNDS_MAX: Final = 10_000
_REPAIRS_MAX: Final = 3
_SHOWN_MAX: Final = 50

_TABLES: Final = pyarrow.schema([*texts("database", "table"), ("existed", pyarrow.bool_())])
_REFRESHED: Final = pyarrow.schema([*texts("database", "table"), ("names", pyarrow.list_(pyarrow.string()))])
_NAMED: Final = pyarrow.schema(texts("database", "table"))
_POSITION: Final = pyarrow.schema([("event", pyarrow.int64()), ("recorded_at", pyarrow.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateArguments:
    """Arguments of `migrate` besides the options of every job; its target is their connection.

    source       where the catalog comes from
    on_conflict  an object that was in the target before and differs: skip it, replace it, or fail
    verify       full: both sides are read and compared when all is done; none: they are not
    once         look at the source's notification log once, instead of until nothing is left
    kinds        which of ALL_KINDS come along; tables always do
    last         nothing is written to the source any more: write ids of ACID tables are set, which is done once
    """

    source: Connection
    on_conflict: str = "skip"
    verify: str = "full"
    once: bool = False
    kinds: tuple[str, ...] = ALL_KINDS
    last: bool = False


@dataclass(frozen=True, slots=True)
class _Noted:
    """Arguments that a resume has to repeat, in `run.json` without secrets. `last` may be added by a resume."""

    source: str
    on_conflict: str
    verify: str
    once: bool
    kinds: tuple[str, ...]
    catalog: str = ""


@dataclass(frozen=True, kw_only=True)
class MigrateResult(JobResult):
    """`findings` counts the objects that differ.

    differences  the first of them, field by field; all are in `differences.parquet` of the folder
    refusals     the first of what was refused, with the reason; all are in `refusals.jsonl` of the folder
    declared     fields that the target cannot hold, which were not compared
    rollback     a script of the shell that takes everything back that was not in the target before
    """

    differences: Sequence[Difference] = ()
    refusals: Sequence[Refusal] = ()
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rollback: str = ""


def migrate(
    options: JobOptions,
    arguments: MigrateArguments,
    *,
    spark: "SparkSession | None" = None,
    progress: Progress | None = None,
) -> MigrateResult:
    """Bring the catalog of `arguments.source` into the metastore of the options. Raises JobFailed."""
    _check(options, arguments)
    _check_target(options)
    check_only(options, arguments.source)
    noted = _Noted(
        arguments.source.url,
        arguments.on_conflict,
        arguments.verify,
        arguments.once,
        tuple(arguments.kinds),
        arguments.source.catalog,
    )
    with Run.begin("migrate", options, noted, spark=spark, progress=progress) as run:
        return _Migration(run, options, arguments).run_all()


def _check(options: JobOptions, arguments: MigrateArguments) -> None:
    if arguments.on_conflict not in CONFLICTS:
        raise UsageRefused(f"--on-conflict {arguments.on_conflict!r} is not one of {', '.join(CONFLICTS)}")
    if arguments.verify not in VERIFICATIONS:
        raise UsageRefused(f"--verify {arguments.verify!r} is not one of {', '.join(VERIFICATIONS)}")
    unknown = [kind for kind in arguments.kinds if kind not in ALL_KINDS]
    if unknown:
        raise UsageRefused(f"kind {unknown[0]!r} is not one of {', '.join(ALL_KINDS)}")
    if options.where:
        raise UsageRefused("--where is not for migrate", "--only chooses tables, with all their partitions")
    source, target = arguments.source, options.connection
    if (source.url, source.catalog) == (target.url, target.catalog):
        raise UsageRefused(f"source and target are both {source.url}", "--catalog names another catalog of the target")


def _check_target(options: JobOptions) -> None:
    """A gateway has to let the user record what the source knows. Raises CallsRefused, GatewayAway."""
    if options.connection.is_thrift:
        return
    with RecordingClient(options.connection, 0) as client:
        try:
            client.call("get_all_databases")
        except MetaException as refused:
            hint = "name the user in the setting administrators of the gateway, or give another one with --user"
            raise CallsRefused(refused.message or "the target refuses recorded calls", hint) from refused


@dataclass
class _Migration:
    run: Run
    options: JobOptions
    arguments: MigrateArguments
    refused: dict[str, Refusal] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    held: list[str] = field(default_factory=list)

    def run_all(self) -> MigrateResult:
        with self.sides_at(0).reading() as client:
            position = self._position(0, CatalogReader(client))
        self.sides = self.sides_at(position["recorded_at"])
        with self.sides.reading() as source, self.sides.writing(self.run.client()) as target:
            self.source, self.target = CatalogReader(source), CatalogReader(target)
            self.made = self._read_made()
            before = self.run.store("before", self._there, schema=_NAMED)
            self.before = frozenset((row["database"], row["table"]) for row in before)
            plan = self._plan()
            if self.options.dry_run:
                return self._planned(plan)
            self._hold()
            return self._all(plan, position["event"])

    def sides_at(self, recorded_at: int) -> Sides:
        source, target = self.arguments.source, self.options.connection
        is_gateway = not target.is_thrift
        are_alike = bool(source.catalog) == bool(target.catalog)
        of_gateway = GATEWAY_TARGET if are_alike else OTHER_CATALOG
        return Sides(
            source,
            is_gateway,
            self.arguments.on_conflict,
            frozenset(self.arguments.kinds),
            recorded_at,
            self.options.patience_seconds,
            of_gateway if is_gateway else THRIFT_TARGET,
        )

    def _all(self, plan: Stored, event: int) -> MigrateResult:
        self.shared = shared = self._shared()
        shared.bring_in_line(BEFORE_TABLES)
        self._step(plan, CopyTables(self.sides), "copy tables", "batches of tables")
        chunks = self._from_results("partitions", ("copy tables",), "chunk")
        self._step(chunks, CopyPartitions(self.sides), "copy partitions", "batches of partitions")
        again = [_refreshed(row) for row in self.run.results("copy tables") if row["what"] == "again"]
        shared.bring_in_line(BEFORE_TABLES)
        rounds = self._follow(event, again)
        shared.bring_in_line(KINDS)
        differences = self._verify(rounds) if self.arguments.verify == "full" else []
        self._write_ids(rounds)
        for one in shared.refused.values():
            self.refused[one.item] = one
        self.counts.update(shared.counts)
        return self._finish(differences)

    # What is there before anything is done.

    def _position(self, number: int, source: CatalogReader) -> dict[str, int]:
        """The event in the source's log with which a round begins, 0 without a log; noted before anything is read."""

        def rows() -> list[dict[str, int]]:
            return [{"event": _newest_event(source), "recorded_at": now()}]

        stored = self.run.store(f"position-{number}", rows, schema=_POSITION)
        return next(iter(stored))

    def _read_made(self) -> dict[str, set[str]]:
        """The objects besides tables that the run has brought, by kind; only these may it drop or replace unasked."""
        found = self.run.state.read_json(self.run.path("brought.json")) or {}
        return {kind: set(names) for kind, names in found.items()}

    def _note_made(self, made: Mapping[str, set[str]]) -> None:
        self.run.state.write_json(self.run.path("brought.json"), {kind: sorted(names) for kind, names in made.items()})

    def _there(self) -> Iterator[dict[str, str]]:
        """The tables of the target when the run began."""
        for database, table in table_names(self.target.client):
            yield {"database": database, "table": table}

    def _tables(self) -> Iterator[dict[str, Any]]:
        for place in sorted(table_names(self.source.client, self.options.wants)):
            yield {"database": place[0], "table": place[1], "existed": place in self.before}

    def _plan(self) -> Stored:
        return self.run.store(
            "tables", self._tables, schema=_TABLES, rows_a_batch=TABLES_A_BATCH, together=("database",)
        )

    def _planned(self, plan: Stored) -> MigrateResult:
        rows = list(plan)
        counts = {
            "databases": len({row["database"] for row in rows}),
            "tables": len(rows),
            "tables that are in the target": sum(row["existed"] for row in rows),
        }
        return self.run.finish(MigrateResult, counts=counts, declared=self.sides.declared)

    def _hold(self) -> None:
        """The databases, since new tables come into them; a metastore called over Thrift has no leases."""
        if not self.sides.is_gateway:
            return
        names = sorted(filter(self.options.wants, self.source.client.call("get_all_databases")))
        if names == self.held:
            return
        self.run.release()
        self.run.hold([f"{name}.*" for name in names])
        self.held = names
        client = self.target.client
        assert isinstance(client, PatientClient)
        client.close()
        client.lease_id = self.run.lease_id

    def _shared(self) -> SharedObjects:
        is_empty = not any(database == DEFAULT_DATABASE for database, _ in self.before)
        return SharedObjects(
            self.options,
            self.sides,
            self.source,
            self.target,
            Writer(self.target.client, self.sides.is_gateway),
            self.made,
            self._note_made,
            is_empty,
        )

    # What the source's log says has changed.

    def _follow(self, event: int, again: Sequence[Mapping[str, Any]]) -> int:
        """Rounds until the log says nothing new; how many there were. A resumed run goes on where it was."""
        for number in range(_ROUNDS_MAX):
            plan, is_last = self.run.stored(f"refresh-{number}"), False
            newest = self._position(number + 1, self.source)["event"]
            if plan is None:
                changes = self._changes(event, newest)
                plan = self._store_tables(f"refresh-{number}", [*again, *self._changed(changes)])
                is_last = not changes or self.arguments.once
            self._hold()
            self.shared.bring_in_line(("database",))
            self._step(plan, Refresh(self.sides, self.before), f"refresh {number}", "batches of tables")
            event, again = newest, ()
            if is_last:
                return number + 1
        return _ROUNDS_MAX

    def _changes(self, after: int, newest: int) -> Changes:
        changes = Changes()
        try:
            changes.note(events(self.source.client, after, newest))
        except EventsExpired:
            self.counts["times that events had expired"] += 1
        self.counts["events"] += max(0, newest - after)
        return changes

    def _store_tables(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Stored:
        return self.run.store(name, rows, schema=_REFRESHED, rows_a_batch=TABLES_A_BATCH)

    def _changed(self, changes: Changes) -> Iterator[dict[str, Any]]:
        skipped = self._skipped()
        for (database, table), names in sorted(changes.tables.items()):
            if self.options.wants(database, table) and f"{database}.{table}" not in skipped:
                yield {"database": database, "table": table, "names": None if names is None else sorted(names)}

    def _skipped(self) -> set[str]:
        """Tables of which something was in the target before, differs, and was to stay."""
        names = {"copy tables", "copy partitions"}
        refused = (one for name in names for one in self.run.refusals(name))
        return {one.item.partition("/")[0] for one in refused if one.reason.startswith(CONFLICT)}

    # Both sides compared.

    def _verify(self, rounds: int) -> list[Difference]:
        """Differences that are left. Tables that differ are brought up to date first: not all changes have events."""
        plan = self._store_tables(f"compare-{rounds}-0", list(self._tables_now()))
        compared = {f"{row['database']}.{row['table']}" for row in plan}
        found = self._compared(plan, f"compare {rounds} 0")
        skipped = self._skipped()
        for number in range(1, _REPAIRS_MAX + 1):
            rows = [_row_of(name) for name in sorted({_table_of(one.object) for one in found} - skipped)]
            if not rows or self.arguments.once:
                break
            plan = self._store_tables(f"compare-{rounds}-{number}", rows)
            self._step(plan, Refresh(self.sides, self.before), f"repair {rounds} {number}", "batches of tables")
            kept = [one for one in found if _table_of(one.object) in skipped]
            found = [*kept, *self._compared(plan, f"compare {rounds} {number}")]
        self._forgive(compared - {_table_of(one.object) for one in found})
        return [*found, *self.shared.differences()]

    def _forgive(self, equal: set[str]) -> None:
        """Forgets refusals of objects that have come since."""
        for item, refusal in list(self.refused.items()):
            if _table_of(item) in equal and not refusal.reason.startswith(CONFLICT):
                del self.refused[item]

    def _tables_now(self) -> Iterator[dict[str, Any]]:
        """The tables of the source, and tables that the run has brought and the source does not have any more."""
        names = {(row["database"], row["table"]) for row in self._tables()}
        for database, table in sorted(names.union(self._brought())):
            yield {"database": database, "table": table, "names": None}

    def _brought(self) -> list[tuple[str, str]]:
        """Tables of the target that this run has made: what others make there meanwhile is theirs."""
        handled: set[tuple[str, str]] = set()
        for name in self.run.state.names(self.run.path("plan")):
            stored = self.run.stored(name) if name.startswith(("tables", "refresh-", "compare-")) else None
            handled.update((row["database"], row["table"]) for row in stored or ())
        there = {(row["database"], row["table"]) for row in self._there()}
        return sorted((handled & there) - self.before)

    def _compared(self, plan: Stored, name: str) -> list[Difference]:
        self._step(plan, Compare(self.sides), name, "batches of tables")
        return [Difference(**row) for row in self.run.results(name)]

    def _write_ids(self, rounds: int) -> None:
        """Sets write ids of ACID tables once everything that was written to them is known: a table gets them once."""
        names = [name for name in self.run.state.names(self.run.path("result")) if not name.startswith("compare")]
        plan = self._from_results(f"acid-{rounds}", names, "acid")
        if not self.arguments.last:
            self._await_write_ids(plan)
            return
        if not plan.rows:
            return
        self._seed_transactions()
        self._step(plan, WriteIdsOf(self.sides), f"write ids {rounds}", "batches of tables")

    def _await_write_ids(self, plan: Stored) -> None:
        for place in sorted({(row["database"], row["table"]) for row in plan}):
            if self.source.write_ids(*place) is not None:
                text = "its write ids have not come; resume the run with --last when nothing is written to the source"
                self.refused[".".join(place)] = Refusal(".".join(place), text)

    def _seed_transactions(self) -> None:
        """Files of Hive 2 are named by transactions, so that their ids must not be given again."""
        newest = self.source.transactions_seen()
        if not self.sides.is_gateway or newest <= self.target.transactions_seen():
            return
        try:
            self.target.client.call("seed_txn_id", SeedTxnIdRequest(seedTxnId=newest))
            self.counts["transaction ids seeded"] += 1
        except REFUSALS as refused:
            self.refused["transactions"] = Refusal("transactions", reason(refused))

    # Steps and what they leave.

    def _step(
        self, plan: Stored, step: Callable[[PatientClient, RowBatch], StepOutcome], name: str, unit: str
    ) -> Counts:
        counts = self.run.batches(plan, step, name=name, unit=unit)
        for what, number in counts.counts.items():
            if what != "differences":
                self.counts[what] += number
        for one in self.run.refusals(name):
            self.refused[one.item] = one
        return counts

    def _from_results(self, stored: str, names: Sequence[str], what: str) -> Stored:
        def rows() -> Iterator[dict[str, Any]]:
            for name in names:
                for row in self.run.results(name):
                    if row["what"] == what:
                        yield {key: row[key] for key in (*_TABLES.names, "names")}

        schema = pyarrow.schema([*_TABLES, ("names", pyarrow.list_(pyarrow.string()))])
        return self.run.store(stored, rows, schema=schema, rows_a_batch=4)

    def _finish(self, differences: Sequence[Difference]) -> MigrateResult:
        table = difference_rows(differences)
        if table is not None:
            with self.run.state.output(self.run.path("differences.parquet")) as file:
                pyarrow.parquet.write_table(table, file)
        refusals = [{"item": one.item, "reason": one.reason} for one in self.refused.values()]
        self.run.state.write(self.run.path("refusals.jsonl"), b"".join(map(_as_line, refusals)))
        rollback = self.run.path("rollback.sh")
        self.run.state.write(rollback, "".join(self._taking_back()).encode())
        return self.run.finish(
            MigrateResult,
            counts=self.counts,
            findings=len({(one.kind, one.object) for one in differences}),
            refused=len(self.refused),
            differences=tuple(differences[:_SHOWN_MAX]),
            refusals=tuple(list(self.refused.values())[:_SHOWN_MAX]),
            declared=self.sides.declared,
            rollback=self.run.state.path(rollback),
        )

    def _taking_back(self) -> Iterator[str]:
        """Commands that drop what was not there before, without data; the last made first."""
        yield "# Takes back a migration; options of `hms-gateway call` may follow its name.\n"
        target = self.run.options.connection
        where = ["--url", target.url, *(["--catalog", target.catalog] if target.catalog else [])]
        for method, *arguments in self._drops():
            yield shlex.join(["hms-gateway", "call", *where, method, *arguments]) + ' "$@"\n'

    def _drops(self) -> Iterator[tuple[str, ...]]:
        """A database goes with all that is in it."""
        databases = sorted(self.made.get("database", ()))
        for name in sorted(self.made.get("function", ())):
            database, _, function = name.partition(".")
            if database not in databases:
                yield "drop_function", database, function
        for name in sorted(self.made.get("role", ())):
            yield "drop_role", name
        for database, table in self._brought():
            if database not in databases:
                yield "drop_table", database, table, "false"
        for name in databases:
            yield "drop_database", name, "false", "true"


def _newest_event(source: CatalogReader) -> int:
    try:
        return latest(source.client) or 0
    except ApplicationError:
        return 0


def _refreshed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"database": row["database"], "table": row["table"], "names": None}


def _table_of(name: str) -> str:
    """`db.table/partition column` and the like."""
    return name.partition("/")[0].partition(" ")[0]


def _row_of(name: str) -> dict[str, Any]:
    database, _, table = name.partition(".")
    return {"database": database, "table": table, "names": None}


def _as_line(value: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
