"""The job `audit`: compares the catalog with the directories and with the footers of files. It reads only."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.applying import PlanHead, action_of, changed_tables, write_plan
from hms_gateway.pipeline.audit.catalog import (
    ALONE,
    ELSEWHERE,
    FOUND,
    LEVEL,
    LONELY,
    TO_LIST,
    UNREADABLE,
    Alone,
    Catalog,
    compared,
    outermost_of,
    read_catalog,
    read_places,
    walk,
)
from hms_gateway.pipeline.audit.footer_checks import CHECKED, Checker
from hms_gateway.pipeline.audit.page import Summary, page, summary_of
from hms_gateway.pipeline.audit.places import Areas, Kind, Roots, Severity, Thresholds, outermost
from hms_gateway.pipeline.errors import EventsExpired, StateFailed, UsageRefused
from hms_gateway.pipeline.footers.reading import FOOTER_FORMATS
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, check_only
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.records import records
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.reports import render
from hms_gateway.pipeline.storage import OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArguments:
    """Arguments of job `audit`.

    fix             file for a plan of what `apply` can do about the findings; empty is none
    html            file for a page about the findings; empty is none
    all_footers     read all footers, and not only those of directories that changed since the last audit
    no_footers      read none
    delete_orphans  let the plan delete directories that belong to no table
    quiet_seconds   what changed later than so long ago may be work that goes on
    small_bytes     mean size below which files are small
    small_files     so many small files in a directory are a finding
    fail_on         the least severity that counts for the exit status
    """

    fix: str = ""
    html: str = ""
    all_footers: bool = False
    no_footers: bool = False
    delete_orphans: bool = False
    quiet_seconds: float = 86_400.0
    small_bytes: int = 16 * 1024 * 1024
    small_files: int = 10
    fail_on: Severity = Severity.WARNING


@dataclass(frozen=True, kw_only=True)
class AuditResult(JobResult):
    """The outcome of an audit.

    severities  findings by severity; `kinds` by severity and kind: "error missing"
    examples    some findings, the worst first
    actions     lines of the plan
    table       folder with all findings as Parquet
    """

    severities: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ()
    actions: int = 0
    plan: str = ""
    html: str = ""
    table: str = ""


KIND: Final = "audit"
# What a change during the audit can make look like a finding.
_FLEETING: Final = (Kind.MISSING, Kind.ORPHAN, Kind.EMPTY, Kind.STALE_COUNTS, Kind.LEFTOVER, Kind.CORRUPT)
_OLD: Final = ("digest", "files", "total_bytes", "newest_seconds", "problems")
_PLACES_A_BATCH: Final = 200


def audit(
    options: JobOptions,
    arguments: AuditArguments = AuditArguments(),
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Find what is not as it should be in the tables that `options.only` names. Raises JobFailed."""
    if options.where:
        raise UsageRefused("--where is not for audit: it looks at whole tables", "name tables with --only")
    check_only(options)
    with Run.begin(KIND, options, arguments, spark=spark, progress=progress, is_light=False) as run:
        return _Audit(run, arguments).run()


class _Begun(msgspec.Struct, frozen=True):
    """State that a resumed audit goes on with."""

    catalog: Catalog
    now_seconds: float


class _Audit:
    def __init__(self, run: Run, arguments: AuditArguments) -> None:
        self._run = run
        self._arguments = arguments
        self._spark = run.spark
        begun = self._begun()
        self._catalog = begun.catalog
        self._limits = Thresholds(
            begun.now_seconds, arguments.quiet_seconds, arguments.small_bytes, arguments.small_files
        )
        self._areas = Areas(self._catalog.tables.values(), self._catalog.databases)
        self._sent_areas = run.spark.sparkContext.broadcast(self._areas)

    def run(self) -> AuditResult:
        run = self._run
        places = read_places(run, self._catalog)
        here = outermost(self._wanted_directories())
        sent = self._spark.sparkContext.broadcast(Roots(here))
        alone = run.derive("alone", places, Alone(self._sent_areas, sent), ALONE, together=("kind",))
        roots = self._roots(here, alone.where(lambda of: of[0] == ELSEWHERE))
        if run.options.dry_run:
            counts = {"tables": self._tables(), "places": places.rows, "roots": roots.rows}
            return run.finish(AuditResult, counts=counts)
        listed = walk(run, roots, self._sent_areas)
        lonely = alone.where(lambda of: of[0] == LONELY)
        found = run.store("compared", lambda: self._compared(places, listed, lonely))
        checked = self._checked(found)
        findings = run.store("findings", lambda: self._findings(found, checked), together=("severity", "kind"))
        return self._finish(found, findings, places.rows, listed.rows)

    def _begun(self) -> _Begun:
        """The catalog, read once for the run and its resumes."""
        name = self._run.path("catalog")
        kept = self._run.state.read(name)
        if kept is not None:
            return msgspec.msgpack.decode(kept, type=_Begun)
        with self._run.client() as client:
            begun = _Begun(read_catalog(client, self._run.options.wants, self._run.storage), time.time())
        self._run.state.write(name, msgspec.msgpack.encode(begun))
        return begun

    def _tables(self) -> int:
        return sum(table.is_audited for table in self._catalog.tables.values())

    def _roots(self, here: list[str], elsewhere: Stored) -> Stored:
        """Directories to list: of databases and tables, and of partitions that lie elsewhere."""
        rows = [{"kind": TO_LIST, "location": location, "payload": b""} for location in here]
        if not elsewhere.batches:
            return self._run.store("roots", rows, schema=LEVEL, together=("kind",))

        def frame() -> DataFrame:
            known = self._spark.createDataFrame([(location,) for location in here], "location string")
            tops = outermost_of(elsewhere.frame(self._spark).select("location").distinct())
            kind = f.lit(TO_LIST).cast("tinyint").alias("kind")
            return known.union(tops).select(kind, "location", f.lit(b"").alias("payload")).orderBy("location")

        return self._run.store("roots", frame, together=("kind",))

    def _wanted_directories(self) -> Iterator[str]:
        """Directories of databases if all of their tables are wanted, else of tables."""
        options = self._run.options
        for name, locations in self._catalog.databases.items():
            # A name that no table has: what lies there for no table is wanted with everything else.
            if options.wants(name, "\0"):
                yield from (location for location in locations if not self._run.storage.refusal(location))
        yield from (table.location for table in self._catalog.tables.values() if table.is_listed)

    def _compared(self, places: Stored, listed: Stored, lonely: Stored) -> DataFrame:
        closed = (row["location"] for row in listed.where(lambda of: of[0] == UNREADABLE))
        unreadable = tuple(location for location in closed if self._areas.leads_to_areas(location))
        directories = listed.frame(self._spark).select("location", "payload")
        at = places.frame(self._spark).select("location", "place")
        alone = lonely.frame(self._spark).select("location") if lonely.batches else None
        return compared(at, directories, self._sent_areas, self._limits, unreadable, alone)

    # Footers -----------------------------------------------------------------------------------------------------

    def _checked(self, found: Stored) -> Stored | None:
        if self._arguments.no_footers:
            return None
        kept = self._kept()
        contents = self._run.store("contents", lambda: self._contents(found, kept), rows_a_batch=_PLACES_A_BATCH)
        columns = {
            name: (columns, tuple(key.name for key in self._catalog.tables[name].keys))
            for name, columns in self._catalog.columns.items()
        }
        sent = self._spark.sparkContext.broadcast(columns)
        checker = Checker(self._run.storage, sent, self._arguments.all_footers)
        checked = self._run.derive("checked", contents, checker, CHECKED, unit="batches of directories")
        if kept is not None:
            self._run.store("memory", lambda: self._memory(checked, kept))
        return checked

    def _contents(self, found: Stored, kept: Stored | None) -> DataFrame:
        """Tables and partitions whose files have footers, each with what was found there before."""
        rows = found.frame(self._spark).where(f.col("kind").isNull() & f.col("format").isin(*FOOTER_FORMATS))
        of_place = rows.select("database", "table", "partition", "location", *_OLD[1:4], "format").where("files > 0")
        if kept is None:
            nothing = [f.lit(None).cast(_type_of(name)).alias(f"old_{name}") for name in _OLD]
            return of_place.select("*", *nothing).orderBy("location")
        old = kept.frame(self._spark).select("location", *(f.col(name).alias(f"old_{name}") for name in _OLD))
        return of_place.join(old, "location", "left").orderBy("location")

    def _memory(self, checked: Stored, kept: Stored) -> DataFrame:
        """Results about footers: of this audit, and of tables that only earlier ones looked at."""
        now = checked.frame(self._spark)
        wanted = [name for name, table in self._catalog.tables.items() if not table.is_audited]
        others = self._spark.createDataFrame([(name,) for name in wanted], "name string")
        name = f.concat_ws(".", "database", "table")
        rest = kept.frame(self._spark).withColumn("name", name).join(others, "name", "left_semi").drop("name")
        return now.unionByName(rest)

    def _kept(self) -> Stored | None:
        """Results of the last audit of this metastore about footers."""
        run = self._run
        before = [
            record["run"]
            for record in records(run.state)
            if (record["kind"], record["status"]) == (KIND, "done")
            and record["run"] != run.id
            and record["options"]["url"] == run.options.connection.url
        ]
        places = (f"{name}/plan/{table}" for name in reversed(before) for table in ("memory", "checked"))
        found = (Stored.find(run.state, place) for place in places)
        return next((stored for stored in found if stored is not None), None)

    # Findings ----------------------------------------------------------------------------------------------------

    def _findings(self, found: Stored, checked: Stored | None) -> DataFrame:
        rows = found.frame(self._spark).where(f.col("kind").isNotNull())
        if checked is not None:
            rows = rows.unionByName(_of_footers(checked.frame(self._spark)))
        rows = rows.where(f.col("kind") != Kind.PASSED_OVER).unionByName(_by_table(rows))
        if passed := self._passed_databases():
            rows = rows.unionByName(self._spark.createDataFrame(passed, FOUND))
        rank = (
            f.when(f.col("severity") == Severity.ERROR, 0).when(f.col("severity") == Severity.WARNING, 1).otherwise(2)
        )
        return self._without_fleeting(rows).orderBy(rank, "database", "table", "partition", "kind", "location")

    def _passed_databases(self) -> list[tuple[Any, ...]]:
        """FOUND rows of the directories of wanted databases that are not looked at."""
        wanted = ((name, at) for name, at in self._catalog.databases.items() if self._run.options.wants(name, "\0"))
        found = ((name, location, self._run.storage.refusal(location)) for name, at in wanted for location in at)
        nothing = (0, 0, 0.0, None, None)
        return [
            (Severity.WARNING.value, Kind.PASSED_OVER.value, name, "", None, location, reason, *nothing)
            for name, location, reason in found
            if reason
        ]

    def _without_fleeting(self, rows: DataFrame) -> DataFrame:
        """Turns findings that a change during the audit may have caused into notes: the next audit will see."""
        changed = [f"{database}.{table}" for database, table in self._changed()]
        if not changed:
            return rows
        names = self._spark.createDataFrame([(name, True) for name in changed], "name string, is_changed boolean")
        joined = rows.withColumn("name", f.concat_ws(".", "database", "table")).join(names, "name", "left")
        is_fleeting = f.col("is_changed") & f.col("kind").isin(*_FLEETING)
        text = f.concat("text", f.lit("; the table was changed while it was audited"))
        return joined.select(
            f.when(is_fleeting, Severity.NOTE.value).otherwise(f.col("severity")).alias("severity"),
            *("kind", "database", "table", "partition", "location"),
            f.when(is_fleeting, text).otherwise(f.col("text")).alias("text"),
            *("files", "total_bytes", "newest_seconds"),
            f.when(~f.coalesce(is_fleeting, f.lit(False)), f.col("fix")).alias("fix"),
            "format",
        )

    def _changed(self) -> set[tuple[str, str]]:
        try:
            with self._run.client() as client:
                return changed_tables(client, self._run.first_event)
        except EventsExpired:
            return set()

    # Results -----------------------------------------------------------------------------------------------------

    def _finish(self, found: Stored, findings: Stored, places: int, directories: int) -> AuditResult:
        summary = summary_of(found.frame(self._spark), findings)
        least = self._arguments.fail_on.rank
        counted = {severity.value: summary.severities.get(severity.value, 0) for severity in Severity}
        counts = {
            "tables": self._tables(),
            "places": places,
            "directories": directories,
            "files": summary.files,
            "total_bytes": summary.total_bytes,
        }
        return self._run.finish(
            AuditResult,
            counts=counts,
            findings=sum(number for name, number in counted.items() if Severity(name).rank >= least),
            severities=counted,
            kinds=summary.kinds,
            examples=summary.examples,
            passed_over=_places_passed(findings),
            actions=self._write_plan(findings),
            plan=self._arguments.fix,
            html=self._write_page(summary, counts),
            table=self._run.state.path(self._run.path("plan/findings")),
        )

    def _write_plan(self, findings: Stored) -> int:
        if not self._arguments.fix:
            return 0
        head = PlanHead(
            url=self._run.options.connection.url,
            run=self._run.id,
            event=self._run.first_event,
            quiet_seconds=self._arguments.quiet_seconds,
        )
        wanted = (row for row in findings if row["fix"] and self._is_planned(row["fix"]))
        return write_plan(self._arguments.fix, head, map(action_of, wanted))

    def _is_planned(self, fix: str) -> bool:
        return self._arguments.delete_orphans or fix != "delete_orphan"

    def _write_page(self, summary: Summary, counts: dict[str, int]) -> str:
        path = self._arguments.html
        if path:
            text = render(page(summary, counts, self._limits, self._run.options, self._run.id))
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                raise StateFailed(f"page {path} cannot be written: {error.strerror}", "give another --html") from error
        return path


def _by_table(rows: DataFrame) -> DataFrame:
    """FOUND rows of what is passed over, one for each table and reason, with the number of places as `files`.

    There may be as many as the table has partitions.
    """
    own = rows.where(f.col("kind") == Kind.PASSED_OVER).groupBy("database", "table", "text")
    is_outside = f.col("text") == OUTSIDE
    # The kind says that it is passed over.
    reason = f.regexp_replace("text", "^is passed over: ", "")
    counted = f.concat(reason, f.when(f.col("files") > 1, f.format_string(" (%d places)", "files")).otherwise(""))
    return own.agg(f.min("location").alias("location"), f.count("*").alias("files")).select(
        f.when(is_outside, Severity.WARNING.value).otherwise(Severity.ERROR.value).alias("severity"),
        f.when(is_outside, Kind.PASSED_OVER.value).otherwise(Kind.UNREADABLE.value).alias("kind"),
        *("database", "table"),
        f.lit(None).cast("string").alias("partition"),
        *("location", counted.alias("text"), "files"),
        f.lit(0).cast("bigint").alias("total_bytes"),
        f.lit(0.0).alias("newest_seconds"),
        f.lit(None).cast("string").alias("fix"),
        f.lit(None).cast("string").alias("format"),
    )


def _places_passed(findings: Stored) -> int:
    """Count the tables and partitions that are passed over; directories that cannot be listed have no files."""
    return sum(row["files"] for row in findings.where(lambda of: of[1] in (Kind.PASSED_OVER, Kind.UNREADABLE)))


def _of_footers(checked: DataFrame) -> DataFrame:
    """FOUND rows of CHECKED ones."""
    one = checked.select("*", f.explode("problems").alias("problem"))
    some = f.format_string(
        "%s and %d more: %s", f.col("problem.file"), f.col("problem.files") - 1, f.col("problem.text")
    )
    alone = f.concat(f.col("problem.file"), f.lit(": "), f.col("problem.text"))
    return one.select(
        f.col("problem.severity").alias("severity"),
        f.col("problem.kind").alias("kind"),
        *("database", "table", "partition", "location"),
        f.when(f.col("problem.files") > 1, some).otherwise(alone).alias("text"),
        f.col("problem.files").alias("files"),
        f.lit(0).cast("bigint").alias("total_bytes"),
        "newest_seconds",
        f.lit(None).cast("string").alias("fix"),
        f.lit(None).cast("string").alias("format"),
    )


def _type_of(name: str) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(CHECKED.field(name).type)
