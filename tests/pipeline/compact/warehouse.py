"""Tables with many small files, made in a gateway's warehouse."""

import random
from pathlib import Path

import pyarrow
import pyarrow.orc
import pyarrow.parquet

from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

_FORMATS = {
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    ),
    "text": (
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
}
FILES, ROWS = 6, 20


def make_table(client, name, format="parquet", *, keys=("ds",), parameters=None, **changed):
    """In the database `lake`; the table as it was stored."""
    try:
        client.call("get_database", "lake")
    except NoSuchObjectException:
        client.call("create_database", Database(name="lake"))
    input_format, output_format, serde = _FORMATS[format]
    descriptor = StorageDescriptor(
        cols=[FieldSchema("id", "bigint"), FieldSchema("note", "string")],
        inputFormat=input_format,
        outputFormat=output_format,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
        parameters={},
    )
    for field, value in changed.items():
        setattr(descriptor, field, value)
    client.call(
        "create_table",
        Table(
            dbName="lake",
            tableName=name,
            owner="ann",
            sd=descriptor,
            partitionKeys=[FieldSchema(key, "string") for key in keys],
            parameters=parameters or {},
            tableType="MANAGED_TABLE",
        ),
    )
    return client.call("get_table", "lake", name)


def add_partitions(client, table, *values):
    parts = []
    for value in values:
        sd = client.call("get_table", "lake", table.tableName).sd
        sd.location = None
        parts.append(Partition(values=[value], dbName="lake", tableName=table.tableName, sd=sd, parameters={"n": "1"}))
    request = AddPartitionsRequest("lake", table.tableName, parts, ifNotExists=False, needResult=False)
    client.call("add_partitions_req", request)


def path(location):
    return Path(location.removeprefix("file:"))


def fill(location, format="parquet", *, seed=1, files=FILES):
    """Small files with some rows each."""
    chance = random.Random(seed)
    folder = path(location)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        ids = [chance.randrange(10**6) for _ in range(ROWS)]
        notes = [chance.choice((None, "", "é", "note")) for _ in range(ROWS)]
        rows = pyarrow.table({"id": pyarrow.array(ids), "note": pyarrow.array(notes, pyarrow.string())})
        file = folder / f"part-{number}-{seed}"
        if format == "parquet":
            pyarrow.parquet.write_table(rows, file)
        elif format == "orc":
            pyarrow.orc.write_table(rows, file)
        else:
            file.write_text("".join(f"{id}\x01{note or ''}\n" for id, note in zip(ids, notes, strict=True)))


def data_files(location):
    folder = path(location)
    return sorted(one for one in folder.iterdir() if one.name[0] not in "._") if folder.exists() else []


def rows(location, format="parquet"):
    """All rows of a directory, sorted."""
    found = []
    for file in data_files(location):
        if format == "text":
            found += file.read_text().splitlines()
        else:
            table = pyarrow.parquet.read_table(file) if format == "parquet" else pyarrow.orc.read_table(file)
            found += [(row["id"], row["note"] or "") for row in table.to_pylist()]
    return sorted(found)


def partitions(client, table):
    return {one.values[0]: one for one in client.call("get_partitions", "lake", table.tableName, -1)}


def leftovers(table):
    """Files below the hidden directory of a partitioned table, and notes."""
    base = path(table.sd.location) / ".hms-compact"
    return sorted(str(one.relative_to(base)) for one in base.rglob("*") if one.is_file()) if base.exists() else []
