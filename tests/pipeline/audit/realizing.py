"""A world put into a metastore and onto this machine's disk."""

import os
import shutil
import time
from pathlib import Path

from msgspec.structs import replace

from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    EnvironmentContext,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.pipeline.audit import world as worlds
from tests.pipeline.audit.world import COLUMNS, NOW, World

_NO_COUNTING = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
_OUTPUT_FORMATS = {
    "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}
_SERDES = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
}


def local(location: str) -> Path:
    return Path(location.removeprefix("file:"))


def realize(world: World, client) -> None:
    """The catalog first: the metastore makes directories for what it is told, which the tree then replaces."""
    for name, location in world.databases.items():
        client.call("create_database", Database(name=name, locationUri=location))
    for table in world.tables.values():
        client.call("create_table_with_environment_context", table_of(table.row), _NO_COUNTING)
        made = client.call("get_table", table.row.database, table.row.table)
        counted = {name: value for name, value in made.parameters.items() if name not in ("numFiles", "totalSize")}
        changed = replace(made, parameters={**counted, **table.row.parameters})
        client.call("alter_table_with_environment_context", made.dbName, made.tableName, changed, _NO_COUNTING)
        if table.partitions:
            _add_partitions(client, table)
    write_tree(world)


def _add_partitions(client, table: worlds.Table) -> None:
    sd = client.call("get_table", table.row.database, table.row.table).sd
    parts = [partition_of(table, values, sd) for values in table.partitions]
    request = AddPartitionsRequest(
        dbName=table.row.database,
        tblName=table.row.table,
        parts=parts,
        ifNotExists=False,
        needResult=False,
        environmentContext=_NO_COUNTING,
    )
    client.call("add_partitions_req", request)


def partition_of(table: worlds.Table, values, sd: StorageDescriptor) -> Partition:
    row = table.partitions[values]
    return Partition(
        dbName=table.row.database,
        tableName=table.row.table,
        values=list(values),
        sd=replace(sd, location=row.location),
        parameters=dict(row.parameters),
    )


def table_of(row) -> Table:
    is_acid = row.parameters.get("transactional") == "true"
    path = {"path": row.path} if row.path else {}
    format = next((name for name, text in worlds.INPUT_FORMATS.items() if text == row.input_format), "")
    return Table(
        dbName=row.database,
        tableName=row.table,
        owner="tester",
        tableType=row.type,
        parameters=dict(row.parameters),
        partitionKeys=[FieldSchema(name=key.name, type=key.type, comment="") for key in row.keys],
        viewOriginalText="select 1" if row.type == "VIRTUAL_VIEW" else None,
        viewExpandedText="select 1" if row.type == "VIRTUAL_VIEW" else None,
        sd=StorageDescriptor(
            cols=[FieldSchema(name=name, type=type, comment="") for name, type in COLUMNS],
            location=row.location,
            inputFormat=row.input_format,
            outputFormat=_OUTPUT_FORMATS.get(row.input_format or ""),
            numBuckets=1 if is_acid else -1,
            bucketCols=["id"] if is_acid else [],
            sortCols=[],
            parameters={},
            serdeInfo=SerDeInfo(name="s", serializationLib=_SERDES.get(format), parameters=path),
        ),
    )


def write_tree(world: World) -> None:
    """The directories and files of a world, and nothing else, with times as if the world were of now."""
    shift = time.time() - NOW
    for top in (world.root, f"{world.root}-far"):
        shutil.rmtree(local(top), ignore_errors=True)
        local(top).mkdir(parents=True)
    for folder in world.folders:
        local(folder).mkdir(parents=True, exist_ok=True)
    for location, file in world.files.items():
        path = local(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        os.utime(path, (file.changed + shift,) * 2)
    for top in (world.root, f"{world.root}-far"):
        for folder, _, _ in os.walk(local(top), topdown=False):
            os.utime(folder, (worlds.OLD + shift,) * 2)
