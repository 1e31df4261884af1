"""Footers of tables' files against the table's columns, read in executors where files have changed."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.audit.places import Kind, Severity
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers.footer import NUMBERS, Column, Footer, FooterProblem, fits
from hms_gateway.pipeline.footers.reading import read_footer
from hms_gateway.pipeline.jobs.stored import numbers, texts
from hms_gateway.pipeline.storage import (
    HEAD_BYTES,
    Entry,
    Files,
    ListingProblem,
    Storage,
    at_once,
    files_of,
    format_of,
    visible_files,
)

_NAMES_SHOWN: Final = 3
# What ORC files of old Hive versions have for names: their columns go by position.
_POSITION: Final = re.compile(r"_col([0-9]+)")

Problem = tuple[Kind, Severity, str]


def drift(footer: Footer, columns: Sequence[Column], keys: Collection[str]) -> Iterator[Problem]:
    """Problems of a file of a table that has these columns; `keys` are its partition keys, in lower case.

    A column that the file does not have is null for its rows: that is how columns are added.
    """
    types = {column.name: column.type for column in columns}
    found = _named(footer.columns_without(keys), columns)
    unfit = [
        f"{column.name} is {column.type} in the file and {types[column.name]} in the table"
        for column in found
        if column.name in types and not _reads(footer.format, types[column.name], column.type)
    ]
    unfit += [f"{name} {reason}" for name, reason in footer.unread_without(keys) if name.lower() in types]
    if unfit:
        yield Kind.DRIFT, Severity.ERROR, f"column {_listed(unfit)}"
    unknown = [column.name for column in found if column.name not in types]
    if found and len(unknown) == len(found):
        yield Kind.DRIFT, Severity.ERROR, f"the file has none of the table's columns, but {_listed(unknown)}"
    elif unknown:
        yield Kind.DRIFT, Severity.WARNING, f"the table does not have the file's columns {_listed(unknown)}"


def _reads(format: str, table: str, file: str) -> bool:
    """True if readers give values of the table's type; those of ORC make a double of every number."""
    return fits(table, file) or (format == "orc" and table == "double" and file.partition("(")[0] in NUMBERS)


def _named(found: Sequence[Column], columns: Sequence[Column]) -> Sequence[Column]:
    """Columns with the table's names where the file has none."""
    places = [_POSITION.fullmatch(column.name) for column in found]
    if not all(places):
        return found
    names: Mapping[int, str] = {place: column.name for place, column in enumerate(columns)}
    return [
        Column(names.get(int(place[1]), column.name), column.type)
        for place, column in zip(places, found, strict=True)
        if place
    ]


def _listed(texts: Sequence[str]) -> str:
    shown = ", ".join(texts[:_NAMES_SHOWN])
    return shown if len(texts) <= _NAMES_SHOWN else f"{shown} and {len(texts) - _NAMES_SHOWN} more"


# Reads the footers of tables' files in executors, and compares them with columns: of what has changed since they were
# last read, unless all are asked for.


_PROBLEM: Final = pyarrow.struct(
    [
        *texts("kind", "severity", "text", "file"),
        ("files", pyarrow.int64()),
    ]
)
# What was found in the files of a place, for findings and for the audit after this one.
CHECKED: Final = pyarrow.schema(
    [
        *texts("database", "table", "partition", "location", "digest"),
        *numbers("files", "total_bytes"),
        ("newest_seconds", pyarrow.float64()),
        ("problems", pyarrow.list_(_PROBLEM)),
    ]
)
_COPIED: Final = ("database", "table", "partition", "location", "files", "total_bytes", "newest_seconds")


def digest_of(columns: Sequence[Column]) -> str:
    """The same for the same columns."""
    return sha256(repr([(column.name, column.type) for column in columns]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Checker:
    """Places of one batch, with what was found before, to CHECKED; pickled to executors.

    columns  a broadcast dictionary: by `database.table`, columns and names of keys
    """

    storage: Storage = field(repr=False)
    columns: Any
    reads_all: bool

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        rows = list(map(self._checked, batch.to_pylist()))
        yield from pyarrow.Table.from_pylist(rows, schema=CHECKED).to_batches()

    def _checked(self, row: dict[str, Any]) -> dict[str, Any]:
        columns, keys = self.columns.value.get(f"{row['database']}.{row['table']}", ((), ()))
        digest = digest_of(columns)
        is_known = not self.reads_all and digest == row["old_digest"]
        is_same = all(row[name] == row[f"old_{name}"] for name in ("files", "total_bytes", "newest_seconds"))
        problems = row["old_problems"] if is_known and is_same else self._problems(row, columns, keys)
        return {**{name: row[name] for name in _COPIED}, "digest": digest, "problems": problems or []}

    def _problems(self, row: dict[str, Any], columns: Sequence[Column], keys: Sequence[str]) -> list[dict[str, Any]]:
        """Files with the same problem together, the first of them by name."""
        found: dict[Problem, list[str]] = {}
        for file, problem in _read(row["location"], row["format"], columns, keys, self.storage):
            found.setdefault(problem, []).append(file)
        return [
            {"kind": kind.value, "severity": severity.value, "text": text, "file": min(names), "files": len(names)}
            for (kind, severity, text), names in found.items()
        ]


def _read(
    location: str, format: str, columns: Sequence[Column], keys: Sequence[str], storage: Storage
) -> Iterator[tuple[str, Problem]]:
    """Problems with the paths of files. What is gone meanwhile has none; the listing names what cannot be listed."""
    try:
        files = files_of(location, storage)
        path = files.root(location)
        names = [(name, entry) for name, entry in visible_files(files, path) if entry.bytes]
    except (ListingProblem, OptionError):
        return

    def problems(one: tuple[str, Entry]) -> Iterator[tuple[str, Problem]]:
        return ((one[0], problem) for problem in _of_file(files, path, *one, format, columns, keys))

    yield from at_once(problems, names, waits=files.waits)


def _of_file(
    files: Files,
    top: str,
    name: str,
    entry: Entry,
    format: str,
    columns: Sequence[Column],
    keys: Sequence[str],
) -> Iterator[Problem]:
    path = f"{top}/{name}"
    try:
        footer = read_footer(name, entry.bytes, lambda offset, length: files.read(path, offset, length))
    except FooterProblem as problem:
        if not isinstance(problem.__cause__, FileNotFoundError) and _has_format(files, path, format):
            yield Kind.CORRUPT, Severity.ERROR, problem.reason
        return
    # Files of another format are found by how they begin.
    if footer.format == format:
        yield from drift(footer, columns, keys)


def _has_format(files: Files, path: str, format: str) -> bool:
    try:
        return format_of(files.read(path, 0, HEAD_BYTES)) == format
    except OSError:
        return True
