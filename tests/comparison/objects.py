"""The structs that scripts and random calls send."""

from collections.abc import Iterable, Sequence
from typing import Any

from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
LAZY_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"

Columns = Iterable[tuple[str, str]]
SOME_COLUMNS = (("id", "bigint"), ("name", "string"))
SOME_KEYS = (("ds", "string"), ("hr", "int"))


def columns(pairs: Columns) -> list[FieldSchema]:
    return [FieldSchema(name, kind) for name, kind in pairs]


def database(name: str | None, **fields: Any) -> Database:
    return Database(name=name, **fields)


def descriptor(pairs: Columns = SOME_COLUMNS, **fields: Any) -> StorageDescriptor:
    return StorageDescriptor(
        **{
            "cols": columns(pairs),
            "inputFormat": TEXT_INPUT,
            "outputFormat": TEXT_OUTPUT,
            "compressed": False,
            "numBuckets": -1,
            "serdeInfo": SerDeInfo(None, LAZY_SERDE, {"serialization.format": "1"}),
            "bucketCols": [],
            "sortCols": [],
            "parameters": {},
            **fields,
        }
    )


def table(
    db_name: str | None,
    name: str | None,
    keys: Columns = (),
    pairs: Columns = SOME_COLUMNS,
    *,
    location: str | None = None,
    **fields: Any,
) -> Table:
    return Table(
        **{
            "tableName": name,
            "dbName": db_name,
            "owner": "somebody",
            "createTime": 0,
            "lastAccessTime": 0,
            "retention": 0,
            "sd": descriptor(pairs, location=location),
            "partitionKeys": columns(keys),
            "parameters": {},
            "tableType": "MANAGED_TABLE",
            **fields,
        }
    )


def view(db_name: str, name: str, **fields: Any) -> Table:
    texts = {"viewOriginalText": "select 1", "viewExpandedText": "select 1 as id"}
    return table(db_name, name, **{"tableType": "VIRTUAL_VIEW", **texts, **fields})


def external(db_name: str, name: str, keys: Columns = (), **fields: Any) -> Table:
    marked = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
    return table(db_name, name, keys, **{**marked, **fields})


def partition(
    db_name: str | None,
    tbl_name: str | None,
    values: Sequence[str] | None,
    pairs: Columns = SOME_COLUMNS,
    *,
    location: str | None = None,
    **fields: Any,
) -> Partition:
    return Partition(
        **{
            "values": None if values is None else list(values),
            "dbName": db_name,
            "tableName": tbl_name,
            "createTime": 0,
            "lastAccessTime": 0,
            "sd": descriptor(pairs, location=location),
            "parameters": {},
            **fields,
        }
    )
