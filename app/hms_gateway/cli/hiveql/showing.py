"""SHOW and DESCRIBE of databases, tables, partitions, columns, functions, properties."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    CommandRefused,
    PartitionSpec,
    QualifiedName,
    ResultRows,
    ShellState,
    all_columns,
    keys_of,
    partition_names,
    partition_values,
    statement,
    table_of,
    typed_keys,
)
from hms_gateway.iceberg.json_values import count
from hms_gateway.metastore.filters.hiveql_condition import divided_condition
from hms_gateway.metastore.vocabulary.create_text import create_database_text, create_table_text
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.texts import bound_text, time_text
from hms_gateway.rpc.structs import (
    FieldSchema,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.structs.catalogs import beside, marked, shown_key

_LIMIT_MAX: Final = 32_767
# The most that a gateway answers.
_ENTRIES_MAX: Final = 10_000
_COUNTED: Final = ("added-records", "deleted-records", "total-records", "total-data-files", "total-files-size")
# Names of Hive and Spark.
_STATISTICS: Final = (
    ("num_nulls", "numNulls"), ("distinct_count", "numDVs"), ("avg_col_len", "avgColLen"), ("max_col_len", "maxColLen"),
    ("num_trues", "numTrues"), ("num_falses", "numFalses"),
)  # fmt: skip
_Row = tuple[Cell, Cell, Cell]
_COLUMNS: Final = ("col_name", "data_type", "comment")


@statement
def show_databases(state: ShellState, pattern: str = "*", catalog: str = "") -> ResultRows:
    """`catalog` is empty for the one of the current database."""
    around = marked(catalog, "") if catalog else state.database
    return _names("database_name", state.call("get_databases", beside(around, pattern)))


@statement
def show_catalogs(state: ShellState) -> ResultRows:
    return _names("catalog_name", state.call("get_catalogs").names)


@statement
def show_tables(state: ShellState, database: str, pattern: str = "*", kind: str | None = None) -> ResultRows:
    """`kind` is a table type, None for all."""
    if kind is None:
        found = state.call("get_tables", database, pattern)
    else:
        found = state.call("get_tables_by_type", database, pattern, kind)
    if not found:
        check_database(state, database)
    return _names("tab_name", found)


@statement
def show_partitions(
    state: ShellState,
    name: QualifiedName,
    spec: PartitionSpec = (),
    condition: str = "",
    limit: int | None = None,
    condition_begin: int = 0,
) -> ResultRows:
    """`condition` is the one of WHERE, which begins at `condition_begin` of the text."""
    if condition:
        table = state.table(name)
        keys = keys_of(table)
        with counted_from(condition_begin):
            text, checks = divided_condition(condition, typed_keys(table))
        wanted = -1 if checks or limit is None or limit > _LIMIT_MAX else limit
        listed = state.call("get_partitions_by_filter", *name, text, wanted)
        fitting = (each for each in listed if all(check.fits(each.values[check.place]) for check in checks))
        found = [make_name(keys, each.values) for each in fitting]
    elif spec:
        found = partition_names(state, name, spec)
    else:
        if not keys_of(state.table(name)):
            raise CommandRefused(f"table {name} is not partitioned")
        wanted = -1 if limit is None or limit > _LIMIT_MAX else limit
        found = state.call("get_partition_names", *name, wanted)
    return _names("partition", found[:limit])


@statement
def show_columns(state: ShellState, name: QualifiedName, pattern: str = "*") -> ResultRows:
    names = [column.name or "" for column in all_columns(state.table(name))]
    patterns = pattern.lower().split("|")
    return _names("field", [each for each in names if any(fnmatchcase(each, pattern) for pattern in patterns)])


@statement
def show_functions(state: ShellState, database: str | None, pattern: str = "*") -> ResultRows:
    """`database` is None for all."""
    databases = [database] if database else _all_databases(state)
    found = ((each, name) for each in databases for name in state.call("get_functions", each, pattern))
    return _names("function_name", (f"{shown_key(each)}.{name}" for each, name in found))


@statement
def show_table_properties(state: ShellState, name: QualifiedName, key: str | None = None) -> ResultRows:
    parameters = state.table(name).parameters or {}
    if key is not None:
        if key not in parameters:
            raise CommandRefused(f"table {name} does not have the property {key}")
        parameters = {key: parameters[key]}
    return ResultRows(("prpt_name", "prpt_value"), sorted(parameters.items()))


@statement
def show_snapshots(state: ShellState, name: QualifiedName, limit: int | None = None) -> ResultRows:
    """The snapshots of an Iceberg table, the newest first, with counts of their summaries."""
    counts = {key.replace("-", "_"): partial(_count, key) for key in _COUNTED}
    return table_of(
        state.of_table("get_iceberg_history", name, min(limit or _ENTRIES_MAX, _ENTRIES_MAX)).snapshots[:limit],
        committed_at=lambda each: time_text(each.committed_at),
        snapshot_id="snapshot_id",
        parent_id="parent_id",
        operation="operation",
        **counts,
    )


@statement
def show_refs(state: ShellState, name: QualifiedName) -> ResultRows:
    """Branches and tags of an Iceberg table."""
    return table_of(
        state.of_table("get_iceberg_history", name, _ENTRIES_MAX).refs,
        name="name",
        type="kind",
        snapshot_id="snapshot_id",
        max_reference_age_in_ms="max_ref_age_ms",
        min_snapshots_to_keep="min_snapshots_to_keep",
        max_snapshot_age_in_ms="max_snapshot_age_ms",
    )


@statement
def show_create_table(state: ShellState, name: QualifiedName) -> ResultRows:
    table = state.table(name)
    database = check_database(state, name.db_name)
    return ResultRows(("createtab_stmt",), [(create_table_text(table, database.locationUri),)], is_text=True)


@statement
def show_create_database(state: ShellState, database: str) -> ResultRows:
    text = create_database_text(check_database(state, database))
    return ResultRows(("createdb_stmt",), [(text,)], is_text=True)


@statement
def describe(
    state: ShellState,
    name: QualifiedName,
    spec: PartitionSpec = (),
    column: str | None = None,
    is_detailed: bool = False,
) -> ResultRows:
    table = state.table(name)
    partition = _partition(state, name, table, spec) if spec else None
    if column is not None:
        found = next((each for each in _column_rows(all_columns(table)) if each[0] == column), None)
        if found is None:
            raise CommandRefused(f"table {name} does not have the column {column}")
        if not is_detailed:
            return ResultRows(_COLUMNS, [found])
        return ResultRows(("info_name", "info_value"), _column_info(found, _statistics(state, name, spec, column)))
    return ResultRows(_COLUMNS, _described(table, partition, is_detailed=is_detailed))


@statement
def describe_database(state: ShellState, database: str, is_extended: bool = False) -> ResultRows:
    found = check_database(state, database)
    columns = ["db_name", "comment", "location", "owner_name", "owner_type"]
    row: list[Cell] = [found.name, found.description, found.locationUri, found.ownerName, _owner_type(found)]
    if is_extended:
        columns.append("parameters")
        row.append(", ".join(f"{name}={value}" for name, value in sorted((found.parameters or {}).items())))
    return ResultRows(columns, [row])


@statement
def describe_function(state: ShellState, database: str, name: str) -> ResultRows:
    try:
        found = state.call("get_function", database, name)
    except NoSuchObjectException as error:
        raise CommandRefused(f"function {shown_key(database)}.{name} does not exist") from error
    return table_of(
        [found],
        function_name=lambda each: f"{each.dbName}.{each.functionName}",
        class_name="className",
        owner_name="ownerName",
        create_time=lambda each: time_text(each.createTime),
        resource_uris=lambda each: ", ".join(resource.uri or "" for resource in each.resourceUris or ()),
    )


def check_database(state: ShellState, name: str) -> Any:
    """The database. Raises CommandRefused when there is none."""
    try:
        return state.call("get_database", name)
    except NoSuchObjectException as error:
        raise CommandRefused(
            f"database {shown_key(name)} does not exist; SHOW DATABASES lists those that do"
        ) from error


def _all_databases(state: ShellState) -> Sequence[str]:
    """All databases in the catalog of the current one."""
    return [beside(state.database, name) for name in state.call("get_databases", beside(state.database, "*"))]


def _count(key: str, snapshot: Any) -> Cell:
    """An entry of a snapshot's summary; None where it is no number."""
    return count(snapshot.summary.get(key))


def _names(column: str, names: Any) -> ResultRows:
    return ResultRows((column,), ((name,) for name in names))


def _partition(state: ShellState, name: QualifiedName, table: Table, spec: PartitionSpec) -> Partition:
    values = partition_values(name, keys_of(table), spec)
    try:
        found: Partition = state.call("get_partition", *name, values)
    except NoSuchObjectException as error:
        raise CommandRefused(
            f"table {name} does not have the partition; SHOW PARTITIONS {name} lists those it has"
        ) from error
    return found


def _statistics(state: ShellState, name: QualifiedName, spec: PartitionSpec, column: str) -> Any:
    """The column's statistics that the metastore keeps; None without any."""
    try:
        if not spec:
            found = state.call("get_table_column_statistics", *name, column)
        else:
            part = make_name([part.key for part in spec], [part.value or "" for part in spec])
            found = state.call("get_partition_column_statistics", *name, part, column)
    except NoSuchObjectException:
        return None
    if not found.statsObj:
        return None
    data: Any = found.statsObj[0].statsData
    return next((each for each in (getattr(data, field) for field in data.__struct_fields__) if each is not None), None)


def _column_info(column: _Row, statistics: Any) -> Iterator[tuple[str, Cell]]:
    yield from zip(_COLUMNS, column, strict=True)
    yield "min", bound_text(getattr(statistics, "lowValue", None))
    yield "max", bound_text(getattr(statistics, "highValue", None))
    for shown, field in _STATISTICS:
        value = getattr(statistics, field, None)
        yield shown, None if value is None else str(value)


def _described(table: Table, partition: Partition | None, *, is_detailed: bool) -> Iterator[_Row]:
    descriptor = (partition.sd if partition is not None else table.sd) or StorageDescriptor()
    yield from _column_rows([*(descriptor.cols or ()), *(table.partitionKeys or ())])
    if table.partitionKeys:
        yield "# Partition Information", "", ""
        yield from _column_rows(table.partitionKeys)
    if not is_detailed:
        return
    if partition is not None:
        yield "# Detailed Partition Information", "", ""
        yield "Partition Value", ", ".join(partition.values or ()), ""
        yield from _times(partition)
        yield "Location", descriptor.location, ""
        yield from _parameter_rows("Partition Parameter", partition.parameters)
    else:
        yield from _table_rows(table)
    yield from _storage_rows(descriptor)
    if table.viewOriginalText:
        yield "# View Information", "", ""
        yield "View Original Text", table.viewOriginalText, ""
        yield "View Expanded Text", table.viewExpandedText, ""


def _column_rows(columns: Sequence[FieldSchema]) -> Iterator[_Row]:
    for column in columns:
        yield column.name, column.type, column.comment


def _table_rows(table: Table) -> Iterator[_Row]:
    yield "# Detailed Table Information", "", ""
    yield "Database", table.dbName, ""
    yield "Table", table.tableName, ""
    yield "Owner", table.owner, ""
    yield "OwnerType", _owner_type(table), ""
    yield from _times(table)
    yield "Retention", table.retention or 0, ""
    yield "Location", (table.sd or StorageDescriptor()).location, ""
    yield "Table Type", table.tableType, ""
    yield from _parameter_rows("Table Parameter", table.parameters)


def _owner_type(owned: Any) -> str | None:
    return PrincipalType(owned.ownerType).name if owned.ownerType else None


def _times(described: Table | Partition) -> Iterator[_Row]:
    yield "CreateTime", time_text(described.createTime), ""
    yield "LastAccessTime", time_text(described.lastAccessTime), ""


def _parameter_rows(what: str, parameters: Mapping[str, str] | None) -> Iterator[_Row]:
    for name, value in sorted((parameters or {}).items()):
        shown = time_text(int(value)) if name == "transient_lastDdlTime" and value.isdecimal() else value
        yield what, name, shown


def _storage_rows(descriptor: StorageDescriptor) -> Iterator[_Row]:
    serde = descriptor.serdeInfo or SerDeInfo()
    yield "# Storage Information", "", ""
    yield "SerDe Library", serde.serializationLib, ""
    yield "InputFormat", descriptor.inputFormat, ""
    yield "OutputFormat", descriptor.outputFormat, ""
    yield "Compressed", bool(descriptor.compressed), ""
    yield "Num Buckets", descriptor.numBuckets, ""
    yield "Bucket Columns", ", ".join(descriptor.bucketCols or ()), ""
    orders = [f"{order.col} {'ASC' if order.order else 'DESC'}" for order in descriptor.sortCols or ()]
    yield "Sort Columns", ", ".join(orders), ""
    yield from _parameter_rows("Storage Desc Parameter", serde.parameters)
