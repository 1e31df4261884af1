"""Which tables and partitions a run looks at, and why it passes others by."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hms_gateway.metastore.vocabulary.parameters import says_true
from hms_gateway.metastore.vocabulary.table_types import is_view
from hms_gateway.pipeline.connection import named_tables
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.stats.kinds import TableColumn
from hms_gateway.rpc.structs import SerDeInfo, StorageDescriptor, Table

_TABLES_A_CALL: Final = 100
# Spark keeps the location of its own tables elsewhere, where Hive would not make a directory.
_NO_LOCATION: Final = "-__PLACEHOLDER__"
_OTHER_FORMATS: Final = ("delta", "iceberg", "hudi", "paimon")


def tables(client: PatientClient, options: JobOptions) -> Iterator[tuple[Table, str]]:
    """Each wanted table, and why it is passed by; "" for one that is not."""
    for database in client.call("get_all_databases"):
        if not options.wants(database):
            continue
        names = [name for name in client.call("get_all_tables", database) if options.wants(database, name)]
        for at in range(0, len(names), _TABLES_A_CALL):
            for table in named_tables(client, database, names[at : at + _TABLES_A_CALL]):
                yield table, passed_by(table)


def passed_by(table: Table) -> str:
    """Why a table has no statistics of its files."""
    parameters = table.parameters or {}
    if is_view(table.tableType):
        return "is a view"
    if says_true(parameters, "transactional"):
        return "is transactional: its files hold changes of rows"
    kind = parameters.get("table_type", parameters.get("spark.sql.sources.provider", "")).lower()
    if kind in _OTHER_FORMATS:
        return f"is a table of {kind}, which keeps statistics of its own"
    if parameters.get("storage_handler"):
        return "is kept by a storage handler"
    if any(parameters.get(name, "0") != "0" for name in ("skip.header.line.count", "skip.footer.line.count")):
        return "has lines in its files that are not rows (skip.header.line.count)"
    return "" if location_of(table.sd) else "has no location"


def columns_of(table: Table) -> tuple[TableColumn, ...]:
    """The columns in the files, without partition keys."""
    fields = (table.sd.cols if table.sd else None) or ()
    return tuple(TableColumn((field.name or "").lower(), (field.type or "").lower()) for field in fields)


def columns_text(columns: Sequence[TableColumn]) -> str:
    """What changes when the columns do."""
    return "\n".join(f"{column.name} {column.type}" for column in columns)


def location_of(sd: StorageDescriptor | None) -> str:
    """Where the files are; "" where that is not known."""
    if sd is None:
        return ""
    location = sd.location or ""
    return serde_of(sd).get("path", "") if not location or location.endswith(_NO_LOCATION) else location


def serde_of(sd: StorageDescriptor | None) -> dict[str, str]:
    found: SerDeInfo | None = sd.serdeInfo if sd else None
    return dict((found.parameters if found else None) or {})


def library_of(sd: StorageDescriptor | None) -> str:
    found: SerDeInfo | None = sd.serdeInfo if sd else None
    return (found.serializationLib if found else None) or ""


def fingerprint(described: Any) -> str:
    """What changes when a table or partition is made again, moved, or altered in its storage."""
    sd, parameters = described.sd, described.parameters or {}
    parts = (
        location_of(sd),
        library_of(sd),
        (sd.inputFormat if sd else None) or "",
        str(described.createTime or 0),
        parameters.get("transient_lastDdlTime", ""),
    )
    return "\n".join(parts)
