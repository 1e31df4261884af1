"""Steps of executors: list directories level by level, read what the catalog has there, register and prune."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.metastore.vocabulary.table_types import FORMATS
from hms_gateway.pipeline.catalog import CatalogCaller, add_partitions, cut, drop_partitions, location_of, named_tables
from hms_gateway.pipeline.compact.rules import is_of_one, left
from hms_gateway.pipeline.crawl.tables import SAMPLES_MAX, NotAPartition, joined, spelled, split_component
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.stored import numbers, pieces, texts
from hms_gateway.pipeline.storage import (
    Entry,
    Files,
    Folded,
    ListingProblem,
    Storage,
    at_once,
    files_of,
    fold,
    is_hidden,
    is_text,
    same_file_system,
    shown,
    unlike,
)
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    EnvironmentContext,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
    ThriftException,
)

# One level of the tree: each directory of a batch is listed, in an executor.
#
# A directory above all tables leads to directories. The first one that has partitions (`key=value`), or only files,
# is a table's, and so is the location of a table that the catalog knows. Below it a directory is a value of a key, down
# to the partitions, whose files are folded into one row.


# Kinds of rows: a directory to list on the next level; one with data; something in the way.
TO_LIST, DATA, REFUSED = 0, 1, 2
# `root` is the path of the table, empty above all tables; `relative` goes on from there.
LEVEL: Final = pyarrow.schema(
    [
        ("kind", pyarrow.int8()),
        *texts("root", "relative"),
        *numbers("files", "bytes"),
        ("samples", pyarrow.list_(pyarrow.string())),
        ("reason", pyarrow.string()),
    ]
)
LEVELS_MAX: Final = 64
_NOTHING: Final = (0, 0, ())
_OWNERS: Final = {
    "Delta Lake": {"_delta_log"},
    "Hudi": {".hoodie"},
    "Iceberg": {"metadata", "data"},
    "Lance": {"_versions", "data"},
}

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Walk:
    """Lists the directories of one batch; pickled to executors.

    tables  by path, the number of keys of the tables that the catalog has there; None for one to leave alone
    """

    location: str
    storage: Storage = field(repr=False)
    tables: Mapping[str, int | None]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        wanted = zip(batch.column("root").to_pylist(), batch.column("relative").to_pylist(), strict=True)
        rows = at_once(lambda place: self._rows(files, *place), wanted, waits=files.waits)
        return pieces(rows, LEVEL)

    def _rows(self, files: Files, root: str, relative: str) -> Iterator[Row]:
        try:
            yield from self._in_table(files, root, relative) if root else self._above(files, relative)
        except ListingProblem as problem:
            inside = problem.path.removeprefix(f"{root}/") if root else problem.path
            yield refused(root, "" if inside == root else inside, problem.reason)

    def _in_table(self, files: Files, root: str, relative: str) -> Iterator[Row]:
        path, keys = joined(root, relative), self.tables.get(root, -1)
        depth = relative.count("/") + 1 if relative else 0
        if keys is None:
            return
        if keys == depth:
            yield self._folded(files, root, relative, files.scan(path))
            return
        entries = list(files.scan(path)) if keys == -1 else files.scan(path)
        if keys == -1 and not any(_is_value(entry) for entry in entries):
            yield self._folded(files, root, relative, entries)
            return
        yield from self._values(root, relative, entries)

    def _folded(self, files: Files, root: str, relative: str, entries: Iterable[Entry]) -> Row:
        """One with data. Files that no reader reads together would fail every query of the table."""
        path = joined(root, relative)
        found = fold(files, path, entries)
        if (two := unlike(files, path, found.names)) is None:
            return data(root, relative, found)
        (one, its_format), (other, of_other) = two
        reason = f"has files of several formats ({one} is {its_format} and {other} is {of_other})"
        return refused(root, relative, f"{reason}; leave files of one format in it")

    def _values(self, root: str, relative: str, entries: Iterable[Entry]) -> Iterator[Row]:
        """The children of a directory between a table's and its partitions'."""
        loose = 0
        for entry in entries:
            if is_hidden(entry.name, is_directory=entry.is_directory):
                continue
            place = f"{relative}/{entry.name}" if relative else entry.name
            path = f"{root}/{place}"
            if not entry.is_directory:
                loose += 1
            elif not is_text(place):
                yield refused(root, shown(place), "has a name that is not UTF-8")
            elif path in self.tables:
                yield to_list(path, "")
            elif not _is_value(entry):
                yield refused(root, place, "is not key=value, between the partitions of a table")
            elif place.count("/") >= LEVELS_MAX:
                yield refused(root, place, f"lies more than {LEVELS_MAX} directories below its table")
            else:
                yield to_list(root, place)
        if loose:
            yield refused(root, relative, f"has {loose} files beside partitions; no reader of the table sees them")

    def _above(self, files: Files, path: str) -> Iterator[Row]:
        """A directory above all tables, or the first of a table."""
        everything = list(files.scan(path))
        owner = _owner({entry.name for entry in everything if entry.is_directory})
        if owner:
            yield refused(
                "", path, f"is a table of {owner}, which alone knows its files; register it with its own tools"
            )
            return
        entries = [entry for entry in everything if not is_hidden(entry.name, is_directory=entry.is_directory)]
        if any(map(_is_value, entries)):
            yield from self._values(path, "", entries)
        elif entries and not any(entry.is_directory for entry in entries):
            yield self._folded(files, path, "", entries)
        else:
            yield from self._children(path, entries)

    def _children(self, path: str, entries: Iterable[Entry]) -> Iterator[Row]:
        for entry in entries:
            child = f"{path}/{entry.name}"
            if not entry.is_directory:
                yield refused("", child, "is a file beside directories; it belongs to no table")
            elif not is_text(child):
                yield refused("", shown(child), "has a name that is not UTF-8")
            elif child.count("/") - self.location.count("/") >= LEVELS_MAX:
                yield refused("", child, f"lies more than {LEVELS_MAX} directories deep")
            else:
                yield to_list(child, "") if child in self.tables else to_list("", child)


def to_list(root: str, relative: str) -> Row:
    return TO_LIST, root, relative, *_NOTHING, ""


def data(root: str, relative: str, found: Folded) -> Row:
    """Row with files that show the columns: of a partition the largest one, of a table without keys some."""
    samples = [found.largest] if found.largest else []
    if not relative and found.names:
        samples = sorted(found.names)[:: -(-len(found.names) // SAMPLES_MAX)]
    return DATA, root, relative, found.files, found.bytes, samples, ""


def refused(root: str, relative: str, reason: str) -> Row:
    return REFUSED, root, relative, *_NOTHING, reason


def _owner(names: set[str]) -> str:
    """The format whose table has directories with these names, empty for one of Hive's."""
    return next((owner for owner, marks in _OWNERS.items() if marks <= names), "")


def _is_value(entry: Entry) -> bool:
    return entry.is_directory and "=" in entry.name and split_component(entry.name) is not None


# Tables of the catalog at and below a location, and the names of their partitions.


_TEXTS: Final = pyarrow.list_(pyarrow.string())
NAMES: Final = pyarrow.schema(texts("database", "table"))
KNOWN: Final = pyarrow.schema([*NAMES, *texts("location", "path"), ("keys", _TEXTS), ("types", _TEXTS)])
# `same` is the name that all spellings of the values share; `is_other` where this one is not it.
REGISTERED: Final = pyarrow.schema([("is_other", pyarrow.bool_()), *NAMES, *texts("name", "same")])
GONE: Final = pyarrow.schema([*NAMES, *texts("name", "location", "reason")])
_PARTITIONS_A_CALL: Final = 500


@dataclass(frozen=True)
class TablesBelow:
    """The tables whose location is at, below or above a location; for batches of names of one database."""

    client: Callable[[], PatientClient]
    location: str
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        root = files.root(self.location)
        with self.client() as client:
            names = batch.column("table").to_pylist()
            tables = named_tables(client, batch.column("database")[0].as_py(), names)
        found = [row for table in tables for place in _places(table) if (row := self._row(files, root, table, place))]
        if found:
            yield pyarrow.RecordBatch.from_pylist(found, KNOWN)

    def _row(self, files: Files, root: str, table: Table, location: str) -> dict[str, Any] | None:
        if not same_file_system(location, self.location):
            return None
        try:
            path = files.root(location)
        except OptionError:
            return None
        if not is_within(path, root) and not is_within(root, path):
            return None
        keys = table.partitionKeys or []
        return {
            "database": table.dbName,
            "table": table.tableName,
            "location": location,
            "path": path,
            "keys": [key.name for key in keys],
            "types": [key.type for key in keys],
        }


def _places(table: Table) -> Iterator[str]:
    """The location of a table; of one without keys that was compacted also the directory that it has left."""
    location = location_of(table)
    if location:
        yield location
    old = None if table.partitionKeys else left(table.parameters)
    if location and old is not None and is_of_one(old.location, location):
        yield old.location


def is_within(path: str, other: str) -> bool:
    """True if a path is another one or lies below it."""
    return path == other or path.startswith(f"{other.rstrip('/')}/")


@dataclass(frozen=True)
class NamesOf:
    """The names of the partitions of a table; for batches of `KNOWN` with one row."""

    client: Callable[[], PatientClient]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
            for table in batch.to_pylist():
                try:
                    names = client.call("get_partition_names", table["database"], table["table"], -1)
                except NoSuchObjectException:
                    continue
                for some in cut(names, 10_000):
                    yield _registered(table, some)


def _registered(table: dict[str, Any], names: Sequence[str]) -> pyarrow.RecordBatch:
    same = names if set(table["types"]) == {"string"} else [_same(table, name) for name in names]
    columns = [
        pyarrow.array([one != other for one, other in zip(same, names, strict=True)], pyarrow.bool_()),
        pyarrow.array([table["database"]] * len(names), pyarrow.string()),
        pyarrow.array([table["table"]] * len(names), pyarrow.string()),
        pyarrow.array(names, pyarrow.string()),
        pyarrow.array(same, pyarrow.string()),
    ]
    batch = pyarrow.RecordBatch.from_arrays(columns, schema=REGISTERED)
    # A batch has one value of `is_other` only.
    return batch.sort_by("is_other")


def _same(table: dict[str, Any], name: str) -> str:
    """The common spelling of a registered name; one of another type than its key is like nothing else."""
    try:
        return spelled(list(zip(table["keys"], table["types"], strict=True)), name.split("/")).same
    except NotAPartition:
        return name


@dataclass(frozen=True)
class Gone:
    """Looks one by one at the partitions without a directory in the listing, for those that have none."""

    client: Callable[[], PatientClient]
    location: str
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        root = files.root(self.location)
        database, table = batch.column("database")[0].as_py(), batch.column("table")[0].as_py()
        names = batch.column("name").to_pylist()
        with self.client() as client:
            for some in cut(names, _PARTITIONS_A_CALL):
                rows = [row for row in self._rows(client, files, root, database, table, some) if row]
                if rows:
                    yield pyarrow.RecordBatch.from_pylist(rows, GONE)

    def _rows(
        self, client: PatientClient, files: Files, root: str, database: str, table: str, names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        by_values = {tuple(name_to_values(name)): name for name in names}
        for partition in client.call("get_partitions_by_names", database, table, list(names)):
            location = partition.sd.location
            if not location or not same_file_system(location, self.location):
                continue
            path = files.root(location)
            if not is_within(path, root):
                continue
            reason = is_gone(files, path)
            if reason is not None:
                found = {"name": by_values[tuple(partition.values)], "location": location, "reason": reason}
                yield {"database": database, "table": table, **found}


def is_gone(files: Files, path: str) -> str | None:
    """ "" where a directory is gone, None where it is there, a text where that cannot be known."""
    try:
        return None if files.is_directory(path) else ""
    except ListingProblem as problem:
        return problem.reason


# The calls: new tables, new partitions, partitions that are gone. Each step may be repeated.


# The server lists no directory: the figures come from the listing.
_NO_LISTING: Final = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true"})


def create_database(client: CatalogCaller, name: str, owner: str | None = None) -> None:
    """A database that may be there."""
    try:
        client.call("get_database", name)
    except NoSuchObjectException:
        made = Database(name=name, ownerName=owner, ownerType=None if owner is None else PrincipalType.USER)
        with suppress(AlreadyExistsException):
            client.call("create_database", made)


@dataclass(frozen=True)
class CreateTables:
    """For batches of designs; `location` makes a table's location of its path."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        files, refused, created = files_of(self.location, self.storage), [], 0
        for row in batch.rows():
            location = files.location(row["root"])
            try:
                table = table_of(row, location, client.connection.owner)
                client.call("create_table_with_environment_context", table, _NO_LISTING)
                created += 1
            except AlreadyExistsException:
                if (reason := _other_place(client, files, row)) is not None:
                    refused.append(Refusal(location, reason))
            except ThriftException as error:
                refused.append(
                    Refusal(location, f"cannot be created as {row['database']}.{row['table']}: {error.message}")
                )
        return StepOutcome({"tables": created}, refused)


def _other_place(client: PatientClient, files: Files, row: dict[str, Any]) -> str | None:
    """A table that a run before this one created is fine."""
    there = client.call("get_table", row["database"], row["table"]).sd.location
    if files.root(there) == row["root"]:
        return None
    return _elsewhere(row["database"], row["table"], there)


def _elsewhere(database: str | None, table: str | None, location: str) -> str:
    return f"is not registered: table {database}.{table} exists and lies at {location}"


def table_of(row: dict[str, Any], location: str, owner: str | None = None) -> Table:
    """A table that leaves its files alone when it is dropped."""
    input_format, output_format, serde = FORMATS[row["format"].upper()]
    return Table(
        dbName=row["database"],
        tableName=row["table"],
        owner=owner,
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE", "hms.crawl": "true"},
        partitionKeys=_fields(row["keys"], row["types"]),
        sd=StorageDescriptor(
            cols=_fields(row["columns"], row["column_types"]),
            location=location,
            inputFormat=input_format,
            outputFormat=output_format,
            compressed=False,
            numBuckets=-1,
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={"serialization.format": "1"}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )


def _fields(names: Sequence[str], types: Sequence[str]) -> list[FieldSchema]:
    return [FieldSchema(name=name, type=kind) for name, kind in zip(names, types, strict=True)]


@dataclass(frozen=True)
class Register:
    """Adds the partitions of a batch to their table; what the metastore refuses is found by halving."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        rows = batch.rows()
        database, name = rows[0]["database"], rows[0]["table"]
        try:
            table = client.call("get_table", database, name)
        except NoSuchObjectException as error:
            return StepOutcome(
                refused=[Refusal(row["location"], f"is not registered: {error.message}") for row in rows]
            )

        def add(some: Sequence[dict[str, Any]]) -> None:
            add_partitions(client, table, [_partition(table, row) for row in some], _NO_LISTING)

        own, refused = self._divided(table, rows)
        if own:
            refused += halved(own, add)
        left_out = {refusal.item for refusal in refused}
        added = [row for row in own if row["location"] not in left_out]
        counts = {"partitions": len(added), "files": sum(row["files"] for row in added)}
        return StepOutcome({**counts, "bytes": sum(row["bytes"] for row in added)}, refused)

    def _divided(self, table: Table, rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Refusal]]:
        """The rows in the table's directory, and refusals of the rest: the name may be that of another table."""
        there = location_of(table)
        files = files_of(self.location, self.storage)
        # The metastore may spell a location in another way than we do.
        path = files.root(there) if same_file_system(there, self.location) else None
        own, refused = [], []
        for row in rows:
            location = row["location"]
            if is_within(location, there) or (path is not None and is_within(files.root(location), path)):
                own.append(row)
            else:
                refused.append(Refusal(location, _elsewhere(table.dbName, table.tableName, there)))
        return own, refused


def _partition(table: Table, row: dict[str, Any]) -> Partition:
    sd = table.sd or StorageDescriptor()
    return Partition(
        values=row["values"],
        dbName=table.dbName,
        tableName=table.tableName,
        sd=msgspec.structs.replace(sd, location=row["location"]),
        parameters={"numFiles": str(row["files"]), "totalSize": str(row["bytes"])},
    )


def halved(rows: Sequence[dict[str, Any]], do: Callable[[Sequence[dict[str, Any]]], None]) -> list[Refusal]:
    """Do all rows at once, or, where the metastore refuses that, each half by itself; the refusals that remain."""
    try:
        do(rows)
    except ThriftException as error:
        if len(rows) == 1:
            return [Refusal(rows[0]["location"], f"is refused: {type(error).__name__}: {error.message}")]
        middle = len(rows) // 2
        return [*halved(rows[:middle], do), *halved(rows[middle:], do)]
    return []


@dataclass(frozen=True)
class Prune:
    """Drops partitions whose directory is still gone, and that still lie there. Nothing is deleted."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        files, rows = files_of(self.location, self.storage), batch.rows()
        database, table = rows[0]["database"], rows[0]["table"]
        try:
            found = client.call("get_partitions_by_names", database, table, [row["name"] for row in rows])
        except NoSuchObjectException:
            return StepOutcome()
        there = {tuple(one.values): one.sd.location for one in found}
        gone = [
            row
            for row in rows
            if there.get(tuple(name_to_values(row["name"]))) == row["location"]
            and is_gone(files, files.root(row["location"])) == ""
        ]
        if not gone:
            return StepOutcome()

        def drop(some: Sequence[dict[str, Any]]) -> None:
            drop_partitions(client, database, table, [row["name"] for row in some])

        refused = halved(gone, drop)
        return StepOutcome({"dropped": len(gone) - len(refused)}, refused)
