"""The page of an audit."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hms_gateway.pipeline.audit.rules.values import Severity, Thresholds
from hms_gateway.pipeline.audit.summary import SIZE_EDGES, Summary
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.reports import (
    Bar,
    Bars,
    Fact,
    Histogram,
    Page,
    Section,
    Table,
    Tone,
    Unit,
    bytes_text,
    count_text,
)

_MEANINGS: Final = {
    Severity.ERROR: "Data is lost, cannot be read, or belongs to two owners.",
    Severity.WARNING: "Data is not read, or is read otherwise than its place says.",
    Severity.NOTE: "Nothing is wrong with the data.",
}
_TITLES: Final = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.NOTE: "Notes"}


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
    small = (float(limits.small_bytes), f"small: below {bytes_text(limits.small_bytes)}")
    sizes = Histogram(
        "Tables and partitions by the mean size of their files", SIZE_EDGES, summary.sizes, Unit.BYTES, [small]
    )
    rows = [
        (
            table.name,
            table.places,
            table.files,
            table.total_bytes,
            table.total_bytes / table.files if table.files else 0,
        )
        for table in summary.tables
    ]
    names = ("table", "directories", "files", "data", "mean size")
    units = (None, None, None, Unit.BYTES, Unit.BYTES)
    return Section("Files", [sizes, Table(names, rows, units, "Largest tables")] if rows else [])


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
