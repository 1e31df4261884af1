"""The job `stats`: statistics of tables, partitions and columns, out of the files' footers or by reading the data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.results import JobResult
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.stats import kept as keeping
from hms_gateway.pipeline.stats.full import read_in_full, union_of_sketches
from hms_gateway.pipeline.stats.measuring import FAILED, FOUND, FRESH, NAMES, NEW, TO_READ, Measurement, SelectNames
from hms_gateway.pipeline.stats.selecting import tables
from hms_gateway.pipeline.stats.tables import WriteTables
from hms_gateway.pipeline.stats.totals import totals
from hms_gateway.pipeline.stats.writing import PARTITIONS_A_BATCH, WritePartitions

_ROWS_SHOWN_MAX: Final = 1_000
_TABLES_A_BATCH: Final = 20
_OF_TABLE: Final = ("database", "table")
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
    `passed_by` tables without files of their own, `refusals` what was not written; each at most 1,000, all of them
    in the folder.
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
    with Run.begin("stats", options, arguments, spark=spark, progress=progress) as run:
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
            self.options.storage,
            self.arguments.is_full,
            self.arguments.is_all,
            self.options.patience_seconds,
        )
        found = self._derive("found", names, measure)
        if self.options.dry_run:
            return self._finish(found, None)
        if self.arguments.is_full:
            found = read_in_full(self.run, found)
        self.run.hold([".".join(of) for of in dict.fromkeys(batch.of for batch in found.batches)])
        self.run.batches(found, WritePartitions(self.options.storage), name="write", unit="batches")
        totals_of = self.run.store("totals", lambda: self._totals(found), rows_a_batch=_TABLES_A_BATCH)
        self.run.batches(totals_of, WriteTables(self.options.storage), name="tables", unit="batches")
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
        if self.arguments.is_all:
            return names
        return (
            self.run.store(
                "names-and-kept",
                lambda: keeping.with_kept(self.run, names),
                rows_a_batch=PARTITIONS_A_BATCH,
                together=_OF_TABLE,
            )
            if keeping.has_any(self.run, names)
            else names
        )

    def _derive(self, name: str, names: Stored, measure: Measurement) -> Stored:
        return self.run.derive(name, names, measure, FOUND, rows_a_batch=PARTITIONS_A_BATCH, together=_OF_TABLE)

    def _totals(self, found: Stored) -> DataFrame:
        frame = found.frame(self.run.spark)
        refused = sorted({each.item.partition(" ")[0] for each in self.run.refusals("write")})
        is_changed = sql.concat_ws(".", "database", "table").isin(refused) if refused else sql.lit(False)
        summed = totals(frame).withColumn("is_changed", is_changed)
        if not self.arguments.is_full:
            return summed.withColumn("distinct", sql.lit(None).cast("map<string,bigint>"))
        return summed.join(union_of_sketches(frame), list(_OF_TABLE), "left").orderBy(*_OF_TABLE)

    def _finish(self, found: Stored, totals_of: Stored | None) -> StatsResult:
        spark = self.run.spark
        states = {
            row.state: row
            for row in found.frame(spark)
            .groupBy("state")
            .agg(
                sql.count("*").alias("partitions"),
                sql.sum("files").alias("files"),
                sql.sum("bytes").alias("bytes"),
                sql.sum("rows").alias("rows"),
                sql.sum("columns").alias("columns"),
                sql.sum(sql.col("had_rows").cast("int")).alias("had_rows"),
                sql.sum("had_columns").alias("had_columns"),
            )
            .collect()
        }
        noted = found.frame(spark).select(sql.explode("notes").alias("note")).select("note.path", "note.reason")
        notes = [row.asDict() for row in noted.limit(_ROWS_SHOWN_MAX).collect()]
        note_count = noted.count() if len(notes) == _ROWS_SHOWN_MAX else len(notes)
        passed = self.run.stored("passed")
        write, of_tables = self.run.counted("write"), self.run.counted("tables")
        refusals = [
            {"item": each.item, "reason": each.reason}
            for name in ("write", "tables")
            for each in self.run.refusals(name)
        ]
        partitions = write["partitions"] + of_tables["unpartitioned"]
        columns = write["columns"] + of_tables["columns_of_unpartitioned"]
        return self.run.finish(
            StatsResult,
            counts={
                "partitions": sum(row.partitions for row in states.values()),
                "fresh": _count(states, FRESH, "partitions"),
                "failed": _count(states, FAILED, "partitions"),
                "planned": _count(states, NEW, "partitions") + _count(states, TO_READ, "partitions"),
                "written": partitions,
                "columns_written": columns,
                "tables_written": of_tables["tables"],
                "files": sum(row.files or 0 for row in states.values()),
                "bytes": sum(row.bytes or 0 for row in states.values()),
                "rows": sum(row.rows or 0 for row in states.values()),
            },
            findings=note_count,
            refused=write.refused + of_tables.refused,
            coverage=_coverage(states, partitions, columns),
            tables=[] if totals_of is None else self._by_table(totals_of),
            notes=notes,
            left_out=self._left_out(),
            passed_by=[] if passed is None else list(passed)[:_ROWS_SHOWN_MAX],
            refusals=refusals[:_ROWS_SHOWN_MAX],
        )

    def _by_table(self, totals_of: Stored) -> list[dict[str, Any]]:
        shown = ("database", "table", "partitions", "known", "new", "files", "bytes", "rows", "columns", "had_columns")
        frame = totals_of.frame(self.run.spark).select(*shown).orderBy(sql.desc("bytes"), *_OF_TABLE)
        return [row.asDict() for row in frame.limit(_ROWS_SHOWN_MAX).collect()]

    def _left_out(self) -> list[dict[str, Any]]:
        added: dict[tuple[str, ...], int] = {}
        for name in ("write", "tables"):
            for row in _result_rows(self.run, name):
                key = tuple(row[each] for each in ("database", "table", "column", "reason"))
                added[key] = added.get(key, 0) + row["partitions"]
        keys = sorted(added)[:_ROWS_SHOWN_MAX]
        return [
            dict(zip(("database", "table", "column", "reason"), key, strict=True)) | {"partitions": added[key]}
            for key in keys
        ]


def _result_rows(run: Run, name: str) -> Iterator[dict[str, Any]]:
    """The rows of the outcomes of batches."""
    folder = run.path(f"result/{name}")
    for file in run.state.names(folder):
        with run.state.input(f"{folder}/{file}") as opened:
            yield from pyarrow.parquet.read_table(opened).to_pylist()


def _count(states: Mapping[str, Any], state: str, what: str) -> int:
    return int(getattr(states[state], what) or 0) if state in states else 0


def _coverage(states: Mapping[str, Any], partitions: int, columns: int) -> Coverage:
    """What was there before, and what is after the new statistics were written."""
    stays = [row for state, row in states.items() if state != NEW]
    return Coverage(
        partitions=sum(row.partitions for row in states.values()),
        partitions_before=sum(row.had_rows or 0 for row in states.values()),
        partitions_after=sum(row.had_rows or 0 for row in stays) + partitions,
        columns=sum(row.columns or 0 for row in states.values()),
        columns_before=sum(row.had_columns or 0 for row in states.values()),
        columns_after=sum(row.had_columns or 0 for row in stays) + columns,
    )
