"""New tables: what their directories have in common, their names, their columns out of the footers of some files."""

import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow
import pyarrow.compute

from hms_gateway.pipeline.crawl.keys import KeyShape, split_component
from hms_gateway.pipeline.crawl.walking import SAMPLES_MAX, joined
from hms_gateway.pipeline.footers import FOOTER_FORMATS, FooterProblem, TypesConflict, read_footer, united
from hms_gateway.pipeline.listing import HEAD_BYTES, Files, files_of, format_of
from hms_gateway.pipeline.storage import Storage

# Of them where each is a request.
_REMOTE_SAMPLES_MAX: Final = 8
_TEXTS: Final = pyarrow.list_(pyarrow.string())
SHAPES: Final = pyarrow.schema(
    [
        ("root", pyarrow.string()),
        ("keys", _TEXTS),
        ("kinds", pyarrow.list_(pyarrow.int8())),
        ("directories", pyarrow.int64()),
        ("samples", _TEXTS),
    ]
)
NEW_TABLES: Final = pyarrow.schema(
    [
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("root", pyarrow.string()),
        ("keys", _TEXTS),
        ("types", _TEXTS),
        ("samples", _TEXTS),
        ("reason", pyarrow.string()),
    ]
)
DESIGNS: Final = pyarrow.schema(
    [
        *NEW_TABLES,
        ("format", pyarrow.string()),
        ("columns", _TEXTS),
        ("column_types", _TEXTS),
    ]
)
_NOT_IN_A_NAME: Final = re.compile("[^a-z0-9_]")


@dataclass(frozen=True)
class ShapesOf:
    """The shapes of tables that are not `known`, out of batches of directories with data."""

    known: frozenset[str]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        known = pyarrow.compute.is_in(batch.column("root"), pyarrow.array(sorted(self.known), pyarrow.string()))
        unknown = batch.filter(pyarrow.compute.invert(known))
        if not len(unknown):
            return
        found: dict[str, FoundTable] = {}
        columns = (unknown.column(name).to_pylist() for name in ("root", "relative", "samples"))
        for root, relative, samples in zip(*columns, strict=True):
            found.setdefault(root, FoundTable()).add(relative, samples)
        yield pyarrow.RecordBatch.from_pylist([row for root in found for row in found[root].rows(root)], SHAPES)


@dataclass
class FoundTable:
    """A new table, by the keys that its directories have."""

    shapes: dict[tuple[str, ...], KeyShape] = field(default_factory=dict)
    samples: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def add(self, relative: str, samples: Iterable[str]) -> None:
        parts = [part for name in relative.split("/") if (part := split_component(name))] if relative else []
        keys = tuple(key for key, _ in parts)
        self._shape(keys).add(value for _, value in parts)
        self._keep(keys, [joined(relative, sample) for sample in samples])

    def merge(self, row: Mapping[str, Any]) -> None:
        keys = tuple(row["keys"])
        self._shape(keys).merge(row["kinds"], row["directories"])
        self._keep(keys, row["samples"])

    def rows(self, root: str) -> Iterator[dict[str, Any]]:
        for keys, shape in self.shapes.items():
            samples = self.samples.get(keys, [])
            yield {
                "root": root,
                "keys": keys,
                "kinds": shape.kinds,
                "directories": shape.directories,
                "samples": samples,
            }

    def usual(self) -> KeyShape:
        """That of most of its directories."""
        return max(self.shapes.values(), key=lambda shape: (shape.directories, shape.keys))

    def _shape(self, keys: tuple[str, ...]) -> KeyShape:
        return self.shapes.setdefault(keys, KeyShape(keys, [0] * len(keys)))

    def _keep(self, keys: tuple[str, ...], paths: Iterable[str]) -> None:
        """Some, from anywhere in the table, and the same ones in every run: those with the smallest checksums."""
        kept = self.samples.setdefault(keys, [])
        for path in paths:
            if len(kept) < SAMPLES_MAX or zlib.crc32(path.encode()) < zlib.crc32(kept[-1].encode()):
                kept.append(path)
                kept.sort(key=lambda one: (zlib.crc32(one.encode()), one))
                del kept[SAMPLES_MAX:]


def merged(rows: Iterable[Mapping[str, Any]]) -> dict[str, FoundTable]:
    """New tables by their paths."""
    found: dict[str, FoundTable] = {}
    for row in rows:
        found.setdefault(row["root"], FoundTable()).merge(row)
    return found


@dataclass(frozen=True)
class Names:
    """Databases and names of new tables by their directories: arguments of a crawl and the path of its location."""

    location: str
    database: str
    table: str
    databases_from_folders: bool

    def of(self, root: str) -> tuple[str, str]:
        """Database and table for a directory, of its last name."""
        database, table = self._spelled(root)
        return _legal(database), _legal(table)

    def is_changed(self, root: str) -> bool:
        """True if characters of the names are replaced; all names are in lower case."""
        return any(_legal(name) != name.lower() for name in self._spelled(root))

    def _spelled(self, root: str) -> tuple[str, str]:
        names = root.strip("/").split("/")
        table = self.table if self.table and root == self.location else names[-1]
        above = [name for name in names[:-1] if name.endswith(".db")]
        if above:
            return above[-1].removesuffix(".db"), table
        folders = root.removeprefix(self.location).strip("/").split("/")[:-1]
        return folders[-1] if folders and self.databases_from_folders else self.database, table


def _legal(text: str) -> str:
    """Letters lose their accents; what is then no letter, digit or _ becomes _."""
    letters = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _NOT_IN_A_NAME.sub("_", letters.lower())


@dataclass(frozen=True)
class Designs:
    """Columns and formats of new tables, in executors."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        rows = [{**row, **_design(files, row)} for row in batch.to_pylist()]
        yield pyarrow.RecordBatch.from_pylist(rows, DESIGNS)


def _design(files: Files, row: Mapping[str, Any]) -> dict[str, Any]:
    nothing = {"format": "", "columns": [], "column_types": []}
    if row["reason"]:
        return nothing
    paths = [f"{row['root']}/{sample}" for sample in row["samples"][: _REMOTE_SAMPLES_MAX if files.waits else None]]
    try:
        by_path = {path: kind for path in paths if (kind := _format(files, path)) != "empty"}
        formats = {kind: path for path, kind in by_path.items()}
        if len(formats) > 1:
            shown = " and ".join(f"{path} is {name}" for name, path in sorted(formats.items())[:2])
            return {**nothing, "reason": f"has files of several formats ({shown}); create the table, then crawl again"}
        if not formats:
            return {**nothing, "reason": "has no file with data; its columns are not known"}
        [found] = formats
        if found not in FOOTER_FORMATS:
            reason = f"has {found} files, which do not say their columns; create the table, then crawl again"
            return {**nothing, "format": found, "reason": reason}
        footers = {path: read_footer(path, files.size(path), _reader(files, path)) for path in by_path}
        keys = set(row["keys"])
        for path, footer in footers.items():
            for name, problem in footer.unread_without(keys):
                reason = f"is not registered: Spark does not read column {name} of {path}, which {problem}"
                return {**nothing, "format": found, "reason": reason}
        columns = united((path, footer.columns_without(keys)) for path, footer in footers.items())
    except TypesConflict as conflict:
        return {**nothing, "reason": f"is not registered: {conflict}"}
    except (FooterProblem, OSError) as problem:
        return {**nothing, "reason": f"has columns that are not known: {problem}"}
    return {
        "format": found,
        "columns": [column.name for column in columns],
        "column_types": [column.type for column in columns],
        "reason": "" if columns else "has files without columns",
    }


def _format(files: Files, path: str) -> str:
    return format_of(files.read(path, 0, HEAD_BYTES))


def _reader(files: Files, path: str) -> Any:
    return lambda offset, length: files.read(path, offset, length)
