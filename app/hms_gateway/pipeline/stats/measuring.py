"""Measures partitions in executors: their files and, out of the footers, figures of each column."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from urllib.parse import quote

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.parameters import says_true
from hms_gateway.metastore.vocabulary.table_types import is_view, logged_format
from hms_gateway.pipeline.catalog import SPARK_NO_LOCATION, cut, named_tables, partitions_or_table, table_names
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers.footer import Column, Footer, FooterFigures, FooterProblem, joined
from hms_gateway.pipeline.footers.reading import read_footer
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.stored import numbers, texts
from hms_gateway.pipeline.stats.column_statistics import (
    TAKEN_OF,
    OtherType,
    as_column,
    covered,
    kind_of,
    missing,
    packed,
    raw_bytes,
)
from hms_gateway.pipeline.storage import (
    ListingProblem,
    Storage,
    files_of,
    local_path,
    scheme_of,
    visible_files,
)
from hms_gateway.rpc.structs import NoSuchObjectException, Partition, SerDeInfo, StorageDescriptor, Table

# The data files of a partition: which there are, and a digest that changes when one of them does.


_KEPT_IN_PATHS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/:@!$&'()*+,;=-._~")


class File(msgspec.Struct, frozen=True):
    """A data file; `path` is as reports name it, `version` changes with its content.

    `folder` is where it lies below the location, empty for the location itself.
    """

    path: str
    size: int
    version: str
    folder: str = ""


def data_files(location: str, storage: Storage) -> list[File]:
    """Data files below a location, in the order of their paths.

    Raises ListingProblem, also for a location that is not there, OptionError for one that the job does not look at.
    """
    files = files_of(location, storage)
    top = files.root(location)
    found = (
        File(f"{top}/{name}", entry.bytes, str(entry.version), name.rpartition("/")[0])
        for name, entry in visible_files(files, top)
    )
    return sorted(found, key=lambda file: file.path)


def reader(file: File, location: str, storage: Storage) -> Callable[[int, int], bytes]:
    """Reads a file below a location."""
    files = files_of(location, storage)
    return lambda offset, length: files.read(file.path, offset, length)


def uri_of(location: str, folder: str) -> str:
    """A folder below a location as Spark names it in `_metadata.file_path`: escaped as Java's URIs are."""
    scheme = scheme_of(location)
    if not scheme:
        base = "file:" + _escaped(local_path(location))
    else:
        authority, slash, path = location.partition("://")[2].partition("/")
        base = f"{scheme}://{authority}{slash}{_escaped(path.rstrip('/'))}".rstrip("/")
    return f"{base}/{_escaped(folder)}" if folder else base


def _escaped(path: str) -> str:
    """Java leaves letters of all languages as they are."""
    return "".join(
        each if each in _KEPT_IN_PATHS or (ord(each) > 159 and not each.isspace()) else quote(each) for each in path
    )


def digest(files: Sequence[File], columns: str) -> str:
    """A digest of the base of statistics: each file, and the table's columns."""
    found = blake2b(columns.encode(), digest_size=12)
    for file in files:
        found.update(f"\n{file.path}\n{file.size}\n{file.version}".encode(errors="surrogateescape"))
    return found.hexdigest()


# Formats of files by their SerDe: which have footers, and how Spark reads them.


# Files are in the calendar that their format says, also where an old Spark would have used another one.
PARQUET_OPTIONS: Final = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


def format_of(library: str) -> str:
    """The format of a SerDe's files: `parquet`, `orc`, or "" for others, which have no footers."""
    name = library.lower().rpartition(".")[2]
    return next((each for each in ("parquet", "orc") if name.startswith(each)), "")


def how_to_read(library: str) -> str:
    """Spark's format for the files of a SerDe; "" where it has none."""
    name = library.lower().rpartition(".")[2]
    if name == "lazysimpleserde":
        return "text"
    return format_of(library) or ("json" if name == "jsonserde" else "")


class TextForm(msgspec.Struct, frozen=True):
    """The form of a row as a line of LazySimpleSerDe."""

    separator: str = "\x01"
    null: str = "\\N"
    escape: str = ""


def text_form(parameters: Mapping[str, str]) -> TextForm:
    """The form in the SerDe's parameters; a separator may be a character or its number."""
    separator = parameters.get("field.delim") or parameters.get("serialization.format") or "\x01"
    if separator.isdecimal() and len(separator) < 4:
        separator = chr(int(separator))
    return TextForm(separator, parameters.get("serialization.null.format", "\\N"), parameters.get("escape.delim", ""))


# The choice of tables and partitions, with reasons to pass others by.


_TABLES_A_CALL: Final = 100


def tables(client: PatientClient, options: JobOptions) -> Iterator[tuple[Table, str]]:
    """Each wanted table, and why it is passed by; "" for one that is not."""
    for database, places in groupby(table_names(client, options.wants), itemgetter(0)):
        for names in cut([name for _, name in places], _TABLES_A_CALL):
            yield from ((table, passed_by(table)) for table in named_tables(client, database, names))


def passed_by(table: Table) -> str:
    """The reason for which a table has no statistics of its files; else empty."""
    parameters = table.parameters or {}
    if is_view(table.tableType):
        return "is a view"
    if says_true(parameters, "transactional"):
        return "is transactional: its files hold changes of rows"
    if kind := logged_format(parameters, table.sd.inputFormat if table.sd else None):
        return f"is a table of {kind}, which keeps statistics of its own"
    if parameters.get("storage_handler"):
        return "is kept by a storage handler"
    if any(parameters.get(name, "0") != "0" for name in ("skip.header.line.count", "skip.footer.line.count")):
        return "has lines in its files that are not rows (skip.header.line.count)"
    return "" if location_of(table.sd) else "has no location"


def columns_of(table: Table) -> tuple[Column, ...]:
    """The columns in the files, without partition keys."""
    fields = (table.sd.cols if table.sd else None) or ()
    return tuple(Column((field.name or "").lower(), (field.type or "").lower()) for field in fields)


def columns_text(columns: Sequence[Column]) -> str:
    """A text that changes when the columns do."""
    return "\n".join(f"{column.name} {column.type}" for column in columns)


def location_of(sd: StorageDescriptor | None) -> str:
    """The location of the files; "" where that is not known."""
    if sd is None:
        return ""
    location = sd.location or ""
    return serde_of(sd).get("path", "") if not location or location.endswith(SPARK_NO_LOCATION) else location


def serde_of(sd: StorageDescriptor | None) -> dict[str, str]:
    found: SerDeInfo | None = sd.serdeInfo if sd else None
    return dict((found.parameters if found else None) or {})


def library_of(sd: StorageDescriptor | None) -> str:
    found: SerDeInfo | None = sd.serdeInfo if sd else None
    return (found.serializationLib if found else None) or ""


def fingerprint(described: Any) -> str:
    """A text that changes when a table or partition is made again, moved, or altered in its storage."""
    sd, parameters = described.sd, described.parameters or {}
    parts = (
        location_of(sd),
        library_of(sd),
        (sd.inputFormat if sd else None) or "",
        str(described.createTime or 0),
        parameters.get("transient_lastDdlTime", ""),
    )
    return "\n".join(parts)


# Measurements in executors: files and, out of the footers, figures of each column.


FOOTERS, FULL = "footers", "full"
# What becomes of a partition; one that is passed by is not looked at, with a note that says why.
NEW, FRESH, FAILED, TO_READ, PASSED = "new", "fresh", "failed", "to read", "passed"
_NO_FOOTERS: Final = "makes no footers; take the statistics with --full"

NAMES: Final = pyarrow.schema(
    [
        *texts("database", "table", "partition", "kept_of"),
        *numbers("kept_rows", "kept_raw"),
        ("kept_figures", pyarrow.binary()),
        ("kept_sketches", pyarrow.map_(pyarrow.string(), pyarrow.binary())),
    ]
)
_NOTE: Final = pyarrow.struct(texts("path", "reason"))
FOUND: Final = pyarrow.schema(
    [
        *texts("database", "table", "partition", "state", "location", "library", "fingerprint", "of"),
        *numbers("files", "bytes", "rows", "raw"),
        ("figures", pyarrow.binary()),
        ("sketches", pyarrow.map_(pyarrow.string(), pyarrow.binary())),
        ("notes", pyarrow.list_(_NOTE)),
        ("columns", pyarrow.int32()),
        ("had_rows", pyarrow.bool_()),
        ("had_columns", pyarrow.int32()),
        ("folders", pyarrow.list_(pyarrow.string())),
    ]
)


class FileNote(msgspec.Struct, frozen=True):
    """A fault of a file or location."""

    path: str
    reason: str


class Measured(msgspec.Struct, frozen=True):
    """A partition's rows and figures by column; with `failed` it has none."""

    rows: int | None
    raw: int | None
    figures: Mapping[str, FooterFigures]
    notes: tuple[FileNote, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class Measurement:
    """For `Run.derive`: a row of FOUND for each partition of a batch of names.

    `is_full` leaves the reading of figures to Spark; `is_all` takes nothing as fresh.
    """

    client: Callable[[], PatientClient]
    storage: Storage = field(repr=False)
    is_full: bool
    is_all: bool

    def __call__(self, names: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
            found = self._batch(client, names.to_pylist())
            yield pyarrow.RecordBatch.from_pylist(list(found), FOUND)

    def _batch(self, client: PatientClient, names: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for (database, table_name), rows in groupby(names, lambda row: (row["database"], row["table"])):
            try:
                table = client.call("get_table", database, table_name)
            except NoSuchObjectException:
                continue  # dropped meanwhile
            columns = columns_of(table)
            for row, described in _described(client, table, list(rows)):
                yield self._row(columns, row, described)

    def _row(self, columns: Sequence[Column], row: dict[str, Any], described: Table | Partition) -> dict[str, Any]:
        location, library = location_of(described.sd), library_of(described.sd)
        had_rows, had_columns = covered(described.parameters or {}, [column.name for column in columns])
        base = {
            "database": row["database"],
            "table": row["table"],
            "partition": row["partition"],
            "location": location,
            "library": library,
            "fingerprint": fingerprint(described),
            "columns": sum(kind_of(column.type) is not None for column in columns),
            "had_rows": had_rows,
            "had_columns": had_columns,
        }
        try:
            listed = data_files(location, self.storage)
        except OptionError as reason:
            return base | _outcome(Measured(None, None, {}, (FileNote(location, str(reason)),))) | {"state": PASSED}
        except ListingProblem as problem:
            return base | _outcome(Measured(None, None, {}, (FileNote(problem.path, problem.reason),), failed=True))
        of = digest(listed, columns_text(columns))
        base |= {"files": len(listed), "bytes": sum(file.size for file in listed)}
        if not self.is_all and (kept := self._kept(row, described, of)) is not None:
            return base | kept
        base["of"] = f"{FULL if self.is_full else FOOTERS}:{of}"
        return base | self._measured(location, library, listed, columns)

    def _measured(
        self, location: str, library: str, listed: Sequence[File], columns: Sequence[Column]
    ) -> dict[str, Any]:
        has_footers = format_of(library) != ""
        if has_footers or not any(file.size for file in listed):
            found = measured(self.storage, location, listed, columns, format_of(library))
        elif self.is_full and how_to_read(library):
            found = Measured(None, None, {})
        else:
            reason = f"is written by {library}, which {'Spark does not read here' if self.is_full else _NO_FOOTERS}"
            found = Measured(None, None, {}, (FileNote(location, reason),), failed=True)
        outcome = _outcome(found)
        if self.is_full and not found.failed and found.rows != 0:
            return outcome | {"state": TO_READ, "folders": sorted({file.folder for file in listed if file.size})}
        return outcome

    def _kept(self, row: dict[str, Any], described: Table | Partition, of: str) -> dict[str, Any] | None:
        """The results of an earlier run, if files and columns are the same since."""
        taken = (described.parameters or {}).get(TAKEN_OF, "")
        if not taken or taken != row["kept_of"] or taken.partition(":")[2] != of:
            return None
        if self.is_full and not taken.startswith(f"{FULL}:"):
            return None
        return {
            "state": FRESH,
            "of": taken,
            "rows": row["kept_rows"],
            "raw": row["kept_raw"],
            "figures": row["kept_figures"],
            "sketches": row["kept_sketches"],
            "notes": [],
        }


def _described(
    client: PatientClient, table: Table, rows: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Table | Partition]]:
    """Each partition that is still there; the table itself where it has none."""
    by_name = {row["partition"]: row for row in rows}
    described = partitions_or_table(client, table, list(by_name))
    return ((by_name[name], one) for name, one in described if name in by_name)


def _outcome(found: Measured) -> dict[str, Any]:
    return {
        "state": FAILED if found.failed else NEW,
        "rows": found.rows,
        "raw": found.raw,
        "figures": packed(found.figures),
        "notes": [{"path": note.path, "reason": note.reason} for note in found.notes],
    }


def measured(
    storage: Storage, location: str, listed: Sequence[File], columns: Sequence[Column], wanted: str
) -> Measured:
    """Figures of the table's columns out of the footers of a partition's files.

    One file that cannot be read makes all of them unknown. Empty files have no rows; they are named.
    """
    notes: list[FileNote] = []
    footers: list[Footer] = []
    failed = False
    for file in listed:
        if file.size == 0:
            notes.append(FileNote(file.path, "is empty; readers pass it by"))
            continue
        try:
            footer = read_footer(file.path, file.size, reader(file, location, storage))
        except FooterProblem as problem:
            notes.append(FileNote(problem.path, problem.reason))
            failed = True
            continue
        if footer.format != wanted:
            notes.append(FileNote(file.path, f"is a file of {footer.format} where the metastore says {wanted}"))
            failed = True
        footers.append(footer)
    if failed:
        return Measured(None, None, {}, tuple(notes), failed=True)
    return of_footers(location, footers, columns, notes)


def of_footers(
    location: str, footers: Sequence[Footer], columns: Sequence[Column], notes: Sequence[FileNote] = ()
) -> Measured:
    """Figures of the table's columns over several files; a column of another type in one of them is not known."""
    rows = sum(footer.rows for footer in footers)
    found: dict[str, FooterFigures] = {}
    said = list(notes)
    raw: int | None = 0
    by_file = [_by_column(footer, columns) for footer in footers]
    for column in columns:
        try:
            parts = [
                _part(each.get(column.name), footer, column) for each, footer in zip(by_file, footers, strict=True)
            ]
        except OtherType as other:
            said.append(FileNote(location, f"has a column {column.name} that {other}"))
            raw = None
            continue
        figures = joined(parts) if parts else missing(0)
        found[column.name] = figures
        bytes_of_column = raw_bytes(column.type, figures)
        raw = None if raw is None or bytes_of_column is None else raw + bytes_of_column
    return Measured(rows, raw, found, tuple(said))


def _by_column(footer: Footer, columns: Sequence[Column]) -> dict[str, tuple[str, FooterFigures]]:
    """Type and figures of the file's columns by the table's names.

    By place where an old Hive wrote ORC files without names.
    """
    found = {column.name: (column.type, footer.figures[column.name]) for column in footer.columns}
    if footer.columns and all(column.name == f"_col{place}" for place, column in enumerate(footer.columns)):
        return {column.name: each for column, each in zip(columns, found.values(), strict=False)}
    return found


def _part(found: tuple[str, FooterFigures] | None, footer: Footer, column: Column) -> FooterFigures:
    if found is None:
        return missing(footer.rows)
    file_type, figures = found
    # Nested columns have no statistics, only bytes.
    return figures if kind_of(column.type) is None else as_column(figures, file_type, column.type)
