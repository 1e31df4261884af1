"""Figures about findings and contents: a row for each table, and the first findings of each kind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.rules.values import Severity
from hms_gateway.pipeline.jobs.stored import Stored

_EXAMPLES_OF_A_KIND: Final = 40
_TABLES: Final = 25
# Mean sizes of files, by powers of two: up to 1 KiB, 4 KiB and so on up to 16 GiB.
SIZE_EDGES: Final = tuple([0.0] + [float(2**power) for power in range(10, 36, 2)])


class TableFigures(msgspec.Struct, frozen=True):
    """One table: what lies in its places."""

    name: str
    places: int
    files: int
    total_bytes: int


class Summary(msgspec.Struct, frozen=True):
    """What a page and a terminal show."""

    severities: Mapping[str, int]
    kinds: Mapping[str, int]
    examples: Sequence[Mapping[str, Any]]
    files: int
    total_bytes: int
    sizes: Sequence[int]
    tables: Sequence[TableFigures]


def summary_of(found: DataFrame, findings: Stored) -> Summary:
    """`found` holds the contents (rows without a kind); of `findings` each batch has one severity and kind."""
    severities: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for batch in findings.batches:
        severity, kind = batch.of
        severities[severity] = severities.get(severity, 0) + batch.rows
        kinds[f"{severity} {kind}"] = kinds.get(f"{severity} {kind}", 0) + batch.rows
    tables, sizes = _contents(found.where(f.col("kind").isNull()))
    return Summary(
        severities,
        dict(sorted(kinds.items(), key=lambda one: (-Severity(one[0].split()[0]).rank, -one[1]))),
        list(_examples(findings)),
        sum(table.files for table in tables),
        sum(table.total_bytes for table in tables),
        sizes,
        sorted(tables, key=lambda table: (-table.total_bytes, table.name))[:_TABLES],
    )


def _examples(findings: Stored) -> Iterator[Mapping[str, Any]]:
    """In their order, the worst first, and of each kind some."""
    shown: dict[tuple[Any, ...], int] = {}
    for batch in findings.batches:
        left = _EXAMPLES_OF_A_KIND - shown.get(batch.of, 0)
        if left > 0:
            rows = findings.read(batch).slice(0, left).drop_columns(["format"]).to_pylist()
            shown[batch.of] = shown.get(batch.of, 0) + len(rows)
            yield from rows


def _contents(contents: DataFrame) -> tuple[list[TableFigures], list[int]]:
    """Figures of each table, and how many places have files of a mean size between two of SIZE_EDGES."""
    mean = f.try_divide("total_bytes", "files")
    size = sum((mean >= edge).cast("int") for edge in SIZE_EDGES[1:-1])
    name = f.concat_ws(".", "database", "table").alias("name")
    sums = (f.count("*").alias("places"), f.sum("files").alias("files"), f.sum("total_bytes").alias("total_bytes"))
    tables: dict[str, TableFigures] = {}
    sizes = [0] * (len(SIZE_EDGES) - 1)
    for row in contents.groupBy(name, size.alias("size")).agg(*sums).collect():
        before = tables.get(row["name"], TableFigures(row["name"], 0, 0, 0))
        tables[row["name"]] = TableFigures(
            row["name"],
            before.places + row["places"],
            before.files + row["files"],
            before.total_bytes + row["total_bytes"],
        )
        if row["size"] is not None:
            sizes[row["size"]] += row["places"]
    return list(tables.values()), sizes
