"""What executors find out about partitions: their files and, out of the footers, figures of each column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers import Footer, FooterFigures, FooterProblem, joined, read_footer
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.selection import partition_names
from hms_gateway.pipeline.stats.files import File, NotListed, data_files, digest, reader
from hms_gateway.pipeline.stats.formats import format_of, how_to_read
from hms_gateway.pipeline.stats.kinds import OtherType, TableColumn, as_column, kind_of, missing, raw_bytes
from hms_gateway.pipeline.stats.packing import packed
from hms_gateway.pipeline.stats.parameters import TAKEN_OF, covered
from hms_gateway.pipeline.stats.selecting import columns_of, columns_text, fingerprint, library_of, location_of
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import NoSuchObjectException, Partition, Table

FOOTERS, FULL = "footers", "full"
# What becomes of a partition; one that is passed by is not looked at, with a note that says why.
NEW, FRESH, FAILED, TO_READ, PASSED = "new", "fresh", "failed", "to read", "passed"
PARTITIONS_A_CALL: Final = 500
_NAMES_A_PIECE: Final = 10_000
_NO_FOOTERS: Final = "makes no footers; take the statistics with --full"

NAMES: Final = pyarrow.schema(
    [
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("partition", pyarrow.string()),
        ("kept_of", pyarrow.string()),
        ("kept_rows", pyarrow.int64()),
        ("kept_raw", pyarrow.int64()),
        ("kept_figures", pyarrow.binary()),
        ("kept_sketches", pyarrow.map_(pyarrow.string(), pyarrow.binary())),
    ]
)
_NOTE: Final = pyarrow.struct([("path", pyarrow.string()), ("reason", pyarrow.string())])
FOUND: Final = pyarrow.schema(
    [
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("partition", pyarrow.string()),
        ("state", pyarrow.string()),
        ("location", pyarrow.string()),
        ("library", pyarrow.string()),
        ("fingerprint", pyarrow.string()),
        ("of", pyarrow.string()),
        ("files", pyarrow.int64()),
        ("bytes", pyarrow.int64()),
        ("rows", pyarrow.int64()),
        ("raw", pyarrow.int64()),
        ("figures", pyarrow.binary()),
        ("sketches", pyarrow.map_(pyarrow.string(), pyarrow.binary())),
        ("notes", pyarrow.list_(_NOTE)),
        ("columns", pyarrow.int32()),
        ("had_rows", pyarrow.bool_()),
        ("had_columns", pyarrow.int32()),
        ("folders", pyarrow.list_(pyarrow.string())),
    ]
)


class Note(msgspec.Struct, frozen=True):
    """What is wrong with a file or location."""

    path: str
    reason: str


class Measured(msgspec.Struct, frozen=True):
    """A partition's rows and figures by column; with `failed` it has none."""

    rows: int | None
    raw: int | None
    figures: Mapping[str, FooterFigures]
    notes: tuple[Note, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class SelectNames:
    """For `Run.derive`: a row of NAMES for each partition of some tables, and for each table without partitions."""

    connection: Connection
    where: str
    patience_seconds: float

    def __call__(self, tables: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self.connection, self.patience_seconds) as client:
            for row in tables.to_pylist():
                try:
                    table = client.call("get_table", row["database"], row["table"])
                    names = partition_names(client, table, self.where) if table.partitionKeys else [""]
                except NoSuchObjectException:
                    continue  # dropped meanwhile
                for at in range(0, len(names), _NAMES_A_PIECE):
                    rows = [row | {"partition": name} for name in sorted(names[at : at + _NAMES_A_PIECE])]
                    yield pyarrow.RecordBatch.from_pylist(rows, NAMES)


@dataclass(frozen=True)
class Measurement:
    """For `Run.derive`: a row of FOUND for each partition of a batch of names.

    `is_full` leaves the reading of figures to Spark; `is_all` takes nothing as fresh.
    """

    connection: Connection
    storage: Storage = field(repr=False)
    is_full: bool
    is_all: bool
    patience_seconds: float

    def __call__(self, names: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self.connection, self.patience_seconds) as client:
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

    def _row(self, columns: Sequence[TableColumn], row: dict[str, Any], described: Table | Partition) -> dict[str, Any]:
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
            return base | _outcome(Measured(None, None, {}, (Note(location, str(reason)),))) | {"state": PASSED}
        except NotListed as problem:
            return base | _outcome(Measured(None, None, {}, (Note(problem.path, problem.reason),), failed=True))
        of = digest(listed, columns_text(columns))
        base |= {"files": len(listed), "bytes": sum(file.size for file in listed)}
        if not self.is_all and (kept := self._kept(row, described, of)) is not None:
            return base | kept
        base["of"] = f"{FULL if self.is_full else FOOTERS}:{of}"
        return base | self._measured(location, library, listed, columns)

    def _measured(
        self, location: str, library: str, listed: Sequence[File], columns: Sequence[TableColumn]
    ) -> dict[str, Any]:
        has_footers = format_of(library) != ""
        if has_footers or not any(file.size for file in listed):
            found = measured(self.storage, location, listed, columns, format_of(library))
        elif self.is_full and how_to_read(library):
            found = Measured(None, None, {})
        else:
            reason = f"is written by {library}, which {'Spark does not read here' if self.is_full else _NO_FOOTERS}"
            found = Measured(None, None, {}, (Note(location, reason),), failed=True)
        outcome = _outcome(found)
        if self.is_full and not found.failed and found.rows != 0:
            return outcome | {"state": TO_READ, "folders": sorted({file.folder for file in listed if file.size})}
        return outcome

    def _kept(self, row: dict[str, Any], described: Table | Partition, of: str) -> dict[str, Any] | None:
        """What an earlier run found, where files and columns are the same since."""
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
    if not table.partitionKeys:
        yield from ((row, table) for row in rows if row["partition"] == "")
        return
    keys = [key.name or "" for key in table.partitionKeys]
    for at in range(0, len(rows), PARTITIONS_A_CALL):
        some = {row["partition"]: row for row in rows[at : at + PARTITIONS_A_CALL]}
        for partition in client.call("get_partitions_by_names", table.dbName, table.tableName, list(some)):
            row = some.get(make_name(keys, partition.values))
            if row is not None:
                yield row, partition


def _outcome(found: Measured) -> dict[str, Any]:
    return {
        "state": FAILED if found.failed else NEW,
        "rows": found.rows,
        "raw": found.raw,
        "figures": packed(found.figures),
        "notes": [{"path": note.path, "reason": note.reason} for note in found.notes],
    }


def measured(
    storage: Storage, location: str, listed: Sequence[File], columns: Sequence[TableColumn], wanted: str
) -> Measured:
    """Figures of the table's columns out of the footers of a partition's files.

    One file that cannot be read makes all of them unknown. Empty files have no rows; they are named.
    """
    notes: list[Note] = []
    footers: list[Footer] = []
    failed = False
    for file in listed:
        if file.size == 0:
            notes.append(Note(file.path, "is empty; readers pass it by"))
            continue
        try:
            footer = read_footer(file.path, file.size, reader(file, location, storage))
        except FooterProblem as problem:
            notes.append(Note(problem.path, problem.reason))
            failed = True
            continue
        if footer.format != wanted:
            notes.append(Note(file.path, f"is a file of {footer.format} where the metastore says {wanted}"))
            failed = True
        footers.append(footer)
    if failed:
        return Measured(None, None, {}, tuple(notes), failed=True)
    return of_footers(location, footers, columns, notes)


def of_footers(
    location: str, footers: Sequence[Footer], columns: Sequence[TableColumn], notes: Sequence[Note] = ()
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
            said.append(Note(location, f"has a column {column.name} that {other}"))
            raw = None
            continue
        figures = joined(parts) if parts else missing(0)
        found[column.name] = figures
        bytes_of_column = raw_bytes(column.type, figures)
        raw = None if raw is None or bytes_of_column is None else raw + bytes_of_column
    return Measured(rows, raw, found, tuple(said))


def _by_column(footer: Footer, columns: Sequence[TableColumn]) -> dict[str, tuple[str, FooterFigures]]:
    """Type and figures of the file's columns by the table's names.

    By place where an old Hive wrote ORC files without names.
    """
    found = {column.name: (column.type, footer.figures[column.name]) for column in footer.columns}
    if footer.columns and all(column.name == f"_col{place}" for place, column in enumerate(footer.columns)):
        return {column.name: each for column, each in zip(columns, found.values(), strict=False)}
    return found


def _part(found: tuple[str, FooterFigures] | None, footer: Footer, column: TableColumn) -> FooterFigures:
    if found is None:
        return missing(footer.rows)
    file_type, figures = found
    # Nested columns have no statistics, only bytes.
    return figures if kind_of(column.type) is None else as_column(figures, file_type, column.type)
