"""Tables of the metastore as Iceberg's HiveCatalog writes and reads them: parameters, columns, the pointer."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hms_gateway.iceberg.json_values import Json, count, needed, optional, read_by_name
from hms_gateway.iceberg.metadata import current_schema, current_snapshot, with_id
from hms_gateway.iceberg.schemas import hive_type
from hms_gateway.metastore.vocabulary.table_types import (
    EXTERNAL_KEY,
    EXTERNAL_PURGE_KEY,
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE_KEY,
    TRANSACTIONAL_KEY,
    TableType,
)
from hms_gateway.rpc.structs import FieldSchema, SerDeInfo, StorageDescriptor, Table

TABLE: Final = "ICEBERG"
VIEW: Final = "ICEBERG-VIEW"
OWNER: Final = "hive.metastore.table.owner"
# Longer texts are left out: metastores bound parameters (iceberg.hive.table-property-max-size).
_TEXT_CHARACTERS_MAX: Final = 32_672
_HMS_KEYS: Final = {"gc.enabled": EXTERNAL_PURGE_KEY}
# What a table's properties do not reach: the row's own.
_RESERVED: Final = frozenset(
    {*(OWNER, EXTERNAL_KEY, TABLE_TYPE_KEY, METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, TRANSACTIONAL_KEY), "uuid"}
)
_SERDE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_INPUT: Final = "org.apache.hadoop.mapred.FileInputFormat"
_OUTPUT: Final = "org.apache.hadoop.mapred.FileOutputFormat"
_STATISTICS: Final = {"total-data-files": "numFiles", "total-records": "numRows", "total-files-size": "totalSize"}
_VIEW_SQL: Final = "hive"


def kind_of(table: Table) -> str:
    """TABLE or VIEW for a row of Iceberg's, whatever its spelling, else ""."""
    kind = (table.parameters or {}).get(TABLE_TYPE_KEY, "").upper()
    return kind if kind in (TABLE, VIEW) else ""


def pointer(table: Table) -> str | None:
    """Where the metadata file of a row lies."""
    return (table.parameters or {}).get(METADATA_LOCATION)


def new_row(kind: str, db_name: str, name: str, owner: str, location: str, metadata: Json) -> Table:
    """The row of a table or view that is made."""
    is_table = kind == TABLE
    row = Table(
        dbName=db_name,
        tableName=name,
        owner=metadata["properties"].get(OWNER, owner),
        tableType=(TableType.EXTERNAL_TABLE if is_table else TableType.VIRTUAL_VIEW).value,
        parameters={TABLE_TYPE_KEY: kind, **({EXTERNAL_KEY: "TRUE"} if is_table else {})},
        partitionKeys=[],
        retention=0,
    )
    return with_metadata(kind, row, None, location, metadata)


def with_metadata(kind: str, row: Table, base: Json | None, location: str, metadata: Json) -> Table:
    """The row that points to the metadata file at `location`. `base` is the metadata that it points to now."""
    return (_with_table if kind == TABLE else _with_view)(row, base, location, metadata)


@read_by_name()
def _with_table(row: Table, base: Json | None, location: str, metadata: Json) -> Table:
    parameters = _with_pointer(row, base, location, metadata, needed(metadata, "table-uuid", str))
    parameters.pop("storage_handler", None)
    snapshot = current_snapshot(metadata)
    summary: Mapping[str, str] = {} if snapshot is None else snapshot.get("summary") or {}
    # Readers take them for numbers, and the texts of other writers have no bounds.
    parameters |= {key: summary[name] for name, key in _STATISTICS.items() if count(summary.get(name)) is not None}
    if snapshot is not None:
        parameters["current-snapshot-id"] = str(snapshot["snapshot-id"])
        parameters["current-snapshot-timestamp-ms"] = str(snapshot["timestamp-ms"])
        _put(parameters, "current-snapshot-summary", summary)
    schema = current_schema(metadata)
    _put(parameters, "current-schema", schema)
    spec = with_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    if spec and spec["fields"]:
        _put(parameters, "default-partition-spec", spec)
    order = with_id(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"])
    if order and order["fields"]:
        _put(parameters, "default-sort-order", order)
    return msgspec.structs.replace(row, parameters=parameters, sd=_descriptor(schema, metadata["location"]))


@read_by_name()
def _with_view(row: Table, base: Json | None, location: str, metadata: Json) -> Table:
    """The row of a view. Its text is that for Hive, or its first."""
    parameters = _with_pointer(row, base, location, metadata, needed(metadata, "view-uuid", str))
    version = with_id(metadata["versions"], "version-id", metadata["current-version-id"]) or {}
    schema = with_id(metadata["schemas"], "schema-id", version.get("schema-id", 0)) or {"fields": []}
    _put(parameters, "current-schema", schema)
    texts = [each for each in version.get("representations", ()) if each.get("type") == "sql"]
    sql = next((needed(each, "sql", str) for each in texts if each.get("dialect", "").lower() == _VIEW_SQL), None)
    sql = sql if sql is not None or not texts else needed(texts[0], "sql", str)
    return msgspec.structs.replace(
        row,
        parameters=parameters,
        sd=_descriptor(schema, metadata["location"]),
        viewOriginalText=sql,
        viewExpandedText=sql,
    )


def _with_pointer(row: Table, base: Json | None, location: str, metadata: Json, uuid: str) -> dict[str, str]:
    """The row's parameters with the metadata's properties and its place; texts about its contents are left out."""
    parameters = dict(row.parameters or {})
    before = pointer(row)
    for key in () if base is None else base["properties"]:
        if key not in metadata["properties"] and key not in _RESERVED:
            parameters.pop(_HMS_KEYS.get(key, key), None)
    parameters |= {
        _HMS_KEYS.get(key, key): each for key, each in metadata["properties"].items() if key not in _RESERVED
    }
    for key in (
        *("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary", "current-schema"),
        *("default-partition-spec", "default-sort-order"),
    ):
        parameters.pop(key, None)
    parameters |= {"uuid": uuid, METADATA_LOCATION: location}
    if before:
        parameters[PREVIOUS_METADATA_LOCATION] = before
    return parameters


def _put(parameters: dict[str, str], key: str, value: Any) -> None:
    text = msgspec.json.encode(value).decode()
    if len(text) <= _TEXT_CHARACTERS_MAX:
        parameters[key] = text


def _descriptor(schema: Json, location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[
            FieldSchema(
                name=needed(each, "name", str), type=hive_type(each["type"]), comment=optional(each, "doc", str) or ""
            )
            for each in schema["fields"]
        ],
        location=location,
        inputFormat=_INPUT,
        outputFormat=_OUTPUT,
        compressed=False,
        numBuckets=0,
        serdeInfo=SerDeInfo(serializationLib=_SERDE, parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
