"""A catalog in a SQLite file, a directory for its data, and the services that tests of partitions drive."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hms_gateway.catalog.partitions.reads import PartitionList
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store, StoredTable
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Struct,
    Table,
)
from hms_gateway.rpc.wire import tjson_codec as tjson
from hms_gateway.storage.files.directories import Directories
from tests.support.kept_store import empty_store
from tests.support.manual_clock import ManualClock
from tests.support.partition_calls import PartitionCalls

NOW = 1_700_000_000
SALES = TableName("shop", "sales")


def to_tjson(struct: Struct) -> bytes:
    return tjson.encode_value(StructType(struct.definition.name), struct)


@dataclass
class World:
    store: Store
    files: Directories
    clock: ManualClock
    settings: MetastoreSettings
    root: Path

    def __post_init__(self) -> None:
        self.calls = PartitionCalls(self.store, self.files, self.clock, self.settings, to_tjson)

    def location(self, *parts: str) -> str:
        return "/".join([f"file:{self.root}", *parts])

    def path(self, *parts: str) -> Path:
        return self.root.joinpath(*parts)

    def with_settings(self, **changes: Any) -> "World":
        """The same catalog under other settings."""
        return World(self.store, self.files, self.clock, MetastoreSettings(**changes), self.root)

    def make_table(self, name: str = "sales", *, keys: str = "ds:string,hr:int", **changes: Any) -> Table:
        """A table in database `shop` with its directory, unless it is a view."""
        table = Table(
            tableName=name,
            dbName="shop",
            owner="owner",
            createTime=NOW,
            lastAccessTime=0,
            retention=0,
            sd=self.descriptor(self.location("shop.db", name)),
            partitionKeys=[FieldSchema(*key.split(":")) for key in keys.split(",") if key],
            parameters={"transient_lastDdlTime": str(NOW)},
            tableType="MANAGED_TABLE",
            rewriteEnabled=False,
        )
        for field, value in changes.items():
            setattr(table, field, value)
        if table.tableType != "VIRTUAL_VIEW":
            self.path("shop.db", name).mkdir(parents=True, exist_ok=True)

        def insert(transaction: Any) -> None:
            database = transaction.database("shop")
            database_id = database.database_id if database else transaction.insert_database(self.database())
            transaction.insert_table(database_id, table)

        self.store.write(insert)
        return table

    def database(self) -> Database:
        return Database(name="shop", description="", locationUri=self.location("shop.db"), parameters={})

    def descriptor(self, location: str | None = None) -> StorageDescriptor:
        return StorageDescriptor(
            cols=[FieldSchema("id", "bigint"), FieldSchema("note", "string", "free text")],
            location=location,
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            compressed=False,
            numBuckets=-1,
            serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
            skewedInfo=SkewedInfo([], [], {}),
            storedAsSubDirectories=False,
        )

    def partition(self, *values: str, table: str = "sales", **changes: Any) -> Partition:
        """A partition as a client sends it."""
        partition = Partition(
            values=list(values),
            dbName="shop",
            tableName=table,
            createTime=0,
            lastAccessTime=0,
            sd=self.descriptor(),
            parameters={},
        )
        for field, value in changes.items():
            setattr(partition, field, value)
        return partition

    def add(self, *values: str, table: str = "sales", **changes: Any) -> Partition:
        return self.calls.add(self.partition(*values, table=table, **changes))

    def table(self, name: str = "sales") -> StoredTable:
        found = self.store.read(lambda snapshot: snapshot.table("shop", name))
        assert found is not None
        return found

    def names(self, table: str = "sales") -> list[str]:
        found = self.calls.names(TableName("shop", table), -1)
        assert isinstance(found, list)
        return found

    def events(self, event_type: str | None = None) -> list[dict[str, Any]]:
        """The messages of the events so far, oldest first."""
        stored = self.store.read(lambda snapshot: snapshot.events_after(0))  # type: ignore[arg-type]
        return [json.loads(one.event.message) for one in stored if event_type in (None, one.event.event_type)]


@contextmanager
def partition_world(directory: Path) -> Iterator[World]:
    """A world with database `shop` and the empty table `shop.sales`, partitioned by ds string and hr int."""
    files = Directories(roots=[f"file:{directory}"])
    with empty_store() as (store, clock):
        world = World(store, files, clock, MetastoreSettings(), directory / "warehouse")
        world.root.mkdir()
        world.make_table()
        yield world


def structs(found: PartitionList) -> list[Any]:
    """The partitions of a list that may still be encoded."""
    if isinstance(found, list):
        return found
    try:
        return [partition for chunk in found.struct_chunks() for partition in chunk]
    finally:
        found.close()


def values_of(found: PartitionList) -> list[list[str]]:
    return [partition.values for partition in structs(found)]
