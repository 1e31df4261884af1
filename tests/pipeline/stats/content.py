"""Tables over random files in a gateway or the real metastore, and what is in them."""

import random
from pathlib import Path

import pyarrow
from pyarrow import orc, parquet

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.pipeline.footers.content import HIVE, random_table

LIBRARIES = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "text": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
}
DAYS = ("2024-01-01", "a/b=c'd %é", "__HIVE_DEFAULT_PARTITION__", "2024-01-04")


def write_files(folder: Path, kind: str, source: random.Random, files: int = 2, columns=tuple(HIVE)) -> pyarrow.Table:
    """Random data files in a folder; what they hold together."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for number in range(files):
        table = random_table(source, source.choice((1, 5, 40))).select(columns)
        (parquet if kind == "parquet" else orc).write_table(table, folder / f"part-{number}.{kind}")
        tables.append(table)
    return pyarrow.concat_tables(tables)


def storage(kind: str, location: Path, columns=HIVE) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name=name, type=of, comment="") for name, of in columns.items()],
        location=f"file:{location}",
        inputFormat="org.apache.hadoop.mapred.FileInputFormat",
        outputFormat="org.apache.hadoop.mapred.FileOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(name="s", serializationLib=LIBRARIES[kind], parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def make_table(client, name, kind, location, *keys, columns=HIVE):
    client.call(
        "create_table",
        Table(
            dbName="sales",
            tableName=name,
            owner="tester",
            sd=storage(kind, location, columns),
            partitionKeys=[FieldSchema(name=key, type="string", comment="") for key in keys],
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        ),
    )


def add_partitions(client, name, kind, location, values, columns=HIVE):
    """Partitions whose directories are numbered: their names do not fit file systems."""
    parts = [
        Partition(
            values=each,
            dbName="sales",
            tableName=name,
            sd=storage(kind, location / f"p{number}", columns),
            parameters={"owned_by": "tester"},
        )
        for number, each in enumerate(values)
    ]
    client.call(
        "add_partitions_req",
        AddPartitionsRequest(dbName="sales", tblName=name, parts=parts, ifNotExists=False, needResult=False),
    )


def fill_partitioned(client, name, kind, location, source, without=()):
    """A table with a partition for each of DAYS; the data by partition name."""
    columns = {column: of for column, of in HIVE.items() if column not in without}
    make_table(client, name, kind, location, "ds", columns=columns)
    add_partitions(client, name, kind, location, [[day] for day in DAYS], columns=columns)
    folders = {make_name(["ds"], [day]): location / f"p{number}" for number, day in enumerate(DAYS)}
    return {part: write_files(folder, kind, source, columns=list(columns)) for part, folder in folders.items()}
