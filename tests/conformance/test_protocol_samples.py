"""The sample messages of the protocol document (protocol §3.1.5), bodies as printed there."""

import json
from pathlib import Path

import pytest

from hms_gateway.rpc.structs import (
    METHODS,
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits

SAMPLES = Path(__file__).with_name("samples")
CODECS = make_codecs(Limits())
DATABASE = "hmshttptestdatabase"
WAREHOUSE = "hdfs://nmnode-0-0.nmnode-0-svc:9000/hmshttptest/warehouse/hmshttptestdatabase/test_table"

ARGUMENTS = {
    "get_all_databases": (),
    "get_databases": ("default*",),
    "get_database": ("default",),
    "get_all_tables": ("default",),
    "get_tables": ("default", "*"),
    "get_table": (DATABASE, "test_table"),
    "get_tables_by_type": (DATABASE, ".*", "MANAGED_TABLE"),
    "get_partition_names": (DATABASE, "test_table", 10),
    "get_partitions": (DATABASE, "test_table", 10),
}


def descriptor(location):
    return StorageDescriptor(
        cols=[FieldSchema("name", "string"), FieldSchema("age", "int")],
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
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )


def column(name, type):
    return {"name": name, "type": type, "nullable": True, "metadata": {}}


SPARK_SCHEMA = {
    "type": "struct",
    "fields": [column("name", "string"), column("age", "integer"), column("hair_color", "string")],
}
TABLE = Table(
    tableName="test_table",
    dbName=DATABASE,
    owner="root",
    createTime=1566250831,
    lastAccessTime=0,
    retention=0,
    sd=descriptor(WAREHOUSE),
    partitionKeys=[FieldSchema("hair_color", "string")],
    parameters={
        "owner": "testuser",
        "spark.sql.sources.schema.numPartCols": "1",
        "spark.sql.sources.schema.part.0": json.dumps(SPARK_SCHEMA, separators=(",", ":")),
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


def partition(color, created):
    return Partition(
        values=[color],
        dbName=DATABASE,
        tableName="test_table",
        createTime=created,
        lastAccessTime=0,
        sd=descriptor(f"{WAREHOUSE}/hair_color={color}"),
        parameters={
            "transient_lastDdlTime": str(created),
            "totalSize": "108",
            "numRows": "0",
            "rawDataSize": "0",
            "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
            "numFiles": "1",
        },
    )


RESULTS = {
    "get_all_databases": ["default", DATABASE],
    "get_databases": ["default"],
    "get_database": Database(
        name="default",
        description="Default Hive database",
        locationUri="hdfs://nmnode-0-0.nmnode-0-svc:9000/user/hive/warehouse",
        parameters={},
        ownerName="public",
        ownerType=2,
    ),
    "get_all_tables": [],
    "get_tables": [],
    "get_table": TABLE,
    "get_tables_by_type": ["test_table"],
    "get_partition_names": ["hair_color=black", "hair_color=brown"],
    "get_partitions": [partition("black", 1566250836), partition("brown", 1566250838)],
}


def sample(method, kind):
    return (SAMPLES / f"{method}.{kind}.tjson").read_bytes()


def printed_variants(body):
    """The same message with the white space the document's larger samples have, and more."""
    closed = body if body.endswith(b"]") else body + b"]"
    message = json.loads(closed)
    yield body
    yield closed
    yield closed + b"\n"
    yield json.dumps(message).encode()
    yield json.dumps(message, indent=2, separators=(" ,", " : ")).encode()
    yield b"\xef\xbb\xbf\r\n" + json.dumps(message, indent="\t").replace("\n", "\r\n").encode()


def test_every_sample_is_here():
    assert sorted(path.name for path in SAMPLES.iterdir()) == sorted(
        f"{method}.{kind}.tjson" for method in ARGUMENTS for kind in ("request", "reply")
    )


@pytest.mark.parametrize("method", ARGUMENTS)
def test_requests_are_read_as_printed(method):
    for body in printed_variants(sample(method, "request")):
        codec = CODECS.sniff(body)
        message = codec.read_message(body)
        assert message[:3] == (method, MessageType.CALL, 1)
        struct_class = METHODS[method].arguments
        assert codec.decode(struct_class, message.payload) == struct_class(*ARGUMENTS[method])


@pytest.mark.parametrize("method", RESULTS)
def test_replies_are_read_as_printed(method):
    for body in printed_variants(sample(method, "reply")):
        message = CODECS.tjson.read_message(body)
        assert message[:3] == (method, MessageType.REPLY, 1)
        struct_class = METHODS[method].result
        assert CODECS.tjson.decode(struct_class, message.payload) == struct_class(success=RESULTS[method])


@pytest.mark.parametrize("method", RESULTS)
def test_replies_are_written_as_printed(method):
    before, after = CODECS.tjson.envelope(method, MessageType.REPLY, 1)
    payload = CODECS.tjson.encode(METHODS[method].result(success=RESULTS[method]))
    assert before + payload + after == sample(method, "reply")


def test_one_request_is_printed_without_its_last_bracket():
    assert sample("get_table", "request").endswith(b"}}")
