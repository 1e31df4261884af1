"""Rules of a crawl: directories `ds=2026-01-01/hr=7` as keys and values, as partitions of tables, as new tables."""

import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow
import pyarrow.compute

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, make_name, unescape
from hms_gateway.metastore.vocabulary.typed_values import typed_value, value_class
from hms_gateway.pipeline.footers.footer import FooterProblem, TypesConflict, united
from hms_gateway.pipeline.footers.reading import FOOTER_FORMATS, read_footer
from hms_gateway.pipeline.jobs.stored import numbers, pieces, texts
from hms_gateway.pipeline.storage import HEAD_BYTES, Files, Storage, files_of, format_of

# Partition directories: `ds=2026-01-01/hr=7` to keys and values, and what the values say about the keys' types.


_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1
_RANGES: Final = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": _INT_MAX, "bigint": _BIGINT_MAX}


def split_component(name: str) -> tuple[str, str] | None:
    """Key and value of a directory's name, None where it is not `key=value`. As Hive and Spark do: at the first `=`."""
    key, equals, value = name.partition("=")
    return (unescape(key).lower(), unescape(value)) if equals and key else None


class Spelled(msgspec.Struct, frozen=True):
    """A partition as its directory says it.

    name  the partition's name in the metastore
    same  the name that all spellings of these values share: `d=1` for `d=01` where d is an int
    """

    values: list[str]
    name: str
    same: str


class NotAPartition(ValueError):
    """A directory is none of the table's partitions; the text says why."""


def spelled(keys: Sequence[tuple[str, str]], components: Sequence[str]) -> Spelled:
    """The partition of a directory, by the names and types of the table's keys. Raises NotAPartition."""
    if len(components) != len(keys):
        raise NotAPartition(f"has {len(components)} of the {len(keys)} keys {', '.join(name for name, _ in keys)}")
    values, same = [], []
    for (key, kind), component in zip(keys, components, strict=True):
        found = split_component(component)
        if found is None or found[0] != key:
            raise NotAPartition(f"is not a value of the key {key}: {component}")
        if not found[1]:
            raise NotAPartition(f"has an empty value of the key {key}")
        values.append(found[1])
        same.append(_canonical(key, kind, found[1]))
    names = [name for name, _ in keys]
    return Spelled(values, make_name(names, values), make_name(names, same))


def _canonical(key: str, kind: str, value: str) -> str:
    """Raises NotAPartition when the value is not of the key's type."""
    if kind == "string" or value == DEFAULT_PARTITION_NAME:
        return value
    whole = kind if kind in _RANGES else None
    if whole is not None and _WHOLE.fullmatch(value):
        if abs(int(value)) <= _RANGES[whole] or int(value) == -_RANGES[whole] - 1:
            return value
        raise NotAPartition(f"has the value {value} for the key {key}, which is beyond {kind}")
    if value_class(kind).value in ("text", "opaque"):
        return value
    typed = typed_value(kind, value)
    if typed is None:
        raise NotAPartition(f"has the value {value!r} for the key {key}, which is not a {kind}")
    if whole is not None and not -_RANGES[whole] - 1 <= int(typed) <= _RANGES[whole]:
        raise NotAPartition(f"has the value {value} for the key {key}, which is beyond {kind}")
    return str(typed)


class KeyShape(msgspec.Struct):
    """The statements of a new table's directories together; shapes of parts of it are added up.

    kinds    for each key, the narrowest type of its values: 0 nothing but nulls, 1 int, 2 bigint, 3 date, 4 string
    """

    keys: tuple[str, ...]
    kinds: list[int]
    directories: int = 0

    def add(self, values: Iterable[str]) -> None:
        self.directories += 1
        for at, value in enumerate(values):
            if self.kinds[at] != _STRING:
                self.kinds[at] = _both(self.kinds[at], _kind(value))

    def merge(self, kinds: Sequence[int], directories: int) -> None:
        self.directories += directories
        self.kinds = [_both(one, other) for one, other in zip(self.kinds, kinds, strict=True)]

    def types(self) -> list[str]:
        return [_TYPES[kind] for kind in self.kinds]


_NOTHING, _INT, _BIGINT, _DAY, _STRING = range(5)
_TYPES: Final[Mapping[int, str]] = {
    _NOTHING: "string",
    _INT: "int",
    _BIGINT: "bigint",
    _DAY: "date",
    _STRING: "string",
}


def _kind(value: str) -> int:
    """A number with leading zeros is text: as `int` it would lose them."""
    if value == DEFAULT_PARTITION_NAME:
        return _NOTHING
    if _WHOLE.fullmatch(value):
        number = abs(int(value))
        return _INT if number <= _INT_MAX else _BIGINT if number <= _BIGINT_MAX else _STRING
    is_day = _DATE.fullmatch(value) and typed_value("date", value) == value
    return _DAY if is_day else _STRING


def _both(one: int, other: int) -> int:
    if one == other or other == _NOTHING:
        return one
    if one == _NOTHING:
        return other
    return _BIGINT if {one, other} == {_INT, _BIGINT} else _STRING


# Directories with data become partitions of their tables, or are refused; in executors.


# CANONICAL: the values are spelled as their types spell them; OTHER: `d=01` for an int.
CANONICAL, OTHER, NO_PARTITION = 0, 1, 2
PARTITIONS: Final = pyarrow.schema(
    [
        ("state", pyarrow.int8()),
        *texts("database", "table", "name"),
        ("values", pyarrow.list_(pyarrow.string())),
        ("location", pyarrow.string()),
        *numbers("files", "bytes"),
        *texts("same", "reason"),
    ]
)
_COLUMNS: Final = ("root", "relative", "files", "bytes")


class CrawledTable(msgspec.Struct, frozen=True):
    """A table that directories belong to, known or new; `keys` are names and types."""

    database: str
    table: str
    location: str
    keys: tuple[tuple[str, str], ...]


class PartitionsOf(msgspec.Struct, frozen=True):
    """For batches of directories with data; `targets` are by path. What belongs to no target is left out."""

    targets: Mapping[str, CrawledTable]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        return pieces(self._rows(batch), PARTITIONS, itemgetter(0, 1, 2))

    def _rows(self, batch: pyarrow.Table) -> Iterator[tuple[Any, ...]]:
        for root, relative, files, size in zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True):
            target = self.targets.get(root)
            if target is not None and (target.keys or relative):
                yield _row(target, relative, files, size)


def _row(target: CrawledTable, relative: str, files: int, size: int) -> tuple[Any, ...]:
    location = f"{target.location.rstrip('/')}/{relative}" if relative else target.location
    names = (target.database, target.table)
    try:
        found = spelled(target.keys, relative.split("/") if relative else [])
    except NotAPartition as problem:
        return NO_PARTITION, *names, relative, [], location, files, size, "", str(problem)
    state = CANONICAL if found.same == found.name else OTHER
    return state, *names, found.name, found.values, location, files, size, found.same, ""


# New tables: what their directories have in common, their names, their columns out of the footers of some files.


# Files of which the footers show the columns of a new table.
SAMPLES_MAX: Final = 32
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
        *texts("database", "table", "root"),
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


def joined(root: str, relative: str) -> str:
    """The path of a row."""
    return f"{root}/{relative}" if root and relative else root or relative


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
