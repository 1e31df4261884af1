"""Work of `hms-gateway diff`: the differences of two catalogs, or of a catalog and an export."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

import click
import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import (
    CatalogName,
    Record,
    opened,
    parse_name,
    placed_name,
    read_header,
    read_records,
    records_of,
)
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, out, say
from hms_gateway.client.metastore_client import MetastoreClient

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_COLUMNS: Final = ("sign", "kind", "database", "name", "part", "field", "before", "after")


class Difference(NamedTuple):
    """`sign`: - only before, + only after, ~ in both with another value of `field`."""

    sign: str
    record: Record
    field: str = ""
    before: Any = None
    after: Any = None


def run_diff(
    target: CallTarget, before: str, after: str | None, *, only: str | None, ignored: Sequence[str], form: str | None
) -> None:
    """Ends with EXIT_REFUSED when they differ. `form` None is a line for people."""
    with contextlib.ExitStack() as stack:
        if only is not None:
            target, named = placed_name(target, only)
            only = str(named)
        files = [(text, stack.enter_context(opened(Path(text)))) for text in (before, after) if _is_file(text)]
        wanted = _wanted([(text, read_header(stream, text)) for text, stream in files], only)
        exports = (_in_order(_chosen(read_records(stream, text), wanted), text) for text, stream in files)
        left, right = (
            next(exports)
            if _is_file(text)
            else records_of(_client(target, text, stack), wanted.db_name or None, wanted.table_name)
            for text in (before, after)
        )
        found = differences(left, right, ignored)
        if form is None:
            count = sum(map(_print, found))
        else:
            count = write_rows(sys.stdout, form, _COLUMNS, (_cells(one, form) for one in found))
    if count:
        say(f"{count:,} differences")
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


def _is_file(text: str | None) -> TypeGuard[str]:
    """True for an export; else it is the URL of a metastore, None for that of the options."""
    return text is not None and not text.startswith(("http://", "https://"))


def _wanted(exports: Sequence[tuple[str, CatalogName]], only: str | None) -> CatalogName:
    """The part that `only` names, or that all exports hold. Ends the command where that is nothing."""
    if only is not None:
        return parse_name(only)
    wanted = CatalogName("")
    for _, one in exports:
        if not wanted.holds(one) and not one.holds(wanted):
            held = " and ".join(f"{name} holds {of}" for name, of in exports)
            fail(f"{held}, which have nothing in common", "compare exports of the same database or table")
        wanted = one if wanted.holds(one) else wanted
    return wanted


def _client(target: CallTarget, url: str | None, stack: contextlib.ExitStack) -> MetastoreClient:
    other = target if url is None else msgspec.structs.replace(target, url=url)
    return stack.enter_context(connected(other))


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


def _cells(found: Difference, form: str) -> tuple[Any, ...]:
    record, values = found.record, (found.before, found.after)
    shown = values if form == "json" else [None if value is None else _value(value) for value in values]
    return (found.sign, record.kind, record.database, record.name, record.part, found.field, *shown)


def _print(found: Difference) -> int:
    """Print a line for people, and count it."""
    text = f"{found.sign} {found.record.shown}"
    if found.field:
        text += f" {found.field}: {_value(found.before)} -> {_value(found.after)}"
    out.print(text, style=_COLOURS[found.sign], markup=False, highlight=False, soft_wrap=True)
    return 1


def _value(value: Any) -> str:
    return "(none)" if value is None else msgspec.json.encode(value).decode()
