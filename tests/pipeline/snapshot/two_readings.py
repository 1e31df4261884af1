"""A catalog twice without the job's code: as its metastore answers one call after the other, and as DuckDB reads the
files of a snapshot. Both are sets of rows by kind.
"""

from contextlib import suppress
from typing import Any

from hms_gateway.rpc.structs import (
    ForeignKeysRequest,
    NoSuchObjectException,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
)

Rows = dict[str, set[tuple[Any, ...]]]

_OF_FILES = {
    "databases": "database, location, json_extract_string(object, '$.description')",
    "tables": 'database, "table", type, owner, location, map_entries(parameters)',
    "columns": 'database, "table", item, type, position, is_partition_key',
    "partitions": 'database, "table", partition, "values", location, map_entries(parameters)',
    "statistics": 'database, "table", partition, item, low, high, nulls, distinct_values',
    "constraints": """database, "table", item, json_extract_string(object, '$[0].column_name'),
        json_extract_string(object, '$[0].fkcolumn_name')""",
    "functions": "database, item, class",
    "roles": "item",
}


def by_duckdb(path: Any) -> Rows:
    import duckdb

    with duckdb.connect() as connection:
        rows = {}
        for kind, columns in _OF_FILES.items():
            query = f"SELECT {columns} FROM read_parquet(?)"
            found = connection.execute(query, [f"{path}/kind={kind}/*.parquet"]).fetchall()
            rows[kind] = {tuple(_sorted(value) for value in row) for row in found}
        return rows


def _sorted(value: Any) -> Any:
    """Lists of DuckDB in a form that sets take; entries of maps in their order."""
    if isinstance(value, list):
        entries = [tuple(one.values()) if isinstance(one, dict) else one for one in value]
        return tuple(sorted(entries) if value and isinstance(value[0], dict) else entries)
    return value


def by_metastore(client: Any) -> Rows:
    rows: Rows = {kind: set() for kind in _OF_FILES}
    for database in client.call("get_all_databases"):
        found = client.call("get_database", database)
        rows["databases"].add((database, found.locationUri, found.description))
        for name in client.call("get_all_tables", database):
            _table(client, rows, client.call("get_table", database, name))
        for name in client.call("get_functions", database, "*"):
            rows["functions"].add((database, name, client.call("get_function", database, name).className))
    rows["roles"] = {(name,) for name in client.call("get_role_names")}
    return rows


def _table(client: Any, rows: Rows, table: Any) -> None:
    at = table.dbName, table.tableName
    rows["tables"].add((*at, table.tableType, table.owner, table.sd.location, _entries(table.parameters)))
    keys = table.partitionKeys or []
    for position, column in enumerate([*table.sd.cols, *keys]):
        is_key = position >= len(table.sd.cols)
        rows["columns"].add((*at, column.name, column.type, position, is_key))
    for name in client.call("get_partition_names", *at, -1):
        found = client.call("get_partition_by_name", *at, name)
        rows["partitions"].add((*at, name, tuple(found.values), found.sd.location, _entries(found.parameters)))
        asked = PartitionsStatsRequest(*at, [column.name for column in table.sd.cols], [name])
        for one in client.call("get_partitions_statistics_req", asked).partStats.get(name, ()):
            rows["statistics"].add((*at, name, *_statistics(one)))
    for column in table.sd.cols:
        with suppress(NoSuchObjectException):
            for one in client.call("get_table_column_statistics", *at, column.name).statsObj:
                rows["statistics"].add((*at, "", *_statistics(one)))
    for key in client.call("get_primary_keys", PrimaryKeysRequest(*at)).primaryKeys:
        rows["constraints"].add((*at, f"PrimaryKey {key.pk_name}", key.column_name, None))
    for key in client.call("get_foreign_keys", ForeignKeysRequest(None, None, *at)).foreignKeys:
        rows["constraints"].add((*at, f"ForeignKey {key.fk_name}", None, key.fkcolumn_name))


def _entries(parameters: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parameters.items()))


def _statistics(one: Any) -> tuple[Any, ...]:
    figures = one.statsData.longStats
    return one.colName, str(figures.lowValue), str(figures.highValue), figures.numNulls, figures.numDVs
