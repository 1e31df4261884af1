"""DESCRIBE of tables, partitions, databases and functions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running.shell_state import (
    Cell,
    CommandRefused,
    ResultRows,
    ShellState,
    keys_of,
    partition_values,
    time_text,
)
from hms_gateway.cli.hiveql.running.showing import check_database
from hms_gateway.cli.hiveql.statements import Statement
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.texts import bound_text
from hms_gateway.rpc.structs import (
    FieldSchema,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

# As Hive and Spark name them.
_STATISTICS: Final = (
    ("num_nulls", "numNulls"), ("distinct_count", "numDVs"), ("avg_col_len", "avgColLen"), ("max_col_len", "maxColLen"),
    ("num_trues", "numTrues"), ("num_falses", "numFalses"),
)  # fmt: skip
_Row = tuple[Cell, Cell, Cell]
_COLUMNS: Final = ("col_name", "data_type", "comment")


def _describe(statement: say.Describe, state: ShellState) -> ResultRows:
    table = state.table(statement.table)
    partition = _partition(statement, state, table) if statement.spec else None
    if statement.column is not None:
        column = _one_column(statement, table)
        if not statement.is_detailed:
            return ResultRows(_COLUMNS, [column])
        return ResultRows(("info_name", "info_value"), _column_info(column, _statistics(statement, state, partition)))
    return ResultRows(_COLUMNS, _described(table, partition, is_detailed=statement.is_detailed))


def _partition(statement: say.Describe, state: ShellState, table: Table) -> Partition:
    name = statement.table
    values = partition_values(name, keys_of(table), statement.spec)
    try:
        found: Partition = state.call("get_partition", name.db_name, name.table_name, values)
    except NoSuchObjectException as error:
        raise CommandRefused(
            f"table {name} does not have the partition; SHOW PARTITIONS {name} lists those it has"
        ) from error
    return found


def _one_column(statement: say.Describe, table: Table) -> _Row:
    for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]:
        if column.name == statement.column:
            return column.name, column.type, column.comment
    raise CommandRefused(f"table {statement.table} does not have the column {statement.column}")


def _statistics(statement: say.Describe, state: ShellState, partition: Partition | None) -> Any:
    """The column's statistics that the metastore keeps; None without any."""
    name, column = statement.table, statement.column
    try:
        if partition is None:
            found = state.call("get_table_column_statistics", *name, column)
        else:
            keys = [part.key for part in statement.spec]
            part = make_name(keys, [part.value or "" for part in statement.spec])
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
    owner_type = PrincipalType(table.ownerType).name if table.ownerType else None
    yield "# Detailed Table Information", "", ""
    yield "Database", table.dbName, ""
    yield "Table", table.tableName, ""
    yield "Owner", table.owner, ""
    yield "OwnerType", owner_type, ""
    yield from _times(table)
    yield "Retention", table.retention or 0, ""
    yield "Location", (table.sd or StorageDescriptor()).location, ""
    yield "Table Type", table.tableType, ""
    yield from _parameter_rows("Table Parameter", table.parameters)


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


def _database(statement: say.DescribeDatabase, state: ShellState) -> ResultRows:
    found = check_database(state, statement.database)
    owner_type = PrincipalType(found.ownerType).name if found.ownerType else None
    columns = ["db_name", "comment", "location", "owner_name", "owner_type"]
    row: list[Cell] = [found.name, found.description, found.locationUri, found.ownerName, owner_type]
    if statement.is_extended:
        columns.append("parameters")
        row.append(", ".join(f"{name}={value}" for name, value in sorted((found.parameters or {}).items())))
    return ResultRows(columns, [row])


def _function(statement: say.DescribeFunction, state: ShellState) -> ResultRows:
    try:
        found = state.call("get_function", statement.database, statement.name)
    except NoSuchObjectException as error:
        raise CommandRefused(f"function {statement.database}.{statement.name} does not exist") from error
    uris = ", ".join(each.uri or "" for each in found.resourceUris or ())
    columns = ("function_name", "class_name", "owner_name", "create_time", "resource_uris")
    row = (f"{found.dbName}.{found.functionName}", found.className, found.ownerName, time_text(found.createTime), uris)
    return ResultRows(columns, [row])


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], ResultRows | None]]] = MappingProxyType(
    {
        say.Describe: _describe,
        say.DescribeDatabase: _database,
        say.DescribeFunction: _function,
    }
)
