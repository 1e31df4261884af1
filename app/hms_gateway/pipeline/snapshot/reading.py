"""Reads work: calls of bounded size, objects as rows. What is dropped meanwhile is left out: an event will say it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hms_gateway.pipeline.snapshot import work as working
from hms_gateway.pipeline.snapshot.objects import (
    ObjectRow,
    column_row,
    constraint_rows,
    database_row,
    function_row,
    parents,
    partition_row,
    privilege_row,
    role_grant_row,
    role_row,
    statistics_row,
    table_row,
)
from hms_gateway.pipeline.snapshot.work import Work
from hms_gateway.pipeline.source.fetching import rows
from hms_gateway.pipeline.source.objects import ColumnRow, StatisticsRow
from hms_gateway.pipeline.source.planning import Everything, PlannedNames, PlannedTables
from hms_gateway.rpc.structs import (
    AllTableConstraintsRequest,
    ForeignKeysRequest,
    GetPrincipalsInRoleRequest,
    MetaException,
    NoSuchObjectException,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    Role,
    Table,
    TableStatsRequest,
    UnknownDBException,
    UnknownTableException,
)
from hms_gateway.rpc.wire import ApplicationError

_STATISTICS_A_CALL: Final = 200
_CATALOG: Final = "hive"
_GONE: Final = (NoSuchObjectException, UnknownDBException, UnknownTableException)
_WHOLE: Final = None

# A client of the metastore: anything with its `call`.
Caller = Any
More = Callable[[Work], None]


def objects(client: Caller, work: Work, more: More) -> Iterator[ObjectRow]:
    """The rows of the work. `more` is given what is to be read besides: partitions, and references between tables."""
    if work.what == working.DATABASES:
        yield from _databases(client, work.names)
    elif work.what in (working.TABLES, working.DEFINITIONS):
        with _may_be_gone(client, work.database):
            yield from _tables(client, work, more)
    elif work.what == working.PARTITIONS:
        yield from _partitions(client, work)
    else:
        yield from _LISTED[work.names[0]](client)


@contextmanager
def _may_be_gone(client: Caller, database: str, table: str = "") -> Iterator[None]:
    """What is dropped meanwhile has no rows. Some methods say so by a MetaException, which may mean anything."""
    try:
        yield
    except _GONE:
        return
    except MetaException:
        if _is_there(client, database, table):
            raise


def _is_there(client: Caller, database: str, table: str) -> bool:
    try:
        client.call("get_table", database, table) if table else client.call("get_database", database)
    except _GONE:
        return False
    return True


def _databases(client: Caller, names: Sequence[str]) -> Iterator[ObjectRow]:
    for name in names:
        with _may_be_gone(client, name):
            yield from map(database_row, rows(client, "databases", PlannedTables("", (name,)), _WHOLE))


def _tables(client: Caller, work: Work, more: More) -> Iterator[ObjectRow]:
    for table in rows(client, "tables", PlannedTables(work.database, tuple(work.names)), _WHOLE):
        yield from _definition(client, table, more)
        if work.what == working.TABLES and table.partitionKeys:
            _partition_work(client, table, more)


def _definition(client: Caller, table: Table, more: More) -> Iterator[ObjectRow]:
    database, name = table.dbName or "", table.tableName or ""
    yield table_row(table)
    fields, keys = _columns(table), table.partitionKeys or []
    for position, field in enumerate([*fields, *keys]):
        yield column_row(ColumnRow(table, field, position, position >= len(fields)))
    if columns := [field.name or "" for field in fields]:
        request = TableStatsRequest(dbName=database, tblName=name, colNames=columns)
        with _may_be_gone(client, database, name):
            for one in client.call("get_table_statistics_req", request).tableStats or ():
                yield statistics_row(StatisticsRow(database, name, None, one))
    with _may_be_gone(client, database, name):
        for constraint in constraint_rows(database, name, _constraints(client, database, name)):
            for parent in sorted(parents(constraint)):
                more(working.work(working.REFERENCE, parent, database, name))
            yield constraint


def _columns(table: Table) -> list[Any]:
    return (table.sd.cols if table.sd else None) or []


def _constraints(client: Caller, database: str, table: str) -> list[Any]:
    try:
        request = AllTableConstraintsRequest(dbName=database, tblName=table, catName=_CATALOG)
        found = client.call("get_all_table_constraints", request).allTableConstraints
        return [each for field in found.__struct_fields__ for each in getattr(found, field) or ()]
    except ApplicationError:
        # Of Hive 2.3, which has primary and foreign keys only.
        primary = PrimaryKeysRequest(db_name=database, tbl_name=table)
        foreign = ForeignKeysRequest(foreign_db_name=database, foreign_tbl_name=table)
        return [
            *(client.call("get_primary_keys", primary).primaryKeys or ()),
            *(client.call("get_foreign_keys", foreign).foreignKeys or ()),
        ]


def _partition_work(client: Caller, table: Table, more: More) -> None:
    database, name = table.dbName or "", table.tableName or ""
    with _may_be_gone(client, database, name):
        names = client.call("get_partition_names", database, name, -1)
        for piece in working.pieces(working.PARTITIONS, names, database, name):
            more(piece)


def _partitions(client: Caller, work: Work) -> Iterator[ObjectRow]:
    with _may_be_gone(client, work.database, work.table):
        part = PlannedNames(work.database, work.table, work.packed)
        for found in rows(client, "partitions", part, _WHOLE):
            yield partition_row(found)
        columns = [field.name or "" for field in _columns(client.call("get_table", work.database, work.table))]
        if columns:
            yield from _partition_statistics(client, work, columns)


def _partition_statistics(client: Caller, work: Work, columns: list[str]) -> Iterator[ObjectRow]:
    names = work.names
    for at in range(0, len(names), _STATISTICS_A_CALL):
        request = PartitionsStatsRequest(
            dbName=work.database,
            tblName=work.table,
            colNames=columns,
            partNames=names[at : at + _STATISTICS_A_CALL],
        )
        found = client.call("get_partitions_statistics_req", request).partStats or {}
        for partition, statistics in found.items():
            for one in statistics:
                yield statistics_row(StatisticsRow(work.database, work.table, partition, one))


def _roles(client: Caller) -> Iterator[ObjectRow]:
    return (role_row(Role(roleName=name)) for name in client.call("get_role_names"))


def _role_grants(client: Caller) -> Iterator[ObjectRow]:
    for name in client.call("get_role_names"):
        try:
            found = client.call("get_principals_in_role", GetPrincipalsInRoleRequest(roleName=name))
        except (*_GONE, MetaException):
            if name in client.call("get_role_names"):
                raise
            continue
        yield from map(role_grant_row, found.principalGrants)


_LISTED: Final[dict[str, Callable[[Caller], Iterator[ObjectRow]]]] = {
    "functions": lambda client: map(function_row, rows(client, "functions", Everything(), _WHOLE)),
    "privileges": lambda client: map(privilege_row, rows(client, "privileges", Everything(), _WHOLE)),
    "roles": _roles,
    "role_grants": _role_grants,
}
