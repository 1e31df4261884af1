"""SHOW and DESCRIBE of databases, tables, partitions, columns, functions, properties."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    CommandRefused,
    PartitionSpec,
    QualifiedName,
    ResultRows,
    ShellState,
    Statement,
    keys_of,
    partition_names,
    partition_values,
    typed_keys,
)
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
# Names of Hive and Spark.
_STATISTICS: Final = (
    ("num_nulls", "numNulls"), ("distinct_count", "numDVs"), ("avg_col_len", "avgColLen"), ("max_col_len", "maxColLen"),
    ("num_trues", "numTrues"), ("num_falses", "numFalses"),
)  # fmt: skip
_Row = tuple[Cell, Cell, Cell]
_COLUMNS: Final = ("col_name", "data_type", "comment")


class ShowDatabases(Statement, frozen=True):
    """`catalog` is empty for the one of the current database."""

    pattern: str = "*"
    catalog: str = ""

    def run(self, state: ShellState) -> ResultRows:
        around = marked(self.catalog, "") if self.catalog else state.database
        return _names("database_name", state.call("get_databases", beside(around, self.pattern)))


class ShowCatalogs(Statement, frozen=True):
    def run(self, state: ShellState) -> ResultRows:
        return _names("catalog_name", state.call("get_catalogs").names)


class ShowTables(Statement, frozen=True):
    """`kind` is a table type, None for all."""

    database: str
    pattern: str = "*"
    kind: str | None = None

    def run(self, state: ShellState) -> ResultRows:
        if self.kind is None:
            found = state.call("get_tables", self.database, self.pattern)
        else:
            found = state.call("get_tables_by_type", self.database, self.pattern, self.kind)
        if not found:
            check_database(state, self.database)
        return _names("tab_name", found)


class ShowPartitions(Statement, frozen=True):
    """`condition` is the one of WHERE, which begins at `condition_begin` of the text."""

    table: QualifiedName
    spec: PartitionSpec = ()
    condition: str = ""
    limit: int | None = None
    condition_begin: int = 0

    def run(self, state: ShellState) -> ResultRows:
        name, limit = self.table, self.limit
        if self.condition:
            table = state.table(name)
            keys = keys_of(table)
            with counted_from(self.condition_begin):
                text, checks = divided_condition(self.condition, typed_keys(table))
            wanted = -1 if checks or limit is None or limit > _LIMIT_MAX else limit
            listed = state.call("get_partitions_by_filter", name.db_name, name.table_name, text, wanted)
            fitting = (each for each in listed if all(check.fits(each.values[check.place]) for check in checks))
            found = [make_name(keys, each.values) for each in fitting]
        elif self.spec:
            found = partition_names(state, name, self.spec)
        else:
            if not keys_of(state.table(name)):
                raise CommandRefused(f"table {name} is not partitioned")
            wanted = -1 if limit is None or limit > _LIMIT_MAX else limit
            found = state.call("get_partition_names", name.db_name, name.table_name, wanted)
        return _names("partition", found[:limit])


class ShowColumns(Statement, frozen=True):
    table: QualifiedName
    pattern: str = "*"

    def run(self, state: ShellState) -> ResultRows:
        table = state.table(self.table)
        names = [column.name or "" for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]]
        patterns = self.pattern.lower().split("|")
        return _names("field", [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)])


class ShowFunctions(Statement, frozen=True):
    """`database` is None for all."""

    database: str | None
    pattern: str = "*"

    def run(self, state: ShellState) -> ResultRows:
        databases = [self.database] if self.database else _all_databases(state)
        return _names("function_name", _function_names(state, databases, self.pattern))


class ShowTableProperties(Statement, frozen=True):
    table: QualifiedName
    key: str | None = None

    def run(self, state: ShellState) -> ResultRows:
        parameters = state.table(self.table).parameters or {}
        if self.key is not None:
            if self.key not in parameters:
                raise CommandRefused(f"table {self.table} does not have the property {self.key}")
            parameters = {self.key: parameters[self.key]}
        return ResultRows(("prpt_name", "prpt_value"), sorted(parameters.items()))


class ShowCreateTable(Statement, frozen=True):
    table: QualifiedName

    def run(self, state: ShellState) -> ResultRows:
        table = state.table(self.table)
        database = check_database(state, self.table.db_name)
        return ResultRows(("createtab_stmt",), [(create_table_text(table, database.locationUri),)], is_text=True)


class ShowCreateDatabase(Statement, frozen=True):
    database: str

    def run(self, state: ShellState) -> ResultRows:
        text = create_database_text(check_database(state, self.database))
        return ResultRows(("createdb_stmt",), [(text,)], is_text=True)


class Describe(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec = ()
    column: str | None = None
    is_detailed: bool = False

    def run(self, state: ShellState) -> ResultRows:
        table = state.table(self.table)
        partition = _partition(self, state, table) if self.spec else None
        if self.column is not None:
            column = _one_column(self, table)
            if not self.is_detailed:
                return ResultRows(_COLUMNS, [column])
            return ResultRows(("info_name", "info_value"), _column_info(column, _statistics(self, state, partition)))
        return ResultRows(_COLUMNS, _described(table, partition, is_detailed=self.is_detailed))


class DescribeDatabase(Statement, frozen=True):
    database: str
    is_extended: bool = False

    def run(self, state: ShellState) -> ResultRows:
        found = check_database(state, self.database)
        owner_type = PrincipalType(found.ownerType).name if found.ownerType else None
        columns = ["db_name", "comment", "location", "owner_name", "owner_type"]
        row: list[Cell] = [found.name, found.description, found.locationUri, found.ownerName, owner_type]
        if self.is_extended:
            columns.append("parameters")
            row.append(", ".join(f"{name}={value}" for name, value in sorted((found.parameters or {}).items())))
        return ResultRows(columns, [row])


class DescribeFunction(Statement, frozen=True):
    database: str
    name: str

    def run(self, state: ShellState) -> ResultRows:
        try:
            found = state.call("get_function", self.database, self.name)
        except NoSuchObjectException as error:
            raise CommandRefused(f"function {shown_key(self.database)}.{self.name} does not exist") from error
        uris = ", ".join(each.uri or "" for each in found.resourceUris or ())
        columns = ("function_name", "class_name", "owner_name", "create_time", "resource_uris")
        row = (
            f"{found.dbName}.{found.functionName}",
            found.className,
            found.ownerName,
            time_text(found.createTime),
            uris,
        )
        return ResultRows(columns, [row])


def check_database(state: ShellState, name: str) -> Any:
    """The database. Raises Refused when there is none."""
    try:
        return state.call("get_database", name)
    except NoSuchObjectException as error:
        raise CommandRefused(
            f"database {shown_key(name)} does not exist; SHOW DATABASES lists those that do"
        ) from error


def _all_databases(state: ShellState) -> Sequence[str]:
    """All databases in the catalog of the current one."""
    return [beside(state.database, name) for name in state.call("get_databases", beside(state.database, "*"))]


def _function_names(state: ShellState, databases: Sequence[str], pattern: str) -> Iterator[str]:
    for database in databases:
        for name in state.call("get_functions", database, pattern):
            yield f"{shown_key(database)}.{name}"


def _names(column: str, names: Any) -> ResultRows:
    return ResultRows((column,), ((name,) for name in names))


def _partition(statement: Describe, state: ShellState, table: Table) -> Partition:
    name = statement.table
    values = partition_values(name, keys_of(table), statement.spec)
    try:
        found: Partition = state.call("get_partition", name.db_name, name.table_name, values)
    except NoSuchObjectException as error:
        raise CommandRefused(
            f"table {name} does not have the partition; SHOW PARTITIONS {name} lists those it has"
        ) from error
    return found


def _one_column(statement: Describe, table: Table) -> _Row:
    for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]:
        if column.name == statement.column:
            return column.name, column.type, column.comment
    raise CommandRefused(f"table {statement.table} does not have the column {statement.column}")


def _statistics(statement: Describe, state: ShellState, partition: Partition | None) -> Any:
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
