"""Reads what the catalog says about directories: tables on the driver, partitions in executors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.audit.rules.places import PartitionRow, TableRow, partition_place, replaced_place, table_place
from hms_gateway.pipeline.audit.rules.values import Key, Place, location_of
from hms_gateway.pipeline.connection import Connection, named_tables
from hms_gateway.pipeline.footers import Column
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import Database, FieldSchema, NoSuchObjectException, Partition, Table

_TABLES_A_CALL: Final = 200
_PARTITIONS_A_CALL: Final = 1_000
_TABLES_SCHEMA: Final = pyarrow.schema([("database", pyarrow.string()), ("table", pyarrow.string())])
_NAMES: Final = _TABLES_SCHEMA.append(pyarrow.field("names", pyarrow.list_(pyarrow.string())))
PLACES: Final = pyarrow.schema(
    [("location", pyarrow.string()), ("place", pyarrow.binary()), ("is_audited", pyarrow.bool_())]
)
_TABLES_A_BATCH: Final = 50
_CALLS_A_BATCH: Final = 5

_encode = msgspec.msgpack.encode


class Catalog(msgspec.Struct, frozen=True):
    """Tables by `database.table`, with their columns where footers can be compared with them."""

    databases: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Place]
    columns: Mapping[str, tuple[Column, ...]]


def read_catalog(client: PatientClient, is_wanted: Callable[[str, str], bool], storage: Storage) -> Catalog:
    """All databases and tables; those that `is_wanted` are audited. A database dropped meanwhile is left out."""
    databases: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Place] = {}
    columns: dict[str, tuple[Column, ...]] = {}
    for name in client.call("get_all_databases"):
        try:
            found = client.call("get_database", name)
        except NoSuchObjectException:
            continue
        databases[name] = _locations(found)
        for table in _tables(client, name):
            place = table_place(_row(table), databases[name], is_wanted(name, table.tableName or ""))
            if place is not None:
                place = _looked_at(place, storage)
                tables[f"{place.database}.{place.table}"] = place
                if (old := replaced_place(place, table.parameters or {})) is not None:
                    tables[f"{place.database}.{place.table} before"] = old
                if place.format in ("parquet", "orc"):
                    columns[f"{place.database}.{place.table}"] = _columns(table)
    return Catalog(databases, tables, columns)


def read_places(run: Run, catalog: Catalog) -> Stored:
    """PLACES: all tables and partitions. Names are cut in executors, so that many of them read a large table."""
    options = run.options
    tables = {name: place for name, place in catalog.tables.items() if place.is_partitioned}
    whole = run.store("tables", lambda: pyarrow.Table.from_batches([place_batch(iter(catalog.tables.values()))]))
    rows = [{"database": place.database, "table": place.table} for place in tables.values()]
    listed = run.store("partitioned", rows, rows_a_batch=_TABLES_A_BATCH, schema=_TABLES_SCHEMA)
    of_names = _NameReader(options.connection, options.patience_seconds)
    named = run.derive("names", listed, of_names, _NAMES, rows_a_batch=_CALLS_A_BATCH, unit="batches of tables")
    sent = run.spark.sparkContext.broadcast(tables)
    of_parts = _PartitionReader(options.connection, options.patience_seconds, run.storage, sent)
    parts = run.derive("partitions", named, of_parts, PLACES, unit="batches of partitions")
    return Stored.joined([whole, parts])


class _NameReader:
    """Tables to their partitions' names, in pieces of one call."""

    def __init__(self, connection: Connection, patience_seconds: float) -> None:
        self._connection = connection
        self._patience_seconds = patience_seconds

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self._connection, self._patience_seconds) as client:
            for row in batch.to_pylist():
                yield from self._names(client, row["database"], row["table"])

    def _names(self, client: PatientClient, database: str, table: str) -> Iterator[pyarrow.RecordBatch]:
        try:
            names = iter(client.call("get_partition_names", database, table, -1))
        except NoSuchObjectException:
            return
        while some := list(islice(names, _PARTITIONS_A_CALL)):
            rows = [{"database": database, "table": table, "names": some}]
            yield pyarrow.RecordBatch.from_pylist(rows, schema=_NAMES)


class _PartitionReader:
    """Names of partitions to places."""

    def __init__(self, connection: Connection, patience_seconds: float, storage: Storage, tables: Any) -> None:
        self._connection = connection
        self._patience_seconds = patience_seconds
        self._storage = storage
        self._tables = tables

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self._connection, self._patience_seconds) as client:
            for row in batch.to_pylist():
                table = self._tables.value[f"{row['database']}.{row['table']}"]
                yield place_batch(self._places(client, table, row["names"]))

    def _places(self, client: PatientClient, table: Place, names: Sequence[str]) -> Iterator[Place]:
        try:
            found = client.call("get_partitions_by_names", table.database, table.table, list(names))
        except NoSuchObjectException:
            return
        for partition in found:
            place = partition_place(_partition_row(partition, table), table)
            if place is not None:
                place = _looked_at(place, self._storage)
                yield place
                if (old := replaced_place(place, partition.parameters or {})) is not None:
                    yield old


def place_batch(places: Iterator[Place]) -> pyarrow.RecordBatch:
    """Places as PLACES."""
    found = list(places)
    columns = (
        [place.location for place in found],
        [_encode(place) for place in found],
        [place.is_listed for place in found],
    )
    arrays = [pyarrow.array(values, of.type) for values, of in zip(columns, PLACES, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=PLACES)


def _looked_at(place: Place, storage: Storage) -> Place:
    # The top of a file system is without its slash here.
    reason = storage.refusal(f"{place.location}/") if place.is_audited else ""
    return msgspec.structs.replace(place, passed_over=reason) if reason else place


def _tables(client: PatientClient, database: str) -> Iterator[Table]:
    try:
        names = iter(client.call("get_all_tables", database))
        while some := list(islice(names, _TABLES_A_CALL)):
            yield from named_tables(client, database, some)
    except NoSuchObjectException:
        return


def _locations(database: Database) -> tuple[str, ...]:
    texts = (database.locationUri, getattr(database, "managedLocationUri", None))
    return tuple(dict.fromkeys(found for text in texts if (found := location_of(text)) is not None))


def _row(table: Table) -> TableRow:
    sd = table.sd
    serde = sd.serdeInfo if sd else None
    return TableRow(
        database=table.dbName or "",
        table=table.tableName or "",
        type=table.tableType,
        location=sd.location if sd else None,
        input_format=sd.inputFormat if sd else None,
        parameters=table.parameters or {},
        keys=tuple(Key((key.name or "").lower(), (key.type or "").lower()) for key in table.partitionKeys or ()),
        path=(serde.parameters or {}).get("path") if serde else None,
    )


def _partition_row(partition: Partition, table: Place) -> PartitionRow:
    sd = partition.sd
    return PartitionRow(
        name=make_name([key.name for key in table.keys], partition.values or []),
        location=sd.location if sd else None,
        input_format=sd.inputFormat if sd else None,
        parameters=partition.parameters or {},
    )


def _columns(table: Table) -> tuple[Column, ...]:
    fields: Sequence[FieldSchema] = (table.sd.cols if table.sd else None) or ()
    return tuple(Column((field.name or "").lower(), (field.type or "").lower()) for field in fields)
