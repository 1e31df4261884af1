"""The job `stats`: statistics of tables, partitions and columns, out of the files' footers or by reading the data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession

from hms_gateway.pipeline.jobs.batches import Step
from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.results import JobResult
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.selection import check_only
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.stats import kept as keeping
from hms_gateway.pipeline.stats.full import read_in_full, union_of_sketches
from hms_gateway.pipeline.stats.measuring import (
    FAILED,
    FOUND,
    FRESH,
    NAMES,
    NEW,
    PASSED,
    TO_READ,
    Measurement,
    SelectNames,
)
from hms_gateway.pipeline.stats.selecting import tables
from hms_gateway.pipeline.stats.tables import WriteTables
from hms_gateway.pipeline.stats.totals import TOTALS, of_tables
from hms_gateway.pipeline.stats.writing import PARTITIONS_A_BATCH, WritePartitions

_ROWS_SHOWN_MAX: Final = 1_000
_TABLES_A_BATCH: Final = 20
_OF_TABLE: Final = ("database", "table")
_OF_TOTALS: Final = (*_OF_TABLE, "partitions", "known", "new", "files", "bytes", "rows", "columns", "unknown")
_COUNTED: Final = ("state", "files", "bytes", "rows", "columns", "had_rows", "had_columns")
_TABLES: Final = pyarrow.schema([("database", pyarrow.string()), ("table", pyarrow.string())])
_PASSED_BY: Final = pyarrow.schema([*_TABLES, ("reason", pyarrow.string())])


@dataclass(frozen=True, kw_only=True)
class StatsArguments:
    """What `stats` is to do.

    is_full   read the data, for distinct values, lengths, and formats without footers; else only footers
    is_all    take all statistics again, those of partitions that have not changed too
    """

    is_full: bool = False
    is_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many partitions (and tables without any) have their rows counted, and how many columns have statistics."""

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
        measure = Measurement(
            self.options.connection,
            self.run.storage,
            self.arguments.is_full,
            self.arguments.is_all,
            self.options.patience_seconds,
        )
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
        keeping.keep(self.run, found, is_part=bool(self.options.where))
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
        select = SelectNames(self.options.connection, self.options.where, self.options.patience_seconds)
        names = self.run.derive(
            "names", wanted, select, NAMES, rows_a_batch=PARTITIONS_A_BATCH, together=_OF_TABLE, unit="tables"
        )
        if not self._uses_kept(names):
            return names
        return self.run.store(
            "names-and-kept",
            lambda: keeping.with_kept(self.run, names),
            rows_a_batch=PARTITIONS_A_BATCH,
            together=_OF_TABLE,
        )

    def _uses_kept(self, names: Stored) -> bool:
        """Decided once: what is made of the names must be made of the same ones when the run is resumed."""
        file = self.run.path("uses-kept.json")
        decided = self.run.state.read_json(file)
        if decided is None:
            decided = {"uses": not self.arguments.is_all and keeping.has_any(self.run, names)}
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
        return of_tables(_result_rows(self.run, "write"), distinct)

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
            coverage=_coverage(states, partitions, columns),
            tables=_largest(by_table),
            notes=notes,
            left_out=_left_out([*by_table, *_result_rows(self.run, "tables")]),
            passed_by=passed[:_ROWS_SHOWN_MAX],
            refusals=refusals[:_ROWS_SHOWN_MAX],
        )


def _result_rows(run: Run, name: str) -> Iterator[dict[str, Any]]:
    """The rows of the outcomes of batches, in their order."""
    folder = run.path(f"result/{name}")
    for file in run.state.names(folder):
        with run.state.input(f"{folder}/{file}") as opened:
            yield from pyarrow.parquet.read_table(opened).to_pylist()


_States = dict[str, dict[str, int]]


def _counted(found: Stored) -> tuple[_States, list[dict[str, str]], int, list[dict[str, str]]]:
    """Sums by state, the first notes, how many there are, and what is passed by, a row for each table and reason.

    A batch at a time, and of it a few columns.
    """
    states: _States = {}
    notes: list[dict[str, str]] = []
    note_count = 0
    passed: dict[tuple[str, str, str], int] = {}
    for batch in found.batches:
        with found.state.input(batch.file) as opened:
            table = pyarrow.parquet.ParquetFile(opened).read_row_group(batch.group, columns=[*_COUNTED, "notes"])
        for row in table.to_pylist():
            sums = states.setdefault(row["state"], dict.fromkeys(("partitions", *_COUNTED[1:]), 0))
            sums["partitions"] += 1
            for name in _COUNTED[1:]:
                sums[name] += row[name] or 0
            if row["state"] == PASSED:
                key = (*batch.of, row["notes"][0]["reason"])
                passed[key] = passed.get(key, 0) + 1
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
    added: dict[tuple[str, str, str, str], int] = {}
    for row in by_table:
        for one in row["unknown"] or ():
            key = row["database"], row["table"], one["column"], one["reason"]
            added[key] = added.get(key, 0) + one["partitions"]
    names = ("database", "table", "column", "reason")
    return [dict(zip(names, key, strict=True)) | {"partitions": added[key]} for key in sorted(added)[:_ROWS_SHOWN_MAX]]


def _coverage(states: _States, partitions: int, columns: int) -> Coverage:
    """What was there before, and what is after the new statistics were written."""
    stays = [state for state in states if state not in (NEW, TO_READ)]
    return Coverage(
        partitions=_sum(states, "partitions"),
        partitions_before=_sum(states, "had_rows"),
        partitions_after=(_sum(states, "had_rows", *stays) if stays else 0) + partitions,
        columns=_sum(states, "columns"),
        columns_before=_sum(states, "had_columns"),
        columns_after=(_sum(states, "had_columns", *stays) if stays else 0) + columns,
    )
