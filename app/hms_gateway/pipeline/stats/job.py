"""The job `stats`: statistics of tables, partitions and columns, out of the files' footers or by reading the data."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.batches import Step
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, PartitionNames, check_only
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored, texts
from hms_gateway.pipeline.reports import (
    Bar,
    Bars,
    Fact,
    Page,
    Section,
    Table,
    Tone,
    Unit,
    bytes_text,
    count_text,
    duration_text,
    render,
)
from hms_gateway.pipeline.stats.full import read_in_full, union_of_sketches
from hms_gateway.pipeline.stats.measuring import FAILED, FOUND, FRESH, NAMES, NEW, PASSED, TO_READ, Measurement, tables
from hms_gateway.pipeline.stats.writing import PARTITIONS_A_BATCH, TOTALS, WritePartitions, WriteTables, of_tables

_ROWS_SHOWN_MAX: Final = 1_000
_TABLES_A_BATCH: Final = 20
_OF_TABLE: Final = ("database", "table")
_OF_TOTALS: Final = (*_OF_TABLE, "partitions", "known", "new", "files", "bytes", "rows", "columns", "unknown")
_COUNTED: Final = ("state", "files", "bytes", "rows", "columns", "had_rows", "had_columns")
_TABLES: Final = pyarrow.schema(texts("database", "table"))
_PASSED_BY: Final = pyarrow.schema([*_TABLES, ("reason", pyarrow.string())])


@dataclass(frozen=True, kw_only=True)
class StatsArguments:
    """Arguments of `stats`.

    is_full   read the data, for distinct values, lengths, and formats without footers; else only footers
    is_all    take all statistics again, those of partitions that have not changed too
    """

    is_full: bool = False
    is_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Numbers of partitions (and tables without any) with counted rows, and of columns with statistics."""

    partitions: int
    partitions_before: int
    partitions_after: int
    columns: int
    columns_before: int
    columns_after: int


@dataclass(frozen=True, kw_only=True)
class StatsResult(JobResult):
    """`notes` are files and locations with something wrong, `left_out` columns whose statistics are not known,
    `passed_by` tables without files of their own or with places outside of the roots, `refusals` what was not written;
    each at most 1,000, all of them in the folder.
    """

    coverage: Coverage = Coverage(
        partitions=0, partitions_before=0, partitions_after=0, columns=0, columns_before=0, columns_after=0
    )
    tables: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[Mapping[str, str]] = ()
    left_out: Sequence[Mapping[str, Any]] = ()
    passed_by: Sequence[Mapping[str, str]] = ()
    refusals: Sequence[Mapping[str, str]] = ()


def stats(
    options: JobOptions,
    arguments: StatsArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> StatsResult:
    """Take statistics of the tables that `options.only` names, of partitions that satisfy `options.where`.

    Raises JobFailed.
    """
    if options.connection.is_thrift:
        raise UsageRefused("statistics are written to a gateway over HTTPS, not over Thrift", "give its https:// URL")
    check_only(options)
    is_light = not arguments.is_full
    with Run.begin("stats", options, arguments, spark=spark, progress=progress, is_light=is_light) as run:
        return _Stats(run, options, arguments).run_all()


@dataclass
class _Stats:
    run: Run
    options: JobOptions
    arguments: StatsArguments

    def run_all(self) -> StatsResult:
        wanted = self._tables()
        names = self._names(wanted)
        given = self.arguments
        measure = Measurement(self.options.client, self.run.storage, given.is_full, given.is_all)
        if self.options.dry_run:
            return self._finish(self._found(names, measure), None)
        write = WritePartitions(self.run.storage)
        if self.arguments.is_full:
            found = read_in_full(self.run, self._found(names, measure))
            self._hold(found)
        else:
            self._hold(names)
            found = self._found(names, measure, then=("write", write))
        self.run.batches(found, write, name="write", unit="batches")
        totals_of = self.run.store("totals", lambda: self._totals(found), rows_a_batch=_TABLES_A_BATCH, schema=TOTALS)
        self.run.batches(
            totals_of, WriteTables(self.run.storage, bool(self.options.where)), name="tables", unit="batches"
        )
        keep(self.run, found, is_part=bool(self.options.where))
        return self._finish(found, totals_of)

    def _tables(self) -> Stored:
        """The tables to look at; those that are passed by are stored beside them, with the reason."""
        if (found := self.run.stored("tables")) is not None:
            return found
        wanted: list[dict[str, Any]] = []

        def passed() -> Iterator[dict[str, Any]]:
            with self.run.client() as client:
                for table, reason in tables(client, self.options):
                    row = {"database": table.dbName, "table": table.tableName}
                    if reason:
                        yield row | {"reason": reason}
                    else:
                        wanted.append(row)

        self.run.store("passed", list(passed()), schema=_PASSED_BY)
        return self.run.store("tables", wanted, rows_a_batch=_TABLES_A_BATCH, schema=_TABLES)

    def _names(self, wanted: Stored) -> Stored:
        options = self.options
        select = PartitionNames(options.client, NAMES, options.where)
        names = self.run.derive(
            "names", wanted, select, NAMES, rows_a_batch=PARTITIONS_A_BATCH, together=_OF_TABLE, unit="tables"
        )
        if not self._uses_kept(names):
            return names
        return self.run.store(
            "names-and-kept",
            lambda: with_kept(self.run, names),
            rows_a_batch=PARTITIONS_A_BATCH,
            together=_OF_TABLE,
        )

    def _uses_kept(self, names: Stored) -> bool:
        """Decided once: what is made of the names must be made of the same ones when the run is resumed."""
        file = self.run.path("uses-kept.json")
        decided = self.run.state.read_json(file)
        if decided is None:
            decided = {"uses": not self.arguments.is_all and has_any(self.run, names)}
            self.run.state.write_json(file, decided)
        return bool(decided["uses"])

    def _found(self, names: Stored, measure: Measurement, then: tuple[str, Step] | None = None) -> Stored:
        return self.run.derive(
            "found", names, measure, FOUND, rows_a_batch=PARTITIONS_A_BATCH, together=_OF_TABLE, then=then
        )

    def _hold(self, of_tables: Stored) -> None:
        self.run.hold([".".join(of) for of in dict.fromkeys(batch.of for batch in of_tables.batches)])

    def _totals(self, found: Stored) -> Iterator[dict[str, Any]]:
        distinct: dict[tuple[str, str], Any] = {}
        if self.arguments.is_full:
            of_tables_together = union_of_sketches(found.frame(self.run.spark)).collect()
            distinct = {(row.database, row.table): list(row.distinct.items()) for row in of_tables_together}
        return of_tables(self.run.results("write"), distinct)

    def _finish(self, found: Stored, totals_of: Stored | None) -> StatsResult:
        states, notes, note_count, outside = _counted(found)
        passed = [*outside, *(self.run.stored("passed") or ())]
        write, of_tables_written = self.run.counted("write"), self.run.counted("tables")
        refusals = [
            {"item": each.item, "reason": each.reason}
            for name in ("write", "tables")
            for each in self.run.refusals(name)
        ]
        partitions = write["partitions"] + of_tables_written["unpartitioned"]
        columns = write["columns"] + of_tables_written["columns_of_unpartitioned"]
        by_table = [{name: row[name] for name in _OF_TOTALS} for row in totals_of or ()]
        return self.run.finish(
            StatsResult,
            counts={
                "partitions": _sum(states, "partitions"),
                "fresh": _sum(states, "partitions", FRESH),
                "failed": _sum(states, "partitions", FAILED),
                "planned": _sum(states, "partitions", NEW, TO_READ),
                "written": partitions,
                "columns_written": columns,
                "tables_written": of_tables_written["tables"],
                **{name: _sum(states, name) for name in ("files", "bytes", "rows")},
            },
            findings=note_count + len(outside),
            passed_over=_sum(states, "partitions", PASSED),
            refused=write.refused + of_tables_written.refused,
            coverage=_coverage_of(states, partitions, columns),
            tables=_largest(by_table),
            notes=notes,
            left_out=_left_out([*by_table, *self.run.results("tables")]),
            passed_by=passed[:_ROWS_SHOWN_MAX],
            refusals=refusals[:_ROWS_SHOWN_MAX],
        )


_States = dict[str, dict[str, int]]


def _counted(found: Stored) -> tuple[_States, list[dict[str, str]], int, list[dict[str, str]]]:
    """Sums by state, the first notes, how many there are, and what is passed by, a row for each table and reason.

    A batch at a time, and of it a few columns.
    """
    states: _States = {}
    notes: list[dict[str, str]] = []
    note_count = 0
    passed = Counter[tuple[str, str, str]]()
    for batch in found.batches:
        with found.state.input(batch.file) as opened:
            table = pyarrow.parquet.ParquetFile(opened).read_row_group(batch.group, columns=[*_COUNTED, "notes"])
        for row in table.to_pylist():
            sums = states.setdefault(row["state"], dict.fromkeys(("partitions", *_COUNTED[1:]), 0))
            sums["partitions"] += 1
            for name in _COUNTED[1:]:
                sums[name] += row[name] or 0
            if row["state"] == PASSED:
                passed[(*batch.of, row["notes"][0]["reason"])] += 1
                continue
            note_count += len(row["notes"] or ())
            if len(notes) < _ROWS_SHOWN_MAX:
                notes += row["notes"] or ()
    outside = [
        {"database": database, "table": table, "reason": reason if number == 1 else f"{reason} ({number:,} partitions)"}
        for (database, table, reason), number in passed.items()
    ]
    return states, notes[:_ROWS_SHOWN_MAX], note_count, outside


def _sum(states: _States, name: str, *of: str) -> int:
    return sum(sums[name] for state, sums in states.items() if not of or state in of)


def _largest(by_table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    largest = sorted(by_table, key=lambda row: (-row["bytes"], row["database"], row["table"]))
    return [{name: row[name] for name in _OF_TOTALS[:-1]} for row in largest[:_ROWS_SHOWN_MAX]]


def _left_out(by_table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Columns without statistics, by table and reason."""
    added = Counter[tuple[str, str, str, str]]()
    for row in by_table:
        for one in row["unknown"] or ():
            added[row["database"], row["table"], one["column"], one["reason"]] += one["partitions"]
    names = ("database", "table", "column", "reason")
    return [dict(zip(names, key, strict=True)) | {"partitions": added[key]} for key in sorted(added)[:_ROWS_SHOWN_MAX]]


def _coverage_of(states: _States, partitions: int, columns: int) -> Coverage:
    """The coverage before and after the new statistics were written."""
    stays = [state for state in states if state not in (NEW, TO_READ)]
    return Coverage(
        partitions=_sum(states, "partitions"),
        partitions_before=_sum(states, "had_rows"),
        partitions_after=(_sum(states, "had_rows", *stays) if stays else 0) + partitions,
        columns=_sum(states, "columns"),
        columns_before=_sum(states, "had_columns"),
        columns_after=(_sum(states, "had_columns", *stays) if stays else 0) + columns,
    )


# Results of earlier runs, kept in the state: whole tables have statistics of these where partitions are unchanged.
#
# A file for each table names the runs that know about its partitions, the newest first.


_RUNS_MAX: Final = 10
_KEYS: Final = ("database", "table", "partition")
_KEPT: Final = ("of", "rows", "raw", "figures", "sketches")


def has_any(run: Run, names: Stored) -> bool:
    """True if an earlier run knows about one of the tables."""
    return any(True for table in _tables_of(names) for _ in _runs(run, table))


def with_kept(run: Run, names: Stored) -> DataFrame:
    """The names, each with what the newest run that knows it found."""
    by_place: dict[str, tuple[int, list[str]]] = {}
    for table in _tables_of(names):
        for age, place in enumerate(_runs(run, table)):
            by_place.setdefault(place, (age, []))[1].append(".".join(table))
    found = [part for place, (age, of) in by_place.items() if (part := _part(run, place, age, of)) is not None]
    bare = names.frame(run.spark).select(*_KEYS)
    if not found:
        return names.frame(run.spark)
    together = found[0]
    for part in found[1:]:
        together = together.unionByName(part)
    newest = Window.partitionBy(*_KEYS).orderBy("age")
    newest_only = together.withColumn("place", sql.row_number().over(newest)).where("place = 1").drop("place", "age")
    return bare.join(newest_only, list(_KEYS), "left").orderBy(*_KEYS)


def keep(run: Run, found: Stored, *, is_part: bool) -> None:
    """Note that this run knows about its tables; where it looked at a part only, others before it do too."""
    for table in _tables_of(found):
        before = _runs(run, table) if is_part else []
        places = [run.id, *(place for place in before if place != run.id)][:_RUNS_MAX]
        run.state.write_json(_file(table), {"runs": places})


def _tables_of(stored: Stored) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(batch.of for batch in stored.batches))


def _runs(run: Run, table: Sequence[Any]) -> list[str]:
    noted = run.state.read_json(_file(table))
    return [] if noted is None else [str(place) for place in noted["runs"]]


def _file(table: Sequence[Any]) -> str:
    return f"kept/{quote('.'.join(map(str, table)), safe='')}.json"


def _part(run: Run, place: str, age: int, tables: Sequence[str]) -> DataFrame | None:
    """None where the run was removed."""
    wanted = set(tables)
    stored = next(
        (each for name in ("read", "found") if (each := Stored.find(run.state, f"{place}/plan/{name}")) is not None),
        None,
    )
    if stored is None:
        return None
    kept = stored.where(lambda of: ".".join(map(str, of)) in wanted).frame(run.spark)
    columns = [sql.col(name).alias(f"kept_{name}") for name in _KEPT]
    return kept.where(sql.col("state").isin(NEW, FRESH)).select(*_KEYS, *columns, sql.lit(age).alias("age"))


# The page of a run of `stats`: how much has statistics before and after, and what is in the way of more.


_ROWS_MAX: Final = 200
_BARS_MAX: Final = 20


def page_of(result: "StatsResult") -> str:
    """The page in HTML; write it as UTF-8."""
    return render(
        Page(
            title="Statistics of tables",
            subtitle=f"run {result.run}, {result.status}",
            facts=_facts(result),
            sections=[_coverage(result.coverage), _tables(result), _problems(result)],
            foot=f"Made by hms-gateway pipeline stats in {duration_text(result.seconds)}; all rows: {result.folder}",
        )
    )


def _facts(result: "StatsResult") -> list[Fact]:
    counts = result.counts
    return [
        Fact("partitions and tables without any", count_text(counts["partitions"])),
        Fact("written", count_text(counts["written"]), Tone.GOOD if counts["written"] else Tone.PLAIN),
        Fact("unchanged since their last statistics", count_text(counts["fresh"])),
        Fact("not known", count_text(counts["failed"]), Tone.ERROR if counts["failed"] else Tone.PLAIN),
        Fact("left for the next run", count_text(result.refused), Tone.WARNING if result.refused else Tone.PLAIN),
        Fact("rows", count_text(counts["rows"])),
        Fact("files", count_text(counts["files"])),
        Fact("bytes", bytes_text(counts["bytes"])),
    ]


def _coverage(coverage: "Coverage") -> Section:
    bars = [
        Bar("rows counted, before", _percent(coverage.partitions_before, coverage.partitions)),
        Bar("rows counted, after", _percent(coverage.partitions_after, coverage.partitions), Tone.GOOD),
        Bar("columns, before", _percent(coverage.columns_before, coverage.columns)),
        Bar("columns, after", _percent(coverage.columns_after, coverage.columns), Tone.GOOD),
    ]
    text = "Of the partitions those whose rows are counted, and of their columns those whose statistics hold."
    return Section("Coverage", [Bars("Share that has statistics", bars, Unit.PERCENT, 100)], text)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _tables(result: "StatsResult") -> Section:
    columns = ("partitions", "known", "files", "bytes", "rows")
    rows = [[f"{each['database']}.{each['table']}", *(each[name] for name in columns)] for each in result.tables]
    units = (None, Unit.COUNT, Unit.COUNT, Unit.COUNT, Unit.BYTES, Unit.COUNT)
    largest = [Bar(str(row[0]), float(row[4] or 0)) for row in rows[:_BARS_MAX]]
    table = Table(("table", *columns), rows[:_ROWS_MAX], units, left_out=max(0, len(rows) - _ROWS_MAX))
    return Section("Tables", [Bars("The largest", largest, Unit.BYTES), table] if rows else [])


def _problems(result: "StatsResult") -> Section:
    noted = [[note["path"], note["reason"]] for note in result.notes]
    refused = [[each["item"], each["reason"]] for each in result.refusals]
    unknown = [
        [f"{each['database']}.{each['table']}", each["column"], each["reason"], each["partitions"]]
        for each in result.left_out
    ]
    passed = [[f"{each['database']}.{each['table']}", each["reason"]] for each in result.passed_by]
    found = (
        ("Files and locations", ("path", "what is wrong"), noted, result.findings),
        ("Not written", ("object", "reason"), refused, result.refused),
        ("Columns without statistics", ("table", "column", "reason", "partitions"), unknown, len(unknown)),
        ("Tables passed by", ("table", "reason"), passed, len(passed)),
    )
    blocks = [
        Table(columns, rows[:_ROWS_MAX], title=title, left_out=max(0, count - len(rows[:_ROWS_MAX])))
        for title, columns, rows, count in found
        if rows
    ]
    return Section("What is in the way", blocks, "" if blocks else "Nothing.")
