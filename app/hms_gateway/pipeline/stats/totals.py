"""What whole tables have: figures of all partitions together, and how many of these have statistics."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame

from hms_gateway.pipeline.footers import Figures, joined
from hms_gateway.pipeline.jobs.arrow import map_in_arrow
from hms_gateway.pipeline.jobs.stored import spark_schema
from hms_gateway.pipeline.stats.measuring import FRESH, NEW
from hms_gateway.pipeline.stats.packing import packed, unpacked

TOTALS: Final = pyarrow.schema(
    [
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("is_partitioned", pyarrow.bool_()),
        ("partitions", pyarrow.int64()),
        ("new", pyarrow.int64()),
        ("known", pyarrow.int64()),
        ("files", pyarrow.int64()),
        ("bytes", pyarrow.int64()),
        ("rows", pyarrow.int64()),
        ("raw", pyarrow.int64()),
        ("figures", pyarrow.binary()),
        ("location", pyarrow.string()),
        ("fingerprint", pyarrow.string()),
        ("of", pyarrow.string()),
        ("columns", pyarrow.int64()),
        ("had_rows", pyarrow.int64()),
        ("had_columns", pyarrow.int64()),
    ]
)
_SUMS: Final = ("partitions", "new", "known", "files", "bytes", "columns", "had_rows", "had_columns")


def totals(found: DataFrame) -> DataFrame:
    """A row of TOTALS for each table, of the stored rows of FOUND; summed up where they are first."""
    schema = spark_schema(TOTALS)
    # What is added up twice does not need the sketches.
    of_pieces = map_in_arrow(found.drop("sketches", "notes", "library"), summed_partitions, schema)
    return map_in_arrow(of_pieces.orderBy("database", "table"), summed_totals, schema)


def summed_partitions(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Rows of FOUND as totals, those of neighbours of one table together."""
    return _summed(_of_partition(row) for piece in pieces for row in piece.to_pylist())


def summed_totals(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Totals of one table as one."""
    return _summed(_unpacked(row) for piece in pieces for row in piece.to_pylist())


def _of_partition(row: Mapping[str, Any]) -> dict[str, Any]:
    is_known = row["state"] in (NEW, FRESH)
    return {
        "database": row["database"],
        "table": row["table"],
        "is_partitioned": row["partition"] != "",
        "partitions": 1,
        "new": int(row["state"] == NEW),
        "known": int(is_known),
        "files": row["files"] or 0,
        "bytes": row["bytes"] or 0,
        "rows": row["rows"],
        "raw": row["raw"],
        "figures": unpacked(row["figures"]) if is_known and row["figures"] else None,
        "location": row["location"],
        "fingerprint": row["fingerprint"],
        "of": row["of"],
        "columns": row["columns"],
        "had_rows": int(row["had_rows"]),
        "had_columns": row["had_columns"],
    }


def _unpacked(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"figures": None if row["figures"] is None else unpacked(row["figures"])}


def _summed(rows: Iterator[dict[str, Any]]) -> Iterator[pyarrow.RecordBatch]:
    for _, of_table in groupby(rows, lambda row: (row["database"], row["table"])):
        total: dict[str, Any] | None = None
        for some in _chunks(of_table):
            total = _added([*([total] if total else []), *some])
        if total is not None:
            figures = total["figures"]
            row = total | {"figures": None if figures is None else packed(figures)}
            yield pyarrow.RecordBatch.from_pylist([row], TOTALS)


def _chunks(rows: Iterator[dict[str, Any]], size: int = 500) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _added(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    added = {name: sum(row[name] for row in rows) for name in _SUMS}
    for name in ("rows", "raw"):
        values = [row[name] for row in rows]
        added[name] = None if None in values else sum(values)
    return {**first, **added, "figures": _joined([row["figures"] for row in rows])}


def _joined(parts: list[dict[str, Figures] | None]) -> dict[str, Figures] | None:
    """Of the columns that all parts have; None where one has nothing."""
    if None in parts:
        return None
    known = [part for part in parts if part is not None]
    names = [name for name in known[0] if all(name in part for part in known)]
    return {name: joined(part[name] for part in known) for name in names}
