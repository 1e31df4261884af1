"""`hms-gateway diff`: what two catalogs, or a catalog and an export, do not have in common."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.targets import Target
from hms_gateway.cli.catalog.names import CatalogName, parse_name
from hms_gateway.cli.catalog.records import Record, opened, read_records, records_of
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail, out

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}


class Difference(NamedTuple):
    """`sign`: - only before, + only after, ~ in both with another value of `field`."""

    sign: str
    record: Record
    field: str = ""
    before: Any = None
    after: Any = None


def run_diff(
    target: Target, before: str, after: str | None, *, only: str | None, ignored: Sequence[str], as_json: bool
) -> None:
    """Ends with EXIT_REFUSED when they differ."""
    wanted = CatalogName("") if only is None else parse_name(only)
    count = 0
    with _side(target, before, wanted) as left, _side(target, after, wanted) as right:
        for found in differences(left, right, ignored):
            count += 1
            _print(found, as_json=as_json)
    if count:
        err.print(f"{count:,} differences", highlight=False)
        raise click.exceptions.Exit(EXIT_REFUSED)


def differences(before: Iterator[Record], after: Iterator[Record], ignored: Sequence[str] = ()) -> Iterator[Difference]:
    """Both come in the order of their names, so neither is kept."""
    left, right = next(before, None), next(after, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.order < right.order):
            assert left is not None
            yield Difference("-", left)
            left = next(before, None)
        elif left is None or right.order < left.order:
            yield Difference("+", right)
            right = next(after, None)
        else:
            for field, old, new in _changed(left.value, right.value, ""):
                if not any(fnmatchcase(field, pattern) for pattern in ignored):
                    yield Difference("~", right, field, old, new)
            left, right = next(before, None), next(after, None)


def _changed(before: Any, after: Any, field: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _changed(before.get(name), after.get(name), f"{field}.{name}" if field else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed(old, new, f"{field}[{number}]")
    elif before != after:
        yield field, before, after


@contextlib.contextmanager
def _side(target: Target, text: str | None, wanted: CatalogName) -> Iterator[Iterator[Record]]:
    """An export, or the metastore at a URL, called as the options say."""
    if text is not None and not text.startswith(("http://", "https://")):
        with opened(Path(text)) as stream:
            yield _in_order(_chosen(read_records(stream, text), wanted), text)
        return
    other = target if text is None else msgspec.structs.replace(target, url=text)
    with connected(other) as client:
        yield records_of(client, wanted.db_name or None, wanted.table_name)


def _chosen(records: Iterator[Record], wanted: CatalogName) -> Iterator[Record]:
    for record in records:
        if wanted.db_name in ("", record.database) and wanted.table_name in (None, record.name):
            yield record


def _in_order(records: Iterator[Record], name: str) -> Iterator[Record]:
    last: Record | None = None
    for record in records:
        if last is not None and record.order <= last.order:
            fail(
                f"{name} is not in order: {record.shown} comes after {last.shown}",
                "hms-gateway export writes it in order",
            )
        last = record
        yield record


def _print(found: Difference, *, as_json: bool) -> None:
    record = found.record
    if as_json:
        fields = {"sign": found.sign, "kind": record.kind, "database": record.database, "name": record.name}
        more = {"part": record.part, "field": found.field, "before": found.before, "after": found.after}
        sys.stdout.write(msgspec.json.encode({**fields, **more}).decode() + "\n")
        return
    text = f"{found.sign} {record.shown}"
    if found.field:
        text += f" {found.field}: {_value(found.before)} -> {_value(found.after)}"
    out.print(text, style=_COLOURS[found.sign], markup=False, highlight=False, soft_wrap=True)


def _value(value: Any) -> str:
    return "(none)" if value is None else msgspec.json.encode(value).decode()
