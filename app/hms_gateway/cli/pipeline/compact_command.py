"""`hms-gateway pipeline compact`."""

import re
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of

if TYPE_CHECKING:
    from hms_gateway.pipeline.compact.job import CompactResult

_EXAMPLES = """\b
Examples:
  hms-gateway pipeline compact -k --only 'sales.*' --dry-run
  hms-gateway pipeline compact -k --only sales.orders --where "ds < '2026-01-01'"
  hms-gateway pipeline compact -k --only 'sales.*' --clean --grace 1d
"""
_SHOWN = 20
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Amount(click.ParamType[int]):
    """A whole number with a unit behind it."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name, self._units = name, units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]{1,15})([a-z]?)", str(value).lower())
        if found is None or found[2] not in self._units:
            units = ", ".join(filter(None, self._units))
            self.fail(f"{value!r} is not a whole number, with {units} behind it where you like", param, ctx)
        return int(found[1]) * self._units[found[2]]


@command_of("compact", epilog=_EXAMPLES)
@click.option(
    "--target-bytes",
    type=Amount("BYTES", _BYTES),
    default="128m",
    show_default=True,
    help="Largest size of a new file.",
)
@click.option("--lock", is_flag=True, help="Also take Hive's lock EXCL_WRITE on compacted tables and partitions.")
@click.option("--clean", is_flag=True, help="Remove the old files of earlier runs instead of compacting.")
@click.option(
    "--grace",
    type=Amount("TIME", _SECONDS),
    default="7d",
    show_default=True,
    help="Time for which old files stay, for running readers.",
)
@with_job_options
def command(job: JobCommand, target_bytes: int, lock: bool, clean: bool, grace: int) -> None:
    """Merge the small files of plain Hive tables (Parquet, ORC, text) into large ones.

    New files are written to a new directory and compared with the old ones; then the partition gets the new location in
    one step. The old files stay until --clean. Skips transactional, Iceberg and bucketed tables.
    """
    from hms_gateway.pipeline.compact import job as jobs

    if clean:
        job.run(jobs.clean, jobs.CleanArguments(grace_seconds=grace), show_cleaned)
    job.run(jobs.compact, jobs.CompactArguments(target_bytes=target_bytes, locks=lock), show)


def show(result: "CompactResult") -> None:
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


def show_cleaned(result: "CompactResult") -> None:
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
