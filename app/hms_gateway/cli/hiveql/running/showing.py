"""SHOW of databases, tables, partitions, columns, functions, properties."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running.shell_state import (
    CommandRefused,
    ResultRows,
    ShellState,
    keys_of,
    partition_names,
    typed_keys,
)
from hms_gateway.cli.hiveql.statements import Statement
from hms_gateway.metastore.filters.hiveql_condition import divided_condition
from hms_gateway.metastore.vocabulary.create_text import create_database_text, create_table_text
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import NoSuchObjectException

_LIMIT_MAX: Final = 32_767


def _databases(statement: say.ShowDatabases, state: ShellState) -> ResultRows:
    return _names("database_name", state.call("get_databases", statement.pattern))


def _tables(statement: say.ShowTables, state: ShellState) -> ResultRows:
    if statement.kind is None:
        found = state.call("get_tables", statement.database, statement.pattern)
    else:
        found = state.call("get_tables_by_type", statement.database, statement.pattern, statement.kind)
    if not found:
        check_database(state, statement.database)
    return _names("tab_name", found)


def check_database(state: ShellState, name: str) -> Any:
    """The database. Raises Refused when there is none."""
    try:
        return state.call("get_database", name)
    except NoSuchObjectException as error:
        raise CommandRefused(f"database {name} does not exist; SHOW DATABASES lists those that do") from error


def _partitions(statement: say.ShowPartitions, state: ShellState) -> ResultRows:
    name, limit = statement.table, statement.limit
    if statement.condition:
        table = state.table(name)
        keys = keys_of(table)
        with counted_from(statement.condition_begin):
            text, checks = divided_condition(statement.condition, typed_keys(table))
        wanted = -1 if checks or limit is None or limit > _LIMIT_MAX else limit
        listed = state.call("get_partitions_by_filter", name.db_name, name.table_name, text, wanted)
        fitting = (each for each in listed if all(check.fits(each.values[check.place]) for check in checks))
        found = [make_name(keys, each.values) for each in fitting]
    elif statement.spec:
        found = partition_names(state, name, statement.spec)
    else:
        if not keys_of(state.table(name)):
            raise CommandRefused(f"table {name} is not partitioned")
        wanted = -1 if limit is None or limit > _LIMIT_MAX else limit
        found = state.call("get_partition_names", name.db_name, name.table_name, wanted)
    return _names("partition", found[:limit])


def _columns(statement: say.ShowColumns, state: ShellState) -> ResultRows:
    table = state.table(statement.table)
    names = [column.name or "" for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]]
    patterns = statement.pattern.lower().split("|")
    return _names("field", [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)])


def _functions(statement: say.ShowFunctions, state: ShellState) -> ResultRows:
    databases = [statement.database] if statement.database else state.call("get_all_databases")
    return _names("function_name", _function_names(state, databases, statement.pattern))


def _function_names(state: ShellState, databases: Sequence[str], pattern: str) -> Iterator[str]:
    for database in databases:
        for name in state.call("get_functions", database, pattern):
            yield f"{database}.{name}"


def _properties(statement: say.ShowTableProperties, state: ShellState) -> ResultRows:
    parameters = state.table(statement.table).parameters or {}
    if statement.key is not None:
        if statement.key not in parameters:
            raise CommandRefused(f"table {statement.table} does not have the property {statement.key}")
        parameters = {statement.key: parameters[statement.key]}
    return ResultRows(("prpt_name", "prpt_value"), sorted(parameters.items()))


def _create_table(statement: say.ShowCreateTable, state: ShellState) -> ResultRows:
    table = state.table(statement.table)
    database = check_database(state, statement.table.db_name)
    return ResultRows(("createtab_stmt",), [(create_table_text(table, database.locationUri),)], is_text=True)


def _create_database(statement: say.ShowCreateDatabase, state: ShellState) -> ResultRows:
    text = create_database_text(check_database(state, statement.database))
    return ResultRows(("createdb_stmt",), [(text,)], is_text=True)


def _names(column: str, names: Any) -> ResultRows:
    return ResultRows((column,), ((name,) for name in names))


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], ResultRows | None]]] = MappingProxyType(
    {
        say.ShowDatabases: _databases,
        say.ShowTables: _tables,
        say.ShowPartitions: _partitions,
        say.ShowColumns: _columns,
        say.ShowFunctions: _functions,
        say.ShowTableProperties: _properties,
        say.ShowCreateTable: _create_table,
        say.ShowCreateDatabase: _create_database,
    }
)
