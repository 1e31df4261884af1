"""Databases, tables and partitions to store, and the short ways in and out that the tests share."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from hms_gateway.metastore.filters.binding import BoundNode, bind
from hms_gateway.metastore.filters.grammar import parse_filter
from hms_gateway.metastore.ports.store import NewPartition, Selection, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import (
    Database,
    EncodedList,
    FieldSchema,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.wire.tjson_codec import decode_value
from hms_gateway.storage.writing.store import SqlStore

TABLE_LOCATION = "file:/warehouse/sales.db/orders"


def database(name: str = "sales", **fields: Any) -> Database:
    return Database(name=name, locationUri=f"file:/warehouse/{name}.db", parameters={}, **fields)


def descriptor(location: str | None = TABLE_LOCATION, **fields: Any) -> StorageDescriptor:
    return StorageDescriptor(
        **{
            "cols": [FieldSchema("id", "bigint", "the id"), FieldSchema("name", "string")],
            "location": location,
            "inputFormat": "an.InputFormat",
            "outputFormat": "an.OutputFormat",
            "compressed": False,
            "numBuckets": -1,
            "serdeInfo": SerDeInfo(serializationLib="a.SerDe", parameters={"serialization.format": "1"}),
            "bucketCols": [],
            "sortCols": [],
            "parameters": {},
            "skewedInfo": SkewedInfo([], [], {}),
            "storedAsSubDirectories": False,
            **fields,
        }
    )


def keys(*types: str) -> list[FieldSchema]:
    """Partition keys k0, k1, … of these types."""
    return [FieldSchema(f"k{number}", kind) for number, kind in enumerate(types)]


def table(name: str = "orders", db_name: str = "sales", **fields: Any) -> Table:
    return Table(
        **{
            "tableName": name,
            "dbName": db_name,
            "owner": "nobody",
            "createTime": 1_700_000_000,
            "lastAccessTime": 0,
            "retention": 0,
            "sd": descriptor(),
            "partitionKeys": keys("string", "int"),
            "parameters": {"transient_lastDdlTime": "1700000000"},
            "tableType": "MANAGED_TABLE",
            "rewriteEnabled": False,
            **fields,
        }
    )


def partition(of: Table, values: Sequence[str], **fields: Any) -> NewPartition:
    name = make_name([key.name or "" for key in of.partitionKeys or []], values)
    assert of.sd is not None
    base = of.sd.location
    stored = Partition(
        **{
            "values": list(values),
            "dbName": of.dbName,
            "tableName": of.tableName,
            "createTime": 1_700_000_001,
            "lastAccessTime": 0,
            "sd": descriptor(None if base is None else f"{base}/{name}"),
            "parameters": {"numRows": "3"},
            **fields,
        }
    )
    return NewPartition(name, stored)


def create(store: SqlStore, new: Table | None = None, values: Iterable[Sequence[str]] = ()) -> StoredTable:
    """Store the table, in a database of its own name if need be, with partitions of these values."""
    wanted = table() if new is None else new
    db_name, tbl_name = wanted.dbName or "", wanted.tableName or ""

    def work(transaction: Transaction) -> None:
        found = transaction.database(db_name)
        database_id = transaction.insert_database(database(db_name)) if found is None else found.database_id
        transaction.insert_table(database_id, wanted)
        stored = transaction.table(db_name, tbl_name)
        assert stored is not None
        transaction.insert_partitions(stored, [partition(wanted, of_one) for of_one in values])

    store.write(work)
    return get(store, db_name, tbl_name)


def get(store: SqlStore, db_name: str = "sales", tbl_name: str = "orders") -> StoredTable:
    found = store.read(lambda snapshot: snapshot.table(db_name, tbl_name))
    assert found is not None
    return found


def names(store: SqlStore, of: StoredTable, selection: Selection | None = None) -> list[str]:
    return store.read(lambda snapshot: snapshot.partition_names(of, selection or Selection()))


def locations(store: SqlStore, of: StoredTable) -> list[str | None]:
    found = store.read(lambda snapshot: snapshot.partitions(of, Selection()))
    return [None if stored.partition.sd is None else stored.partition.sd.location for stored in found]


def bound(text: str, of: StoredTable) -> BoundNode:
    parsed = parse_filter(text)
    assert parsed is not None
    return bind(parsed, [(key.name or "", key.type or "") for key in of.table.partitionKeys or []])


def read_tjson(encoded: EncodedList) -> list[Partition]:
    """The list's TJSON, read back."""
    pieces = msgspec.json.decode(b"[" + b",".join(encoded.tjson_chunks()) + b"]")
    return [decode_value(StructType("Partition"), msgspec.json.encode(piece)) for piece in pieces]


def read_structs(encoded: EncodedList) -> list[Any]:
    return [struct for chunk in encoded.struct_chunks() for struct in chunk]
