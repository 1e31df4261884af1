"""What the catalog has at and below a location: tables, and the names of their partitions. Read by executors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow

from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.pipeline.compact.places import is_of_one
from hms_gateway.pipeline.compact.swap import left
from hms_gateway.pipeline.connection import Connection, named_tables
from hms_gateway.pipeline.crawl.keys import NotAPartition, spelled
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.listing import Files, ListingProblem, files_of
from hms_gateway.pipeline.storage import Storage, same_file_system
from hms_gateway.rpc.structs import NoSuchObjectException, Table

_TEXTS: Final = pyarrow.list_(pyarrow.string())
NAMES: Final = pyarrow.schema([("database", pyarrow.string()), ("table", pyarrow.string())])
TABLES: Final = pyarrow.schema(
    [*NAMES, ("location", pyarrow.string()), ("path", pyarrow.string()), ("keys", _TEXTS), ("types", _TEXTS)]
)
# `same` is the name that all spellings of the values share; `is_other` where this one is not it.
REGISTERED: Final = pyarrow.schema(
    [("is_other", pyarrow.bool_()), *NAMES, ("name", pyarrow.string()), ("same", pyarrow.string())]
)
GONE: Final = pyarrow.schema(
    [*NAMES, ("name", pyarrow.string()), ("location", pyarrow.string()), ("reason", pyarrow.string())]
)
_PARTITIONS_A_CALL: Final = 500


def table_names(client: PatientClient) -> Iterator[dict[str, str]]:
    """Every table there is: also those that are to be left alone are recognized by their places."""
    for database in client.call("get_all_databases"):
        for table in client.call("get_all_tables", database):
            yield {"database": database, "table": table}


@dataclass(frozen=True)
class TablesBelow:
    """The tables whose location is at, below or above a location; for batches of names of one database."""

    connection: Connection
    patience_seconds: float
    location: str
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        root = files.root(self.location)
        with PatientClient(self.connection, self.patience_seconds) as client:
            names = batch.column("table").to_pylist()
            tables = named_tables(client, batch.column("database")[0].as_py(), names)
        found = [row for table in tables for place in _places(table) if (row := self._row(files, root, table, place))]
        if found:
            yield pyarrow.RecordBatch.from_pylist(found, TABLES)

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
    location = (table.sd.location if table.sd else None) or ""
    if location:
        yield location
    old = None if table.partitionKeys else left(table.parameters)
    if location and old is not None and is_of_one(old.location, location):
        yield old.location


def is_within(path: str, other: str) -> bool:
    """Whether a path is another one or lies below it."""
    return path == other or path.startswith(f"{other.rstrip('/')}/")


@dataclass(frozen=True)
class NamesOf:
    """The names of the partitions of a table; for batches of `TABLES` with one row."""

    connection: Connection
    patience_seconds: float

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self.connection, self.patience_seconds) as client:
            for table in batch.to_pylist():
                try:
                    names = client.call("get_partition_names", table["database"], table["table"], -1)
                except NoSuchObjectException:
                    continue
                for at in range(0, len(names), 10_000):
                    yield _registered(table, names[at : at + 10_000])


def _registered(table: dict[str, Any], names: list[str]) -> pyarrow.RecordBatch:
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
    """What is registered may be of another type than its key; then it is like nothing else."""
    try:
        return spelled(list(zip(table["keys"], table["types"], strict=True)), name.split("/")).same
    except NotAPartition:
        return name


@dataclass(frozen=True)
class Gone:
    """Which of the partitions without a directory in the listing have none; looked at one by one."""

    connection: Connection
    patience_seconds: float
    location: str
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        files = files_of(self.location, self.storage)
        root = files.root(self.location)
        database, table = batch.column("database")[0].as_py(), batch.column("table")[0].as_py()
        names = batch.column("name").to_pylist()
        with PatientClient(self.connection, self.patience_seconds) as client:
            for at in range(0, len(names), _PARTITIONS_A_CALL):
                some = names[at : at + _PARTITIONS_A_CALL]
                rows = [row for row in self._rows(client, files, root, database, table, some) if row]
                if rows:
                    yield pyarrow.RecordBatch.from_pylist(rows, GONE)

    def _rows(
        self, client: PatientClient, files: Files, root: str, database: str, table: str, names: list[str]
    ) -> Iterator[dict[str, Any]]:
        by_values = {tuple(name_to_values(name)): name for name in names}
        for partition in client.call("get_partitions_by_names", database, table, names):
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
