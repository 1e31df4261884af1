"""What a job's options `only` and `where` name in a metastore."""

from hms_gateway.metastore.vocabulary.partition_names import escape
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.pipeline.jobs.only import Only
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.rpc.structs import MetaException, PartitionValuesRequest, Table


def check_only(options: JobOptions, metastore: Connection | None = None) -> None:
    """Refuse patterns of `only` that match no table of the metastore (the job's own, unless another one is given).

    A resumed run is not asked: its tables may be gone since. Raises UsageRefused, and what PatientClient raises.
    """
    if options.resume or not options.only:
        return
    with PatientClient(metastore or options.connection, options.patience_seconds) as client:
        databases = [name for name in client.call("get_all_databases") if options.wants(name)]
        tables = [(name, table) for name in databases for table in client.call("get_all_tables", name)]
    for pattern in options.only:
        alone = Only((pattern,))
        if not any(alone.wants(database, table) for database, table in tables):
            raise UsageRefused(f"--only {pattern!r} matches no table", "write DB.TABLE, with * for any text")


def partition_names(client: PatientClient, table: Table, where: str) -> list[str]:
    """The partitions that satisfy a filter (docs/filters.md); all of them without one.

    Raises UsageRefused when the text is not a filter of the table, NoSuchObjectException when the table is gone.
    """
    if not where:
        names: list[str] = client.call("get_partition_names", table.dbName, table.tableName, -1)
        return names
    request = PartitionValuesRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        partitionKeys=table.partitionKeys,
        applyDistinct=False,
        filter=where,
    )
    try:
        found = client.call("get_partition_values", request).partitionValues
    except MetaException as refused:
        text = f"--where {where!r} is not a filter of {table.dbName}.{table.tableName}"
        raise UsageRefused(f"{text}: {refused.message}", "name the tables it is for with --only") from refused
    keys = [escape(key.name or "") for key in table.partitionKeys or ()]
    # A gateway gives values as they are in names, escaped.
    return ["/".join(f"{key}={value}" for key, value in zip(keys, row.row, strict=True)) for row in found]
