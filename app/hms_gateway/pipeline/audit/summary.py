"""Figures about findings and contents: Spark counts, the driver gets a few rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.rules.values import Severity

EXAMPLES: Final = 400
_EXAMPLES_OF_A_KIND: Final = 40
_TABLES: Final = 25
# Mean sizes of files, by powers of two: up to 1 KiB, 4 KiB and so on up to 16 GiB.
SIZE_EDGES: Final = tuple([0.0] + [float(2**power) for power in range(10, 36, 2)])


class TableFigures(msgspec.Struct, frozen=True):
    """One table: what lies in its places, and its findings."""

    name: str
    places: int
    files: int
    total_bytes: int
    findings: Mapping[str, int]


class Summary(msgspec.Struct, frozen=True):
    """What a page and a terminal show."""

    severities: Mapping[str, int]
    kinds: Mapping[str, int]
    examples: Sequence[Mapping[str, Any]]
    files: int
    total_bytes: int
    sizes: Sequence[int]
    tables: Sequence[TableFigures]


def summary_of(found: DataFrame, findings: DataFrame) -> Summary:
    """`found` holds the contents (rows without a kind), `findings` everything that was found."""
    kinds = {
        (row["severity"], row["kind"]): row["count"] for row in findings.groupBy("severity", "kind").count().collect()
    }
    ordered = dict(sorted(kinds.items(), key=lambda one: (-Severity(one[0][0]).rank, -one[1], one[0][1])))
    severities: dict[str, int] = {}
    for (severity, _), count in ordered.items():
        severities[severity] = severities.get(severity, 0) + count
    contents = found.where(f.col("kind").isNull())
    totals = contents.agg(f.sum("files").alias("files"), f.sum("total_bytes").alias("total_bytes")).collect()[0]
    return Summary(
        severities,
        {f"{severity} {kind}": count for (severity, kind), count in ordered.items()},
        _examples(findings),
        totals["files"] or 0,
        totals["total_bytes"] or 0,
        _sizes(contents),
        _tables(contents, findings),
    )


def rank_column() -> Column:
    """Orders findings, the worst first."""
    severity = f.col("severity")
    return f.when(severity == Severity.ERROR.value, 0).when(severity == Severity.WARNING.value, 1).otherwise(2)


def _examples(findings: DataFrame) -> list[Mapping[str, Any]]:
    """The worst first, and of each kind some."""
    order = ("database", "table", "partition", "location")
    number = f.row_number().over(Window.partitionBy("severity", "kind").orderBy(*order))
    some = findings.withColumn("number", number).where(f.col("number") <= _EXAMPLES_OF_A_KIND)
    rows = some.orderBy(rank_column(), "kind", *order).limit(EXAMPLES).drop("number", "format").collect()
    return [row.asDict() for row in rows]


def _sizes(contents: DataFrame) -> list[int]:
    """How many places have files of a mean size between two of SIZE_EDGES."""
    mean = f.col("total_bytes") / f.col("files")
    column = sum((mean >= edge).cast("int") for edge in SIZE_EDGES[1:-1])
    rows = contents.where("files > 0").groupBy(column.alias("place")).count().collect()
    counts = [0] * (len(SIZE_EDGES) - 1)
    for row in rows:
        counts[row["place"]] = row["count"]
    return counts


def _tables(contents: DataFrame, findings: DataFrame) -> list[TableFigures]:
    """Those with the most data."""
    name = f.concat_ws(".", "database", "table").alias("name")
    amounts = contents.groupBy(name).agg(
        f.count("*").alias("places"), f.sum("files").alias("files"), f.sum("total_bytes").alias("total_bytes")
    )
    largest = amounts.orderBy(f.desc("total_bytes"), "name").limit(_TABLES).collect()
    names = [row["name"] for row in largest]
    counted = findings.withColumn("name", name).where(f.col("name").isin(names)).groupBy("name", "severity").count()
    of_table: dict[str, dict[str, int]] = {}
    for row in counted.collect():
        of_table.setdefault(row["name"], {})[row["severity"]] = row["count"]
    return [
        TableFigures(
            row["name"], row["places"], row["files"] or 0, row["total_bytes"] or 0, of_table.get(row["name"], {})
        )
        for row in largest
    ]
