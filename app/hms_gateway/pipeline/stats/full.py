"""Figures out of the data: one pass of Spark over some hundreds of partitions at a time, grouped by partition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql import functions as sql

from hms_gateway.pipeline.errors import JobFailed
from hms_gateway.pipeline.footers.footer import Column, FooterFigures
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.spark import map_in_arrow
from hms_gateway.pipeline.jobs.stored import Stored, numbers, spark_schema, texts
from hms_gateway.pipeline.stats.column_statistics import ValueKind, base_of, kind_of, packed, raw_bytes, unpacked
from hms_gateway.pipeline.stats.measuring import (
    FAILED,
    FOUND,
    NEW,
    PARQUET_OPTIONS,
    TO_READ,
    TextForm,
    columns_of,
    how_to_read,
    serde_of,
    text_form,
    uri_of,
)
from hms_gateway.pipeline.stats.writing import PARTITIONS_A_BATCH
from hms_gateway.rpc.structs import Table

PARTITIONS_A_PASS: Final = 2_000
# 2^12 registers: the number of distinct values is within 1.6 % in two of three cases (one standard deviation).
SKETCH_BITS: Final = 12

_KEYS: Final = ("database", "table", "partition")
_PASSED: Final = pyarrow.schema(
    [
        ("partition", pyarrow.string()),
        *numbers("counted", "counted_raw"),
        ("counted_figures", pyarrow.binary()),
        ("counted_sketches", pyarrow.map_(pyarrow.string(), pyarrow.binary())),
        *texts("problem", "database", "table"),
    ]
)
_NANOSECONDS_A_MICROSECOND: Final = 1_000


def read_in_full(run: Run, found: Stored) -> Stored:
    """Rows of FOUND with figures of the data in place of `to read`; the table `read` of the run."""
    if (done := run.stored("read")) is not None:
        return done
    passes = [stored for number, group in enumerate(_groups(found)) for stored in _passes(run, f"pass-{number}", group)]
    if not passes:
        return found
    results = Stored.joined(passes).frame(run.spark)
    together = found.frame(run.spark).join(results, list(_KEYS), "left").orderBy(*_KEYS)
    return run.store(
        "read",
        lambda: map_in_arrow(together, _completed, spark_schema(FOUND)),
        rows_a_batch=PARTITIONS_A_BATCH,
        together=("database", "table"),
    )


def union_of_sketches(frame: DataFrame) -> DataFrame:
    """By table a map of columns to distinct values, where all partitions with rows have a sketch of the column."""
    of_table = ["database", "table"]
    partitions = frame.groupBy(*of_table).agg(sql.count_if(sql.coalesce("rows", sql.lit(1)) > 0).alias("with_rows"))
    sketches = frame.select(*of_table, sql.explode("sketches").alias("name", "sketch"))
    estimates = sketches.groupBy(*of_table, "name").agg(
        sql.hll_sketch_estimate(sql.hll_union_agg("sketch")).alias("distinct"), sql.count("*").alias("sketched")
    )
    whole = estimates.join(partitions, of_table).where("sketched = with_rows")
    entries = sql.map_from_entries(sql.collect_list(sql.struct("name", "distinct")))
    return whole.groupBy(*of_table).agg(entries.alias("distinct"))


def _groups(found: Stored) -> Iterator[list[dict[str, Any]]]:
    """Partitions of one table and one format, as many as Spark reads at once."""
    group: list[dict[str, Any]] = []
    wanted = (*_KEYS, "location", "library", "folders")
    for row in found:
        if row["state"] != TO_READ:
            continue
        is_like = bool(group) and all(group[-1][name] == row[name] for name in ("database", "table", "library"))
        if group and (not is_like or len(group) >= PARTITIONS_A_PASS):
            yield group
            group = []
        group.append({name: row[name] for name in wanted})
    if group:
        yield group


def _passes(run: Run, name: str, group: Sequence[Mapping[str, Any]]) -> list[Stored]:
    """Results of Spark about a group; halved where it fails, until an unreadable partition is alone."""
    try:
        return [run.store(name, lambda: _pass(run, group))]
    except JobFailed as failed:
        if type(failed) is not JobFailed or run.spark.sparkContext._jsc.sc().isStopped():
            raise
        if len(group) == 1:
            row = {key: group[0][key] for key in _KEYS} | {"problem": f"cannot be read: {failed}"}
            return [run.store(f"{name}-failed", [row], schema=_PASSED)]
    half = len(group) // 2
    return [*_passes(run, f"{name}-1", group[:half]), *_passes(run, f"{name}-2", group[half:])]


def _pass(run: Run, group: Sequence[Mapping[str, Any]]) -> DataFrame:
    database, table_name, library = group[0]["database"], group[0]["table"], group[0]["library"]
    with run.client() as client:
        table = client.call("get_table", database, table_name)
    columns = [column for column in columns_of(table) if kind_of(column.type) is not None]
    folders = [(uri_of(row["location"], folder), row["partition"]) for row in group for folder in row["folders"]]
    places = run.spark.createDataFrame(folders, "folder string, partition string")
    # A path is a path, whatever characters are in it.
    read = run.spark.read.option("recursiveFileLookup", "true").option("__globPaths__", "false")
    data, values = _values(read, library, table, columns, [row["location"] for row in group])
    path = sql.regexp_replace(sql.col("_metadata.file_path"), "^file:/+", "file:/")
    folder = sql.regexp_replace(path, "/[^/]*$", "")
    rows = data.select(*values, folder.alias("\0folder"))
    of_partition = rows.join(sql.broadcast(places), rows["\0folder"] == places["folder"], "left")
    counted = of_partition.groupBy("partition").agg(
        sql.count("*").alias("counted"),
        *(each for place, column in enumerate(columns) for each in _aggregates(place, column)),
    )
    distinct = {f"{place}_distinct": sql.hll_sketch_estimate(f"{place}_sketch") for place in range(len(columns))}
    pack = PackCounted(database, table_name, tuple(columns))
    return map_in_arrow(counted.withColumns(distinct), pack, spark_schema(_PASSED))


def _values(
    read: DataFrameReader, library: str, table: Table, columns: Sequence[Column], locations: list[str]
) -> tuple[DataFrame, list[SparkColumn]]:
    """The data that Spark reads, and its columns with statistics. Raises JobFailed."""
    form = how_to_read(library)
    if form == "text":
        written = text_form(serde_of(table.sd))
        if written.escape:
            raise JobFailed("text with escape.delim is not read")
        return read.text(locations, lineSep="\n"), list(_of_lines(columns_of(table), written))
    options = PARQUET_OPTIONS if form == "parquet" else {}
    data = read.schema(_spark_schema(columns_of(table))).options(**options).format(form).load(locations)
    return data, [sql.col(_quoted(column.name)) for column in columns]


def _of_lines(columns: Sequence[Column], written: TextForm) -> Iterator[SparkColumn]:
    """Fields of a line; one that is missing or no value of its type is null, as in Hive."""
    fields = sql.split("value", f"\\Q{written.separator}\\E", -1)
    for place, column in enumerate(columns):
        if kind_of(column.type) is not None:
            field = sql.get(fields, sql.lit(place))
            known = sql.when(field != written.null, field)
            yield known.try_cast(_spark_type(column.type)).alias(column.name)


def _spark_schema(columns: Sequence[Column]) -> str:
    """All columns: ORC files of old Hive versions have places instead of names."""
    return ", ".join(f"{_quoted(column.name)} {_spark_type(column.type)}" for column in columns)


def _spark_type(column_type: str) -> str:
    return "string" if base_of(column_type) in ("char", "varchar") else column_type


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _aggregates(place: int, column: Column) -> Iterator[SparkColumn]:
    """Figures of one column; each has a name of its own."""
    value, kind = sql.col(_quoted(column.name)), kind_of(column.type)
    yield sql.count(value).alias(f"{place}_values")
    # Hashes of all types are alike, and so are the two zeros.
    hashed = sql.when(value.isNotNull(), sql.xxhash64(value + sql.lit(0.0) if kind is ValueKind.DOUBLE else value))
    yield sql.hll_sketch_agg(hashed, sql.lit(SKETCH_BITS)).alias(f"{place}_sketch")
    match kind:
        case ValueKind.BOOLEAN:
            yield sql.count_if(value).alias(f"{place}_trues")
        case ValueKind.STRING | ValueKind.BINARY:
            yield sql.sum(sql.octet_length(value)).alias(f"{place}_bytes")
            yield sql.max(sql.octet_length(value)).alias(f"{place}_longest")
        case _:
            for name, choose in (("low", sql.min), ("high", sql.max)):
                yield choose(_comparable(value, kind)).alias(f"{place}_{name}")


def _comparable(value: SparkColumn, kind: ValueKind | None) -> SparkColumn:
    match kind:
        case ValueKind.DATE:
            return sql.unix_date(value)
        case ValueKind.TIMESTAMP:
            return sql.unix_micros(value)
        case ValueKind.DOUBLE:
            # Hive leaves NaN out of bounds, as Parquet and ORC do.
            return sql.when(~sql.isnan(value), value.cast("double") + sql.lit(0.0))
        case _:
            return value


@dataclass(frozen=True)
class PackCounted:
    """For `mapInArrow` over the groups: their figures and sketches as rows of a pass."""

    database: str
    table: str
    columns: tuple[Column, ...]

    def __call__(self, pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for piece in pieces:
            rows = [self._row(row) for row in piece.to_pylist()]
            yield pyarrow.RecordBatch.from_pylist(rows, _PASSED)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        figures = {
            column.name: counted_figures(row["counted"], kind_of(column.type), str(place), row)
            for place, column in enumerate(self.columns)
        }
        sketches = [(column.name, row[f"{place}_sketch"]) for place, column in enumerate(self.columns)]
        return {
            "database": self.database,
            "table": self.table,
            "partition": row["partition"],
            "counted": row["counted"],
            "counted_raw": sum(raw_bytes(column.type, figures[column.name]) or 0 for column in self.columns),
            "counted_figures": packed(figures),
            "counted_sketches": [each for each in sketches if each[1] is not None],
            "problem": None,
        }


def counted_figures(rows: int, kind: ValueKind | None, place: str, row: Mapping[str, Any]) -> FooterFigures:
    """Figures out of the aggregates of one column."""
    low, high = row.get(f"{place}_low"), row.get(f"{place}_high")
    if kind is ValueKind.TIMESTAMP and low is not None and high is not None:
        low, high = low * _NANOSECONDS_A_MICROSECOND, high * _NANOSECONDS_A_MICROSECOND
    return FooterFigures(
        rows=rows,
        nulls=rows - row[f"{place}_values"],
        low=low,
        high=high,
        has_bounds=True,
        is_exact=True,
        byte_count=(row.get(f"{place}_bytes") or 0) if kind in (ValueKind.STRING, ValueKind.BINARY) else None,
        longest=(row.get(f"{place}_longest") or 0) if kind in (ValueKind.STRING, ValueKind.BINARY) else None,
        longest_is_exact=True,
        trues=row.get(f"{place}_trues"),
        distinct=row[f"{place}_distinct"],
    )


def _completed(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    names = set(FOUND.names)
    for piece in pieces:
        rows = [completed(row) for row in piece.to_pylist()]
        kept = [{name: value for name, value in row.items() if name in names} for row in rows]
        yield pyarrow.RecordBatch.from_pylist(kept, FOUND)


def completed(row: dict[str, Any]) -> dict[str, Any]:
    """A row of FOUND with what a pass has counted. Figures of nested columns stay those of the footers."""
    if row["state"] != TO_READ:
        return row
    if row["problem"]:
        return row | _failed(row, row["problem"])
    counted = row["counted"] or 0
    if row["rows"] is not None and row["rows"] != counted:
        return row | _failed(row, f"has {row['rows']} rows by its footers and {counted} in its data; run stats again")
    of_footers = unpacked(row["figures"]) if row["figures"] else {}
    figures = unpacked(row["counted_figures"]) if row["counted_figures"] else {}
    nested = [each.stored for name, each in of_footers.items() if name not in figures]
    return row | {
        "state": NEW,
        "rows": counted,
        "raw": None if None in nested else (row["counted_raw"] or 0) + sum(each or 0 for each in nested),
        "figures": packed(of_footers | figures),
        "sketches": row["counted_sketches"],
    }


def _failed(row: Mapping[str, Any], problem: str) -> dict[str, Any]:
    note = {"path": row["location"], "reason": problem}
    return {"state": FAILED, "rows": None, "raw": None, "notes": [*(row["notes"] or ()), note]}
