"""Which tables and partitions are plain enough: files of rows that every reader finds by the location alone."""

from typing import Final

from hms_gateway.metastore.vocabulary.parameters import says_true
from hms_gateway.metastore.vocabulary.table_types import FORMATS, is_view
from hms_gateway.pipeline.compact.swap import same_path
from hms_gateway.rpc.structs import StorageDescriptor, Table

PARQUET: Final = "parquet"
ORC: Final = "orc"
TEXT: Final = "text"

_FORMATS: Final = {
    FORMATS["PARQUET"].input_format: PARQUET,
    FORMATS["ORC"].input_format: ORC,
    FORMATS["TEXTFILE"].input_format: TEXT,
}
_SPARK_PROVIDERS: Final = ("", "hive", "parquet", "orc", "csv", "json", "text")
_SPARK_PROVIDER: Final = "spark.sql.sources.provider"
_SPARK_BUCKETS: Final = "spark.sql.sources.schema.numBuckets"
# Of text: lines that are not rows, and other ends of lines.
_UNSAFE_TEXT: Final = (
    "skip.header.line.count",
    "skip.footer.line.count",
    "line.delim",
    "header",
    "multiline",
    "lineSep",
)


def left_alone(table: Table) -> str:
    """Why nothing of a table is compacted, with the table as subject; empty for one that is."""
    parameters = table.parameters or {}
    provider = parameters.get(_SPARK_PROVIDER, "").lower()
    if is_view(table.tableType):
        return "is a view"
    if says_true(parameters, "transactional"):
        return "is transactional"
    if parameters.get("table_type", "").upper() == "ICEBERG" or "metadata_location" in parameters:
        return "is an Iceberg table"
    if parameters.get("storage_handler") or provider not in _SPARK_PROVIDERS:
        return f"is kept by {parameters.get('storage_handler') or provider}"
    if _SPARK_BUCKETS in parameters or _is_bucketed(table.sd):
        return "is bucketed: its files are its buckets"
    if provider and table.partitionKeys and parameters.get("spark.sql.partitionProvider") != "catalog":
        return "is read by Spark without asking for its partitions"
    return "" if table.sd and table.sd.location else "has no location"


def unsafe(sd: StorageDescriptor | None, table: Table) -> str:
    """Why a partition, or a table without any, is left out; empty for one that is not."""
    if sd is None or not sd.location:
        return "has no location"
    format = format_of(sd)
    if not format:
        return f"has the input format {sd.inputFormat}; Parquet, ORC and text are compacted"
    if _is_bucketed(sd):
        return "is bucketed"
    if sd.storedAsSubDirectories:
        return "has directories for skewed values"
    if format == TEXT:
        said = {*(table.parameters or {}), *((sd.serdeInfo.parameters if sd.serdeInfo else None) or {})}
        if named := next((name for name in _UNSAFE_TEXT if name.lower() in {each.lower() for each in said}), ""):
            return f"is text with {named}, which belongs to each file"
    path = ((sd.serdeInfo.parameters if sd.serdeInfo else None) or {}).get("path")
    if path and not table.partitionKeys and not same_path(path, sd.location):
        return "has another path for Spark than its location"
    return ""


def format_of(sd: StorageDescriptor) -> str:
    return _FORMATS.get(sd.inputFormat or "", "")


def _is_bucketed(sd: StorageDescriptor | None) -> bool:
    return sd is not None and ((sd.numBuckets or 0) > 0 or bool(sd.bucketCols))
