"""The page of a run of `stats`: how much has statistics before and after, and what is in the way of more."""

from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from hms_gateway.pipeline.stats.job import Coverage, StatsResult

_ROWS_MAX: Final = 200
_BARS_MAX: Final = 20


def page_of(result: "StatsResult") -> str:
    """As HTML; write it as UTF-8."""
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
