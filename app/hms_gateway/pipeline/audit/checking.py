"""Reads the footers of tables' files in executors, and compares them with columns: of what has changed since they were
last read, unless all are asked for."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.audit.rules.drift import Problem, drift
from hms_gateway.pipeline.audit.rules.values import Kind, Severity
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers import Column, FooterProblem, read_footer
from hms_gateway.pipeline.listing import HEAD_BYTES, Entry, Files, ListingProblem, files_of, format_of, is_hidden
from hms_gateway.pipeline.storage import Storage

_PROBLEM: Final = pyarrow.struct(
    [
        ("kind", pyarrow.string()),
        ("severity", pyarrow.string()),
        ("text", pyarrow.string()),
        ("file", pyarrow.string()),
        ("files", pyarrow.int64()),
    ]
)
# What was found in the files of a place, for findings and for the audit after this one.
CHECKED: Final = pyarrow.schema(
    [
        *((name, pyarrow.string()) for name in ("database", "table", "partition", "location", "digest")),
        ("files", pyarrow.int64()),
        ("total_bytes", pyarrow.int64()),
        ("newest_seconds", pyarrow.float64()),
        ("problems", pyarrow.list_(_PROBLEM)),
    ]
)
# Files of one place whose footers are read at the same time, where each is a request.
_AT_ONCE: Final = 16
_COPIED: Final = ("database", "table", "partition", "location", "files", "total_bytes", "newest_seconds")

Columns = tuple[tuple[Column, ...], tuple[str, ...]]


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
        names = list(_visible(files, path, ""))
    except (ListingProblem, OptionError):
        return

    def problems(one: tuple[str, Entry]) -> list[tuple[str, Problem]]:
        return [(one[0], problem) for problem in _of_file(files, path, *one, format, columns, keys)]

    if not files.waits:
        yield from (found for one in names for found in problems(one))
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from (found for some in pool.map(problems, names) for found in some)


def _visible(files: Files, top: str, inside: str) -> Iterator[tuple[str, Entry]]:
    for entry in files.scan(f"{top}/{inside}".rstrip("/")):
        name = f"{inside}/{entry.name}" if inside else entry.name
        if is_hidden(entry.name, is_directory=entry.is_directory):
            continue
        if entry.is_directory:
            yield from _visible(files, top, name)
        elif entry.bytes:
            yield name, entry


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
