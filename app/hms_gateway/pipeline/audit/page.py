"""Figures about findings and contents, a row for each table, and the page of an audit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.places import Severity, Thresholds
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.stored import Stored
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
)

_EXAMPLES_OF_A_KIND: Final = 40
_TABLES: Final = 25
# Mean sizes of files, by powers of two: up to 1 KiB, 4 KiB and so on up to 16 GiB.
SIZE_EDGES: Final = tuple([0.0] + [float(2**power) for power in range(10, 36, 2)])
_MEANINGS: Final = {
    Severity.ERROR: "Data is lost, cannot be read, or belongs to two owners.",
    Severity.WARNING: "Data is not read, or is read otherwise than its place says.",
    Severity.NOTE: "Nothing is wrong with the data.",
}
_TITLES: Final = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.NOTE: "Notes"}


class TableFigures(msgspec.Struct, frozen=True):
    """One table: what lies in its places."""

    name: str
    places: int
    files: int
    total_bytes: int


class Summary(msgspec.Struct, frozen=True):
    """Figures for a page and a terminal."""

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
    tables, sizes = _content_figures(found.where(f.col("kind").isNull()))
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


def _content_figures(contents: DataFrame) -> tuple[list[TableFigures], list[int]]:
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


def page(summary: Summary, counts: Mapping[str, int], limits: Thresholds, options: JobOptions, run: str) -> Page:
    """Figures, plots, the largest tables, and the first findings of each kind."""
    when = datetime.fromtimestamp(limits.now_seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Page(
        title=f"Audit of {', '.join(options.only) or 'all tables'}",
        subtitle=f"{when} · {options.connection.url}",
        facts=_facts(summary, counts),
        sections=[_kinds(summary), _contents(summary, limits), *_findings(summary)],
        foot=f"Run {run}. All findings are in its folder of the state, as Parquet.",
    )


def _facts(summary: Summary, counts: Mapping[str, int]) -> list[Fact]:
    found = {severity: summary.severities.get(severity.value, 0) for severity in Severity}
    return [
        Fact("tables", count_text(counts["tables"])),
        Fact("files", count_text(summary.files)),
        Fact("data", bytes_text(summary.total_bytes)),
        *(
            Fact(_TITLES[severity].lower(), count_text(number), Tone(severity.value) if number else Tone.GOOD)
            for severity, number in found.items()
        ),
    ]


def _kinds(summary: Summary) -> Section:
    bars = []
    for name, count in summary.kinds.items():
        severity, kind = name.split()
        bars.append(Bar(kind.replace("_", " "), count, Tone(severity)))
    if not bars:
        return Section("Findings", text="Nothing was found.")
    return Section("Findings", [Bars("By kind, the worst first", bars)])


def _contents(summary: Summary, limits: Thresholds) -> Section:
    small = limits.small_bytes
    sizes = [
        Bar(f"{bytes_text(low)} to {bytes_text(high)}", count, Tone.WARNING if high <= small else Tone.PLAIN)
        for (low, high), count in zip(pairwise(SIZE_EDGES), summary.sizes, strict=True)
    ]
    plot = Bars(f"Tables and partitions by the mean size of their files; small is below {bytes_text(small)}", sizes)
    rows = [
        (*msgspec.structs.astuple(table), table.total_bytes / table.files if table.files else 0)
        for table in summary.tables
    ]
    names = ("table", "directories", "files", "data", "mean size")
    units = (None, None, None, Unit.BYTES, Unit.BYTES)
    return Section("Files", [plot, Table(names, rows, units, "Largest tables")] if rows else [])


def _findings(summary: Summary) -> Iterator[Section]:
    for severity in Severity:
        rows = [_row(one) for one in summary.examples if one["severity"] == severity.value]
        if rows:
            left = summary.severities[severity.value] - len(rows)
            table = Table(("kind", "object", "directory", "what"), rows, left_out=left)
            yield Section(_TITLES[severity], [table], _MEANINGS[severity])


def _row(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    name = f"{one['database']}.{one['table']}" if one["table"] else one["database"]
    full = name if one["partition"] is None else f"{name}/{one['partition']}"
    return one["kind"].replace("_", " "), full, one["location"], one["text"]
