"""New tables: what their directories have in common, their names, their columns out of the footers of some files."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow
import pyarrow.compute

from hms_gateway.pipeline.crawl.keys import Shape, split_component
from hms_gateway.pipeline.crawl.walking import joined
from hms_gateway.pipeline.footers import FOOTER_FORMATS, FooterProblem, TypesConflict, read_footer, united
from hms_gateway.pipeline.listing import HEAD_BYTES, Files, files_of, format_of
from hms_gateway.pipeline.storage import Storage

SAMPLES_MAX: Final = 8
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
        found: dict[str, Found] = {}
        columns = (unknown.column(name).to_pylist() for name in ("root", "relative", "sample"))
        for root, relative, sample in zip(*columns, strict=True):
            found.setdefault(root, Found()).add(relative, sample)
        yield pyarrow.RecordBatch.from_pylist([row for root in found for row in found[root].rows(root)], SHAPES)


@dataclass
class Found:
    """A new table, by the keys that its directories have."""

    shapes: dict[tuple[str, ...], Shape] = field(default_factory=dict)
    samples: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def add(self, relative: str, sample: str) -> None:
        parts = [part for name in relative.split("/") if (part := split_component(name))] if relative else []
        keys = tuple(key for key, _ in parts)
        self._shape(keys).add(value for _, value in parts)
        if sample:
            self._keep(keys, [joined(relative, sample)])

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

    def usual(self) -> Shape:
        """That of most of its directories."""
        return max(self.shapes.values(), key=lambda shape: (shape.directories, shape.keys))

    def _shape(self, keys: tuple[str, ...]) -> Shape:
        return self.shapes.setdefault(keys, Shape(keys, [0] * len(keys)))

    def _keep(self, keys: tuple[str, ...], paths: Iterable[str]) -> None:
        """Some, from anywhere in the table, and the same ones in every run: those with the smallest checksums."""
        kept = self.samples.setdefault(keys, [])
        for path in paths:
            if len(kept) < SAMPLES_MAX or zlib.crc32(path.encode()) < zlib.crc32(kept[-1].encode()):
                kept.append(path)
                kept.sort(key=lambda one: (zlib.crc32(one.encode()), one))
                del kept[SAMPLES_MAX:]


def merged(rows: Iterable[Mapping[str, Any]]) -> dict[str, Found]:
    """New tables by their paths."""
    found: dict[str, Found] = {}
    for row in rows:
        found.setdefault(row["root"], Found()).merge(row)
    return found


def name_of(root: str, location: str, database: str, table: str) -> tuple[str, str]:
    """Database and table for a directory: its last name, in the database of a directory `name.db` above it."""
    names = root.strip("/").split("/")
    above = [name for name in names[:-1] if name.endswith(".db")]
    in_database = above[-1].removesuffix(".db") if above else database
    own = table if table and root == location else names[-1]
    return _legal(in_database), _legal(own)


def _legal(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text.lower())


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
    paths = [f"{row['root']}/{sample}" for sample in row["samples"]]
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
        schemas = [
            (path, read_footer(path, files.size(path), _reader(files, path)).columns_without(set(row["keys"])))
            for path in by_path
        ]
        columns = united(schemas)
    except (FooterProblem, TypesConflict, OSError) as problem:
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
