"""The results of jobs for people: one function for each kind of job, under its name."""

from typing import TYPE_CHECKING, Final

from rich.markup import escape
from rich.table import Table

from hms_gateway.cli.terminal.output import out, say

if TYPE_CHECKING:
    from hms_gateway.pipeline.audit.apply_job import ApplyResult
    from hms_gateway.pipeline.audit.job import AuditResult
    from hms_gateway.pipeline.compact.job import CompactResult
    from hms_gateway.pipeline.crawl.job import CrawlResult
    from hms_gateway.pipeline.migrate.job import MigrateResult
    from hms_gateway.pipeline.snapshot.diff import DiffResult, ObjectChange
    from hms_gateway.pipeline.snapshot.job import SnapshotResult
    from hms_gateway.pipeline.stats.job import StatsResult

_SHOWN: Final = 20
_FINDINGS_SHOWN: Final = 40
_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "blue"}
_DIFF_SIGNS: Final = {"added": ("+", "green"), "dropped": ("-", "red"), "changed": ("~", "yellow")}


def crawl(result: "CrawlResult") -> None:
    """Print the result of `crawl`."""
    counts = result.counts
    done = "to register" if result.status == "planned" else "registered"
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    print(f"directories with data  {counts['directories']:,}")
    print(f"tables {done}      {counts['tables']:,}  {' '.join(result.new_tables[:_SHOWN])}".rstrip())
    for renamed in result.renamed[:_SHOWN]:
        print(f"named: {renamed['item']} as {renamed['name']}, since a name has letters, digits and _ only")
    print(f"partitions {done}  {counts['partitions']:,}")
    print(f"partitions gone        {counts['gone']:,} ({counts['dropped']:,} dropped)")
    for table in result.unpruned:
        print(f"not dropped: more than 5 % of {table} are gone; look at them, then give --yes")
    for refusal in result.refusals[:_SHOWN]:
        print(f"refused: {refusal['item']} {refusal['reason']}")
    if result.refused:
        print(f"refused                {result.refused:,}, all in {result.folder}/result/refused.parquet")
    if result.status == "planned":
        print(f"nothing is written; --resume {result.run} does it")


def stats(result: "StatsResult") -> None:
    """Print the result of `stats`."""
    for name in ("partitions", "written", "fresh", "failed", "files", "rows"):
        print(f"{name:<12} {result.counts[name]:>14,}")
    coverage = result.coverage
    for name, before, after, whole in (
        ("rows counted", coverage.partitions_before, coverage.partitions_after, coverage.partitions),
        ("columns", coverage.columns_before, coverage.columns_after, coverage.columns),
    ):
        print(f"{name:<12} {_share(before, whole):>14} -> {_share(after, whole)}")
    lines = [f"{note['path']} {note['reason']}" for note in result.notes]
    lines += [f"{each['item']} {each['reason']}" for each in result.refusals]
    lines += [
        f"{each['database']}.{each['table']} column {each['column']} of {each['partitions']:,}: {each['reason']}"
        for each in result.left_out
    ]
    lines += [f"{each['database']}.{each['table']} {each['reason']}" for each in result.passed_by]
    for line in lines[:_SHOWN]:
        print(line)
    if len(lines) > _SHOWN:
        print(f"and {len(lines) - _SHOWN:,} more in {result.folder}")
    if result.status == "planned":
        print(f"nothing is written; --resume {result.run} does it")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def audit(result: "AuditResult") -> None:
    """Print the result of `audit`."""
    if result.status == "planned":
        counts = result.counts
        text = f"{counts['places']:,} tables and partitions, {counts['roots']:,} directories to begin at"
        print(f"{text}; --resume {result.run} audits them")
        return
    for one in result.examples[:_FINDINGS_SHOWN]:
        colour = _COLOURS[one["severity"]]
        head = f"[{colour}]{one['severity']:<8}[/{colour}]{one['kind']:<14}"
        name = ".".join(filter(None, (one["database"], one["table"])))
        full = name if one["partition"] is None else f"{name}/{one['partition']}"
        out.print(f"{head}{escape(full)}: {escape(one['text'])}", highlight=False, soft_wrap=True)
        out.print(f"        {escape(one['location'])}", style="dim", highlight=False, soft_wrap=True)
    _show_counts(result)


def _show_counts(result: "AuditResult") -> None:
    table = Table("severity", "kind", box=None, pad_edge=False)
    table.add_column("findings", justify="right")
    for name, count in result.kinds.items():
        severity, _, kind = name.partition(" ")
        table.add_row(severity, kind, f"{count:,}")
    if result.kinds:
        out.print(table)
    counts = result.counts
    looked = f"{counts['tables']:,} tables, {counts['directories']:,} directories, {counts['files']:,} files"
    found = ", ".join(f"{count:,} {severity}s" for severity, count in result.severities.items())
    print(f"{looked}: {found}")
    print(f"all findings: {result.table}")
    if result.plan:
        text = f"plan {result.plan} has {result.actions:,} actions; hms-gateway pipeline apply does them"
        print(text)
    if result.html:
        print(f"page {result.html}")


def apply(result: "ApplyResult") -> None:
    """Print the result of `apply`."""
    for one in result.refusals:
        say(f"not done: {one['location']} {one['reason']}")
    done = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in sorted(result.counts.items()))
    if result.status == "planned":
        print(f"planned: {done or 'nothing'}; --resume {result.run} does it")
        return
    print(f"{done or 'nothing to do'}; {result.refused:,} not done")


def compact(result: "CompactResult") -> None:
    """Print the result of `compact`."""
    counts = result.counts
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    if result.status == "planned":
        print(f"to compact  {counts['candidates']:,} partitions or tables, {counts['bytes']:,} bytes")
        print(f"files       {counts['files_before']:,} before, about {counts['files_after']:,} after")
    else:
        print(f"compacted   {counts['compacted']:,} partitions or tables, {counts['rows']:,} rows")
        print(f"files       {counts['files_before']:,} before, {counts['files_after']:,} after")
        print(f"bytes       {counts['bytes_before']:,} before, {counts['bytes_after']:,} after")
    for reason, number in list(result.left_alone.items())[:_SHOWN]:
        print(f"left alone  {number:,}: {reason}")
    _show_refused(result)


def clean(result: "CompactResult") -> None:
    """Print the result of `clean`."""
    counts = result.counts
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    if result.status == "planned":
        print(f"with old files  {counts['left']:,} partitions or tables")
        return
    print(f"cleaned   {counts['cleaned']:,} partitions or tables")
    print(f"removed   {counts['files']:,} files, {counts['bytes']:,} bytes")
    print(f"waiting   {counts['waiting']:,}, whose files were compacted within the grace")
    _show_refused(result)


def _show_refused(result: "CompactResult") -> None:
    for item, reason in list(result.reasons.items())[:_SHOWN]:
        print(f"refused     {item} {reason}")
    if result.refused:
        print(f"refused     {result.refused:,} in all")


def snapshot(result: "SnapshotResult") -> None:
    """Print the result of `snapshot`."""
    if result.status == "planned":
        print(f"{result.counts['pieces']} pieces to read; --resume {result.run} reads them")
        return
    for kind, number in result.counts.items():
        print(f"{kind:<12} {number:>10,}")
    print(f"snapshot {result.path} of event {result.event}, digest {result.digest}")


def diff(result: "DiffResult") -> None:
    """Print the result of `diff`."""
    for each in result.differences:
        out.print(_line(each), highlight=False, soft_wrap=True)
    for kind, counts in result.counts.items():
        print(f"{kind}: " + ", ".join(f"{number:,} {change}" for change, number in counts.items()))
    events = f"event {result.before.event} to event {result.after.event}"
    print(f"{result.total:,} objects differ, {events}" if result.total else f"no difference, {events}")
    if result.output:
        print(f"all differences are in {result.output}")


def _line(each: "ObjectChange") -> str:
    sign, color = _DIFF_SIGNS[each.change]
    text = f"{sign} {each.kind:<12} {each.name}"
    if each.field:
        text += f" {each.field}: {_value(each.before)} -> {_value(each.after)}"
    return f"[{color}]{escape(text)}[/{color}]"


def _value(text: str | None) -> str:
    return "(none)" if text is None else repr(text)


def migrate(result: "MigrateResult") -> None:
    """Print the result of `migrate`."""
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    for what, number in result.counts.items():
        print(f"  {number:>10,} {what}")
    for refusal in result.refusals:
        print(f"refused: {refusal.item}: {refusal.reason}")
    for one in result.differences:
        place = f"{one.kind} {one.object}" + (f", {one.field}" if one.field else "")
        print(f"differs: {place}: {one.source!r} in the source, {one.target!r} in the target")
    for kind, fields in result.declared.items():
        print(f"not compared: {kind}: {', '.join(f'{name} ({why})' for name, why in fields.items())}")
    if result.rollback:
        print(f"to undo the run: sh {result.rollback}")
