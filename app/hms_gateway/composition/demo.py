"""The objects of the protocol document's examples, so that the examples answer as printed there (protocol §3.1.5)."""

from typing import Final

from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.ports.store import NewPartition, Store, Transaction
from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

# Pages on the machine itself may call while --demo serves and cors_origins is not set.
ORIGINS: Final = [
    f"{scheme}://{host}:*" for scheme in ("http", "https") for host in ("localhost", "127.0.0.1", "[::1]")
]
DATABASE: Final = "hmshttptestdatabase"
TABLE: Final = "test_table"

_NAME_NODE = "hdfs://nmnode-0-0.nmnode-0-svc:9000"
_DATABASE_LOCATION = f"{_NAME_NODE}/hmshttptest/warehouse/{DATABASE}"
_SPARK_SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"name","type":"string","nullable":true,"metadata":{}},'
    '{"name":"age","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"hair_color","type":"string","nullable":true,"metadata":{}}]}'
)
_TABLE_CREATED_SECONDS = 1566250831
_PARTITIONS_CREATED_SECONDS = {"black": 1566250836, "brown": 1566250838}


def load_demo(store: Store, events: EventMaker) -> bool:
    """Store what of the demo is missing, with its events, in one unit of work; False when it was all there.

    It writes the printed values as they are, past the rules that would stamp today's times, and makes no directories.
    """
    return store.write(lambda work: _load(work, events))


def _load(work: Transaction, events: EventMaker) -> bool:
    has_changed_default = _load_default(work, events)
    return _load_table(work, events) or has_changed_default


def _load_default(work: Transaction, events: EventMaker) -> bool:
    """`default` keeps what it is as soon as anything else has happened in this catalog."""
    stored = work.database("default")
    if stored is None:
        work.insert_database(_default_database())
        work.append_event(events.create_database(_default_database()))
        return True
    if work.current_event_id() > 1 or stored.database == _default_database():
        return False
    work.update_database(stored.database_id, _default_database())
    work.append_event(events.alter_database(stored.database, _default_database()))
    return True


def _load_table(work: Transaction, events: EventMaker) -> bool:
    if work.table(DATABASE, TABLE) is not None:
        return False
    stored = work.database(DATABASE)
    if stored is None:
        database_id = work.insert_database(_database())
        work.append_event(events.create_database(_database()))
    else:
        database_id = stored.database_id
    work.insert_table(database_id, _table())
    work.append_event(events.create_table(_table()))
    table = work.table(DATABASE, TABLE)
    assert table is not None
    partitions = {f"hair_color={color}": _partition(color) for color in _PARTITIONS_CREATED_SECONDS}
    work.insert_partitions(table, [NewPartition(name, partition) for name, partition in partitions.items()])
    work.append_event(PartitionEvents(events).add(_table(), list(partitions), list(partitions.values())))
    return True


def _default_database() -> Database:
    return Database(
        name="default",
        description="Default Hive database",
        locationUri=f"{_NAME_NODE}/user/hive/warehouse",
        parameters={},
        ownerName="public",
        ownerType=int(PrincipalType.ROLE),
    )


def _database() -> Database:
    """The document shows only its name; the rest follows from its table."""
    return Database(
        name=DATABASE,
        description="Database of the MS-HMSHTTP examples",
        locationUri=_DATABASE_LOCATION,
        parameters={},
        ownerName="root",
        ownerType=int(PrincipalType.USER),
    )


def _table() -> Table:
    return Table(
        tableName=TABLE,
        dbName=DATABASE,
        owner="root",
        createTime=_TABLE_CREATED_SECONDS,
        lastAccessTime=0,
        retention=0,
        sd=_storage_descriptor(f"{_DATABASE_LOCATION}/{TABLE}"),
        partitionKeys=[FieldSchema(name="hair_color", type="string")],
        parameters={
            "owner": "testuser",
            "spark.sql.sources.schema.numPartCols": "1",
            "spark.sql.sources.schema.part.0": _SPARK_SCHEMA,
            "spark.sql.sources.schema.partCol.0": "hair_color",
            "transient_lastDdlTime": "1566250843",
            "spark.sql.statistics.numRows": "2",
            "comment": "Table Comment",
            "spark.sql.sources.schema.numParts": "1",
            "spark.sql.create.version": "2.4.64778",
            "spark.sql.statistics.totalSize": "216",
            "status": "staging",
        },
        tableType="MANAGED_TABLE",
        rewriteEnabled=False,
    )


def _partition(hair_color: str) -> Partition:
    created_seconds = _PARTITIONS_CREATED_SECONDS[hair_color]
    return Partition(
        values=[hair_color],
        dbName=DATABASE,
        tableName=TABLE,
        createTime=created_seconds,
        lastAccessTime=0,
        sd=_storage_descriptor(f"{_DATABASE_LOCATION}/{TABLE}/hair_color={hair_color}"),
        parameters={
            "transient_lastDdlTime": str(created_seconds),
            "totalSize": "108",
            "numRows": "0",
            "rawDataSize": "0",
            "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
            "numFiles": "1",
        },
    )


def _storage_descriptor(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name="name", type="string"), FieldSchema(name="age", type="int")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
            parameters={"serialization.format": "1"},
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
        storedAsSubDirectories=False,
    )
