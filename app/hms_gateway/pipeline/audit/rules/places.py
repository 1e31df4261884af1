"""Tables and partitions of the catalog as places: whose files are in their directories, and in which format."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.metastore.vocabulary.table_types import is_external, is_transactional, is_view
from hms_gateway.pipeline.audit.rules.values import Key, Place, Storage, location_of

# Spark's marks: a table that Hive cannot read has its real location among the serde's parameters.
_PROVIDER: Final = "spark.sql.sources.provider"
_PARTITION_COLUMNS: Final = "spark.sql.sources.schema.numPartCols"
_NO_LOCATION: Final = "-__PLACEHOLDER__"
# Job `compact` notes here which directory it has left.
_REPLACES: Final = "hms.compact.replaces"
_FILE_PROVIDERS: Final = {
    "hive": "",
    "parquet": "parquet",
    "orc": "orc",
    "avro": "avro",
    "csv": "text",
    "json": "text",
    "text": "text",
    "xml": "text",
}
_LOGGED_PROVIDERS: Final = frozenset({"iceberg", "delta", "hudi"})
_FORMATS: Final = (
    ("parquet", "parquet"),
    ("orc", "orc"),
    ("avro", "avro"),
    ("sequencefile", "sequence"),
    ("rcfile", "rcfile"),
    ("textinputformat", "text"),
)
_LOGGED_HANDLERS: Final = ("iceberg", "hudi", "hoodie", "delta")


class TableRow(msgspec.Struct, frozen=True):
    """What is read of a table."""

    database: str
    table: str
    type: str | None
    location: str | None
    input_format: str | None
    parameters: Mapping[str, str]
    keys: tuple[Key, ...] = ()
    path: str | None = None


class PartitionRow(msgspec.Struct, frozen=True):
    """What is read of a partition."""

    name: str
    location: str | None
    input_format: str | None
    parameters: Mapping[str, str]


def table_place(row: TableRow, bases: Sequence[str], is_audited: bool = True) -> Place | None:
    """Where a table lies; None for what has no location, such as views. `bases` are the locations of its database."""
    location = location_of(row.path if (row.location or "").endswith(_NO_LOCATION) else row.location)
    if location is None or is_view(row.type):
        return None
    is_managed = not is_external(row.parameters)
    return Place(
        database=row.database,
        table=row.table,
        location=location,
        storage=storage_of(row),
        is_managed=is_managed,
        keys=row.keys,
        format=format_of(row.input_format, row.parameters),
        base=tuple(bases) if is_managed else (),
        has_branches=_PARTITION_COLUMNS in row.parameters and not row.keys,
        num_files=_count(row.parameters, "numFiles"),
        total_bytes=_count(row.parameters, "totalSize"),
        is_audited=is_audited,
    )


def partition_place(row: PartitionRow, table: Place) -> Place | None:
    """Where a partition lies; None where its location cannot be used."""
    location = location_of(row.location)
    if location is None:
        return None
    is_of_hive = table.format == _format_of_hive(row.input_format) or not row.input_format
    return msgspec.structs.replace(
        table,
        location=location,
        partition=row.name,
        values=tuple(name_to_values(row.name)),
        format=table.format if is_of_hive or table.format == "text" else _format_of_hive(row.input_format),
        base=(table.location,),
        num_files=_count(row.parameters, "numFiles"),
        total_bytes=_count(row.parameters, "totalSize"),
    )


def replaced_place(place: Place, parameters: Mapping[str, str]) -> Place | None:
    """The directory that a compaction has left, and will remove: it belongs to the place, which lies elsewhere now."""
    location = location_of(parameters.get(_REPLACES)) if _REPLACES in parameters else None
    if location is None or location == place.location:
        return None
    return msgspec.structs.replace(place, location=location, storage=Storage.NONE, keys=(), is_audited=False)


def storage_of(row: TableRow) -> Storage:
    """Who decides which files belong to the table."""
    provider = row.parameters.get(_PROVIDER, "").lower()
    handler = row.parameters.get("storage_handler", "").lower()
    kind = row.parameters.get("table_type", "").lower()
    words = (provider.rpartition(".")[2], kind, "hudi" if "hudi" in (row.input_format or "").lower() else "")
    if any(word in _LOGGED_PROVIDERS for word in words) or any(word in handler for word in _LOGGED_HANDLERS):
        return Storage.LOGGED
    if handler or (provider and provider not in _FILE_PROVIDERS):
        return Storage.NONE
    return Storage.ACID if is_transactional(row.parameters) else Storage.PLAIN


def format_of(input_format: str | None, parameters: Mapping[str, str]) -> str:
    """The format of a table's files: what Spark says, else what Hive's input format means; empty if unknown."""
    return _FILE_PROVIDERS.get(parameters.get(_PROVIDER, "").lower(), "") or _format_of_hive(input_format)


def _format_of_hive(input_format: str | None) -> str:
    name = (input_format or "").lower()
    return next((format for word, format in _FORMATS if word in name), "")


def _count(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name) or ""
    return int(text) if text.isdecimal() and text.isascii() else None
