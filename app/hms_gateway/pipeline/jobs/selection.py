"""Which partitions of a table a job's option `where` names."""

from hms_gateway.metastore.vocabulary.partition_names import escape
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.structs import MetaException, PartitionValuesRequest, Table


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
