"""Reads tables and partitions as places and the directories of the file systems, and brings both together by area."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.findings import Sorter, find
from hms_gateway.pipeline.audit.places import (
    Area,
    Areas,
    Directory,
    FileOwner,
    Finding,
    Group,
    Place,
    Thresholds,
    columns_of,
    is_hidden,
    is_leftover,
    location_of,
    partition_place,
    replaced_place,
    table_place,
)
from hms_gateway.pipeline.catalog import PARTITIONS_A_CALL, cut, databases_everywhere, is_elsewhere, named_tables
from hms_gateway.pipeline.footers.footer import Column
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.spark import map_in_arrow
from hms_gateway.pipeline.jobs.stored import Stored, numbers, piece, pieces, spark_schema, texts
from hms_gateway.pipeline.storage import (
    Entry,
    Files,
    ListingProblem,
    Storage,
    at_once,
    files_of,
    formats_in,
    is_text,
    shown,
)
from hms_gateway.pipeline.storage import is_hidden as is_hidden_file
from hms_gateway.rpc.structs import Database, NoSuchObjectException, Table

# Brings places and directories of one area together in one task, and applies the rules there.


# A row is a finding, or, where `kind` is null, the content of a table or partition.
_FOUND: Final = pyarrow.schema(
    [
        *texts("severity", "kind", "database", "table", "partition", "location", "text"),
        *numbers("files", "total_bytes"),
        ("newest_seconds", pyarrow.float64()),
        *texts("fix", "format"),
    ]
)
FOUND: Final = spark_schema(_FOUND)
_GROUPED: Final = pyarrow.schema(
    [*texts("area", "part"), ("tag", pyarrow.int32()), *texts("location"), ("payload", pyarrow.binary())]
)
_PLACE, _DIRECTORY = 0, 1
_ROWS_A_BATCH: Final = 10_000

_encode = msgspec.msgpack.encode
_place = msgspec.msgpack.Decoder(Place).decode
_directory = msgspec.msgpack.Decoder(Directory).decode


def compared(
    places: DataFrame,
    directories: DataFrame,
    areas: Any,
    limits: Thresholds,
    unreadable: tuple[str, ...],
    alone: DataFrame | None,
) -> DataFrame:
    """FOUND: what is wrong with places (location, place) and directories (location, payload).

    areas  a broadcast Areas
    alone  the locations of places that lie in no area; None where there are none
    """
    owned = _with_tops(map_in_arrow(places, _Grouper(areas, _PLACE), spark_schema(_GROUPED)), alone)
    lying = _with_tops(map_in_arrow(directories, _Grouper(areas, _DIRECTORY), spark_schema(_GROUPED)), alone)
    grouped = owned.unionByName(lying).repartition("area", "part").sortWithinPartitions("area", "part", "tag")
    return map_in_arrow(grouped, _Comparer(areas, limits, unreadable), FOUND)


def outermost_of(locations: DataFrame) -> DataFrame:
    """Locations (location) without those that lie in others."""
    tops = locations.withColumnRenamed("location", "top")
    found = _above(locations).join(tops, f.col("above") == f.col("top")).groupBy("location")
    # The shortest of several locations around one is the first in order.
    return found.agg(f.min("top").alias("top")).select(f.col("top").alias("location")).distinct()


def _with_tops(rows: DataFrame, alone: DataFrame | None) -> DataFrame:
    """Rows in no area go to the outermost place around them; without a place around them they are left out."""
    if alone is None:
        return rows.where("area is not null")
    tops = alone.distinct().withColumnRenamed("location", "top")
    lonely = _above(rows.where("area is null"))
    found = lonely.join(tops, lonely["above"] == tops["top"]).groupBy("location", "part", "tag", "payload")
    # The shortest of several locations around one is the first in order.
    outer = found.agg(f.min("top").alias("area")).select("area", "part", "tag", "location", "payload")
    return rows.where("area is not null").unionByName(outer)


def _above(rows: DataFrame) -> DataFrame:
    """Adds a row for each directory at or above a location."""
    names = f.split("location", "/")
    above = f.transform(f.sequence(f.lit(1), f.size(names)), lambda n: f.array_join(f.slice(names, 1, n), "/"))
    return rows.withColumn("above", f.explode(above))


# Kinds of ALONE: in none of the directories that are listed; in no area.
ELSEWHERE, LONELY = 0, 1
ALONE: Final = pyarrow.schema([("kind", pyarrow.int8()), ("location", pyarrow.string())])


@dataclass(frozen=True)
class Alone:
    """Places of a batch to those that lie apart; `areas` and `roots` are broadcast."""

    areas: Any
    roots: Any

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        areas, roots = self.areas.value, self.roots.value
        rows = list(zip(batch.column("location").to_pylist(), batch.column("is_audited").to_pylist(), strict=True))
        elsewhere = {location for location, is_audited in rows if is_audited and not roots.reach(location)}
        lonely = {location for location, _ in rows if areas.group_of(location) is None}
        for kind, found in ((ELSEWHERE, elsewhere), (LONELY, lonely)):
            if found:
                columns = [pyarrow.array([kind] * len(found), pyarrow.int8()), pyarrow.array(sorted(found))]
                yield pyarrow.RecordBatch.from_arrays(columns, schema=ALONE)


@dataclass(frozen=True)
class _Grouper:
    """Rows of places or directories with the group that they belong to; `area` is null where there is none."""

    areas: Any
    tag: int

    def __call__(self, parts: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        areas: Areas = self.areas.value
        for part in parts:
            locations = part.column("location").to_pylist()
            groups = [areas.group_of(location) or Group(None) for location in locations]
            columns = [
                pyarrow.array([group.area for group in groups], pyarrow.string()),
                pyarrow.array([group.part for group in groups], pyarrow.string()),
                pyarrow.array([self.tag] * len(locations), pyarrow.int32()),
                part.column("location"),
                part.column(1),
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=_GROUPED)


@dataclass(frozen=True)
class _Comparer:
    """The rules, group by group, in the order of the rows: places first. A group's directories are not kept."""

    areas: Any
    limits: Thresholds
    unreadable: tuple[str, ...]

    def __call__(self, parts: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        rows = chain.from_iterable(map(_rows, parts))
        found = (row for (area, _), of_group in groupby(rows, itemgetter(0, 1)) for row in self._group(area, of_group))
        for some in cut(found, _ROWS_A_BATCH):
            yield pyarrow.RecordBatch.from_pylist(some, schema=_FOUND)

    def _group(self, location: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        places: list[Place] = []
        sorter = None
        for _, _, tag, payload in rows:
            if tag == _PLACE:
                places.append(_place(payload))
                continue
            sorter = sorter or Sorter(self._area(location, places), places)
            sorter.add(_directory(payload))
        sorter = sorter or Sorter(self._area(location, places), places)
        yield from map(_finding_row, find(sorter, self.limits, self.unreadable))
        yield from _contents(sorter)

    def _area(self, location: str, places: list[Place]) -> Area:
        area: Area = self.areas.value.area(location)
        if area.table is None and not area.database:
            # A partition that lies in no table's directory is an area of its own.
            return msgspec.structs.replace(area, table=next(one for one in places if one.location == location))
        return area


def _rows(part: pyarrow.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(part.column(name).to_pylist() for name in ("area", "part", "tag", "payload")), strict=True)


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in finding.__struct_fields__}


def _contents(sorter: Sorter) -> Iterator[dict[str, Any]]:
    for location, places in sorter.places.items():
        content, place = sorter.contents[location], places[0]
        if content.is_there and place.is_audited and place.storage is FileOwner.PLAIN and not place.is_partitioned:
            counts = {name: getattr(content.heap, name) for name in ("files", "total_bytes", "newest_seconds")}
            names: Mapping[str, Any] = {
                name: getattr(place, name) for name in ("database", "table", "partition", "format")
            }
            yield {**names, **counts, "location": location}


# Reads what the catalog says about directories: tables on the driver, partitions in executors.


_TABLES_A_CALL: Final = 200
_TABLES_SCHEMA: Final = pyarrow.schema(texts("database", "table"))
_NAMES: Final = _TABLES_SCHEMA.append(pyarrow.field("names", pyarrow.list_(pyarrow.string())))
PLACES: Final = pyarrow.schema(
    [("location", pyarrow.string()), ("place", pyarrow.binary()), ("is_audited", pyarrow.bool_())]
)
_TABLES_A_BATCH: Final = 50
_CALLS_A_BATCH: Final = 5


class Catalog(msgspec.Struct, frozen=True):
    """Tables by `database.table`, with their columns where footers can be compared with them."""

    databases: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Place]
    columns: Mapping[str, tuple[Column, ...]]


def read_catalog(client: PatientClient, is_wanted: Callable[[str, str], bool], storage: Storage) -> Catalog:
    """All databases and tables; those that `is_wanted` are audited. A database dropped meanwhile is left out.

    Tables of other catalogs than the client's are known, and not audited.
    """
    databases: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Place] = {}
    columns: dict[str, tuple[Column, ...]] = {}
    for name in databases_everywhere(client, client.connection.catalog):
        try:
            found = client.call("get_database", name)
        except NoSuchObjectException:
            continue
        databases[name] = _locations(found)
        for table in _tables(client, name):
            is_audited = not is_elsewhere(name) and is_wanted(name, table.tableName or "")
            place = table_place(table, databases[name], is_audited)
            if place is not None:
                place = _looked_at(place, storage)
                tables[f"{place.database}.{place.table}"] = place
                if (old := replaced_place(place, table.parameters or {})) is not None:
                    tables[f"{place.database}.{place.table} before"] = old
                if place.format in ("parquet", "orc"):
                    columns[f"{place.database}.{place.table}"] = columns_of(table.sd.cols if table.sd else None)
    return Catalog(databases, tables, columns)


def read_places(run: Run, catalog: Catalog) -> Stored:
    """PLACES: all tables and partitions. Names are cut in executors, so that many of them read a large table."""
    options = run.options
    tables = {name: place for name, place in catalog.tables.items() if place.is_partitioned}
    whole = run.store("tables", lambda: pyarrow.Table.from_batches([place_batch(iter(catalog.tables.values()))]))
    rows = [{"database": place.database, "table": place.table} for place in tables.values()]
    listed = run.store("partitioned", rows, rows_a_batch=_TABLES_A_BATCH, schema=_TABLES_SCHEMA)
    of_names = _NameReader(options.client)
    named = run.derive("names", listed, of_names, _NAMES, rows_a_batch=_CALLS_A_BATCH, unit="batches of tables")
    sent = run.spark.sparkContext.broadcast(tables)
    of_parts = _PartitionReader(options.client, run.storage, sent)
    parts = run.derive("partitions", named, of_parts, PLACES, unit="batches of partitions")
    return Stored.joined([whole, parts])


@dataclass(frozen=True)
class _NameReader:
    """Tables to their partitions' names, in pieces of one call."""

    client: Callable[[], PatientClient]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
            for row in batch.to_pylist():
                yield from self._names(client, row["database"], row["table"])

    def _names(self, client: PatientClient, database: str, table: str) -> Iterator[pyarrow.RecordBatch]:
        try:
            names = client.call("get_partition_names", database, table, -1)
        except NoSuchObjectException:
            return
        for some in cut(names, PARTITIONS_A_CALL):
            rows = [{"database": database, "table": table, "names": some}]
            yield pyarrow.RecordBatch.from_pylist(rows, schema=_NAMES)


@dataclass(frozen=True)
class _PartitionReader:
    """Names of partitions to places."""

    client: Callable[[], PatientClient]
    storage: Storage = field(repr=False)
    tables: Any

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
            for row in batch.to_pylist():
                table = self.tables.value[f"{row['database']}.{row['table']}"]
                yield place_batch(self._places(client, table, row["names"]))

    def _places(self, client: PatientClient, table: Place, names: Sequence[str]) -> Iterator[Place]:
        try:
            found = client.call("get_partitions_by_names", table.database, table.table, list(names))
        except NoSuchObjectException:
            return
        for partition in found:
            place = partition_place(partition, table)
            if place is not None:
                place = _looked_at(place, self.storage)
                yield place
                if (old := replaced_place(place, partition.parameters or {})) is not None:
                    yield old


def place_batch(places: Iterator[Place]) -> pyarrow.RecordBatch:
    """Places as PLACES."""
    rows = [(place.location, _encode(place), place.is_listed) for place in places]
    return piece(rows, PLACES) if rows else pyarrow.RecordBatch.from_pylist([], PLACES)


def _looked_at(place: Place, storage: Storage) -> Place:
    # The top of a file system is without its slash here.
    reason = storage.refusal(f"{place.location}/") if place.is_audited else ""
    return msgspec.structs.replace(place, passed_over=reason) if reason else place


def _tables(client: PatientClient, database: str) -> Iterator[Table]:
    with suppress(NoSuchObjectException):
        for some in cut(client.call("get_all_tables", database), _TABLES_A_CALL):
            yield from named_tables(client, database, some)


def _locations(database: Database) -> tuple[str, ...]:
    texts = (database.locationUri, getattr(database, "managedLocationUri", None))
    return tuple(dict.fromkeys(found for text in texts if (found := location_of(text)) is not None))


# One level of the tree: each directory of a batch is listed and folded to a row, in an executor.


# Kinds of rows: to be listed on the next level, with the time of the directory itself; listed; could not be listed.
TO_LIST, LISTED, UNREADABLE = 0, 1, 2
LEVEL: Final = pyarrow.schema([("kind", pyarrow.int8()), ("location", pyarrow.string()), ("payload", pyarrow.binary())])
_DIRECTORIES_A_BATCH: Final = 2_000

Row = tuple[int, str, bytes]


def walk(run: Run, roots: Stored, areas: Any) -> Stored:
    """All directories at and below `roots`, level by level: rows of LEVEL that are LISTED or UNREADABLE."""
    step = DirectoryWalk(run.storage, areas)
    _, *levels = run.levels(roots, step, LEVEL, pending=TO_LIST, rows_a_batch=_DIRECTORIES_A_BATCH)
    found = [level.where(lambda of: of[0] != TO_LIST) for level in levels]
    return Stored.joined(found or [roots.where(lambda of: False)])


@dataclass(frozen=True)
class DirectoryWalk:
    """Lists the directories of one batch; pickled to executors. `areas` is a broadcast Areas.

    What lies in a table with a log of its own is for the log to say, and is not listed.
    """

    storage: Storage = field(repr=False)
    areas: Any

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        locations = batch.column("location").to_pylist()
        changed = [float(text or 0) for text in batch.column("payload").to_pylist()]
        waits = not all(location.startswith("file:") for location in locations)
        places = zip(locations, changed, strict=True)
        return pieces(at_once(lambda place: self._rows(*place), places, waits=waits), LEVEL)

    def _rows(self, location: str, changed_seconds: float) -> Iterator[Row]:
        try:
            files = files_of(location, self.storage)
            path = files.root(location)
            entries = list(files.scan(path))
        except ListingProblem as problem:
            # What is gone is missing, if the catalog names it, and otherwise was removed a moment ago.
            if not isinstance(problem.__cause__, FileNotFoundError):
                yield _unreadable(location, problem.reason)
            return
        except ValueError as error:
            yield _unreadable(location, str(error))
            return
        folded = _folded(files, location, path, entries)
        newest = max(folded.newest_seconds, changed_seconds)
        yield LISTED, location, _encode(msgspec.structs.replace(folded, newest_seconds=newest))
        if self._is_to_be_walked(location):
            yield from _children(location, entries)

    def _is_to_be_walked(self, location: str) -> bool:
        areas: Areas = self.areas.value
        group = areas.group_of(location)
        table = areas.area(group.area).table if group is not None and group.area is not None else None
        if table is None or table.storage in (FileOwner.PLAIN, FileOwner.ACID):
            return True
        # Hudi records its partitions in the catalog: their directories are looked for.
        return table.storage is FileOwner.LOGGED and table.is_partitioned


def _folded(files: Files, location: str, path: str, entries: Sequence[Entry]) -> Directory:
    found = [
        entry for entry in entries if not entry.is_directory and not is_hidden_file(entry.name, is_directory=False)
    ]
    is_looked_at = not is_leftover(location.rpartition("/")[2])
    return Directory(
        location,
        len(found),
        sum(entry.bytes for entry in found),
        max((entry.modified_ms for entry in entries), default=0) / 1_000,
        _formats(files, path, found) if is_looked_at else {},
    )


def _children(location: str, entries: Iterable[Entry]) -> Iterator[Row]:
    """Directories to list; of hidden ones only leftovers, since others belong to their engine."""
    for entry in entries:
        if not entry.is_directory or (is_hidden(entry.name) and not is_leftover(entry.name)):
            continue
        child = f"{location}/{entry.name}"
        if is_text(child):
            yield TO_LIST, child, repr(entry.modified_ms / 1_000).encode()
        else:
            yield _unreadable(shown(child), "has a name that is not UTF-8")


def _formats(files: Files, path: str, found: Sequence[Entry]) -> dict[str, int]:
    """Formats of all files that are not empty, or of some where the file system is away."""
    return Counter(name for _, name in formats_in(files, path, [entry.name for entry in found if entry.bytes]))


def _unreadable(location: str, reason: str) -> Row:
    return UNREADABLE, location, _encode(Directory(location, error=reason))
