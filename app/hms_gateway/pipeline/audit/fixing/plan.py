"""The plan that `--fix` writes and `apply` reads: JSON lines, a head and then one action on each."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.audit.rules.values import Fix
from hms_gateway.pipeline.jobs.failures import StateFailed, UsageRefused
from hms_gateway.pipeline.reports.amounts import bytes_text

VERSION: Final = 1


class PlanHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line.

    event          the newest event of the metastore before its catalog was read
    quiet_seconds  what changed later than so long ago is not deleted
    """

    plan: str = "hms-gateway pipeline audit"
    version: int = VERSION
    url: str
    run: str
    event: int
    quiet_seconds: float


class PlannedFix(msgspec.Struct, frozen=True, kw_only=True):
    """One line: `says` is for people, the rest for `apply`. What a plan should not do is a line to be deleted."""

    do: Fix
    says: str
    database: str
    table: str = ""
    partition: str | None = None
    location: str
    files: int = 0
    total_bytes: int = 0

    @property
    def table_name(self) -> str:
        """What the lease is on: the table, or the database where the directory is that of no table."""
        return f"{self.database}.{self.table or '*'}"


_decode_head = msgspec.json.Decoder(PlanHead, strict=True).decode
_decode_action = msgspec.json.Decoder(PlannedFix, strict=True).decode


def action_of(row: Mapping[str, Any]) -> PlannedFix:
    """The action for a finding that has a fix."""
    fix = Fix(row["fix"])
    return PlannedFix(
        do=fix,
        says=_said(fix, row),
        database=row["database"],
        table=row["table"],
        partition=row["partition"],
        location=row["location"],
        files=row["files"],
        total_bytes=row["total_bytes"],
    )


def write_plan(path: str, head: PlanHead, actions: Iterable[PlannedFix]) -> int:
    """Returns the number of actions. The file appears whole or not at all. Raises StateFailed."""
    unfinished, count = f"{path}.unfinished", 0
    try:
        with open(unfinished, "wb") as file:
            file.write(msgspec.json.encode(head) + b"\n")
            for action in actions:
                file.write(msgspec.json.encode(action) + b"\n")
                count += 1
        os.replace(unfinished, path)
    except OSError as error:
        raise StateFailed(f"plan {path} cannot be written: {error.strerror}", "give another file to --fix") from error
    return count


def read_head(path: str) -> PlanHead:
    """Raises UsageRefused."""
    for number, line in _lines(path):
        head: PlanHead = _decoded(path, number, line, _decode_head)
        if head.version != VERSION:
            raise UsageRefused(f"plan {path} is of version {head.version}, not {VERSION}", "audit again with --fix")
        return head
    raise UsageRefused(f"plan {path} is empty", "hms-gateway pipeline audit --fix writes one")


def read_actions(path: str) -> Iterator[PlannedFix]:
    """In the order of the file; empty lines do not count. Raises UsageRefused for a line that is not an action."""
    lines = _lines(path)
    next(lines, None)
    for number, line in lines:
        yield _decoded(path, number, line, _decode_action)


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        text = f"plan {path} cannot be read: {error.strerror}"
        raise UsageRefused(text, "hms-gateway pipeline audit --fix writes one") from error


def _decoded(path: str, number: int, line: bytes, decode: Any) -> Any:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "delete the line, or audit again with --fix"
        raise UsageRefused(f"plan {path}, line {number}: {error}", hint) from error


def _said(fix: Fix, row: Mapping[str, Any]) -> str:
    name = f"{row['database']}.{row['table']}" if row["table"] else row["database"]
    amount = f"{row['files']:,} {'file' if row['files'] == 1 else 'files'}, {bytes_text(row['total_bytes'])}"
    place = row["location"]
    if fix is Fix.DROP_PARTITION:
        return f"drop partition {row['partition']} of {name} from the catalog: {place} does not exist"
    if fix is Fix.ADD_PARTITION:
        return f"add partition {row['partition']} to {name}: {place} has {amount}"
    if fix is Fix.SET_COUNTS:
        of = f"{name}/{row['partition']}" if row["partition"] else name
        return f"set numFiles and totalSize of {of} to what is in {place}: {amount}"
    if fix is Fix.DELETE_LEFTOVER:
        return f"DELETE the leftover {place} of {name}: {amount}"
    return f"DELETE the orphan {place} in {name}: {amount}"
