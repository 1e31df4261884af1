"""Tables as rows: everything of the Table struct in one row."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec
from sqlalchemy import Integer, Select, bindparam, exists, select, type_coerce

from hms_gateway.metastore.filters.table_filter import TableFilter
from hms_gateway.metastore.ports.store import DatabaseId, StoredTable, TableId
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.metastore.vocabulary.typed_values import value_class
from hms_gateway.rpc.structs import Table, TableMeta
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.catalog import DATABASES, TABLE_INDEXES, TABLES
from hms_gateway.storage.sql.filter_sql import in_catalog, is_among, matches_pattern, may_match
from hms_gateway.storage.sql.fragments import (
    TABLE_EXTRA,
    DescriptorContent,
    decode_columns,
    decode_descriptor,
    decode_extra,
    decode_map,
    encode_columns,
    encode_descriptor,
    encode_extra,
    encode_map,
)
from hms_gateway.storage.sql.repository import Repository, check_text, is_storable

# As an integer it comes as it is from the driver.
_HAS_INDEXES = type_coerce(exists().where(TABLE_INDEXES.c.table_id == TABLES.c.table_id), Integer).label("has_indexes")
_JOINED: Final = TABLES.join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
_ROWS = select(TABLES, DATABASES.c.name.label("db_name"), _HAS_INDEXES).select_from(_JOINED)
TableRow: Final = namedtuple("TableRow", _ROWS.selected_columns.keys())  # type: ignore[misc]
# Made once: building a statement costs more than running it.
TABLE_BY_NAME: Final = _ROWS.where(DATABASES.c.name == bindparam("db_name"), TABLES.c.name == bindparam("tbl_name"))

_OF_DATABASE: Final = DATABASES.c.name == bindparam("the_database")
_TABLES: Final = _ROWS.where(_OF_DATABASE).order_by(TABLES.c.name)
_NAMES: Final = select(TABLES.c.name).select_from(_JOINED).where(_OF_DATABASE).order_by(TABLES.c.name)
_NAMES_OF_TYPE: Final = _NAMES.where(TABLES.c.table_type == bindparam("the_type"))
_TABLE_BY_ID: Final = _ROWS.where(TABLES.c.table_id == bindparam("the_id"))


def table_statement(name: tuple[str, str]) -> Statement:
    """Simple, for one: lists make PostgreSQL plan it each time."""
    return Statement(TABLE_BY_NAME, {"db_name": name[0], "tbl_name": name[1]})


def table_with_id_statement(table_id: int) -> Statement:
    return Statement(_TABLE_BY_ID, {"the_id": table_id})


def table_row(rows: Rows) -> Any:
    """A `TableRow`, None where there is no such table."""
    return TableRow._make(rows[0]) if rows else None


class TableReads(Repository):
    # `TableRow`s that were read ahead, None for no such table.
    _foreseen_tables: Mapping[tuple[str, str], Any] = MappingProxyType({})

    def table(self, db_name: str, tbl_name: str) -> StoredTable | None:
        name = (db_name, tbl_name)
        if name in self._foreseen_tables:
            row = self._foreseen_tables[name]
        elif is_storable(db_name) and is_storable(tbl_name):
            row = table_row(self._run_together([table_statement(name)])[0])
        else:
            row = None
        return None if row is None else stored_table(row)

    def table_with_id(self, table_id: int) -> StoredTable | None:
        row = table_row(self._run_together([table_with_id_statement(table_id)])[0])
        return None if row is None else stored_table(row)

    def tables(self, db_name: str, tbl_names: Sequence[str] | None = None) -> list[StoredTable]:
        if not is_storable(db_name):
            return []
        values: dict[str, object] = {"the_database": db_name}
        if tbl_names is not None:
            values["names"] = self._dialect.bound_list(name for name in tbl_names if is_storable(name))
        statement = _TABLES if tbl_names is None else _tables_named(self._dialect)
        return [stored_table(row) for row in self._connection.execute(statement, values)]

    def table_names(
        self,
        db_name: str,
        pattern: Pattern | None = None,
        table_type: str | None = None,
        filter: TableFilter | None = None,
        limit: int | None = None,
    ) -> list[str]:
        if not is_storable(db_name) or (table_type is not None and not is_storable(table_type)):
            return []
        values = {"the_database": db_name}
        names = _NAMES
        if table_type is not None:
            values["the_type"] = table_type
            names = _NAMES_OF_TYPE
        condition = matches_pattern(TABLES.c.name, pattern, self._dialect)
        if condition is not None:
            names = names.where(condition)
        if filter is not None:
            return self._filtered_names(names, values, filter, limit)
        if limit is not None:
            names = names.limit(limit)
        return list(self._connection.execute(names, values).scalars())

    def table_metas(
        self,
        db_pattern: Pattern | None,
        tbl_pattern: Pattern | None,
        table_types: Sequence[str] | None,
        prefix: str | None = None,
    ) -> list[TableMeta]:
        """Ordered by database and table; the comment is the table's parameter `comment`."""
        columns = (DATABASES.c.name, TABLES.c.name, TABLES.c.table_type, TABLES.c.parameters, TABLES.c.owner)
        statement = select(*columns).select_from(_JOINED).order_by(DATABASES.c.name, TABLES.c.name)
        statement = statement.where(*in_catalog(DATABASES.c.name, prefix, db_pattern, self._dialect))
        condition = matches_pattern(TABLES.c.name, tbl_pattern, self._dialect)
        if condition is not None:
            statement = statement.where(condition)
        if table_types:
            statement = statement.where(is_among(TABLES.c.table_type, table_types, self._dialect))
        return [
            TableMeta(
                dbName=db_name,
                tableName=tbl_name,
                tableType=table_type,
                comments=decode_map(parameters).get("comment") if '"comment"' in (parameters or "") else None,
                ownerName=owner,
            )
            for db_name, tbl_name, table_type, parameters, owner in self._connection.execute(statement)
        ]

    def _filtered_names(
        self, statement: Select[Any], values: Mapping[str, str], filter: TableFilter, limit: int | None
    ) -> list[str]:
        """The filter is evaluated here, on names in order; the database spares us most of the others."""
        may = may_match(filter, self._dialect)
        if may is not None:
            statement = statement.where(may)
        columns = (TABLES.c.owner, TABLES.c.last_access_time, TABLES.c.parameters)
        rows = self._connection.execute(statement.add_columns(*columns), values)
        names: list[str] = []
        with rows:
            for name, owner, last_access_time, parameters in rows:
                if limit is not None and len(names) >= limit:
                    break
                if filter.matches(owner, last_access_time, {} if parameters is None else decode_map(parameters)):
                    names.append(name)
        return names


@cache
def _tables_named(dialect: Dialect) -> Select[Any]:
    return _TABLES.where(dialect.is_in_list(TABLES.c.name, "names"))


def key_classes(partition_keys: Any) -> list[Any]:
    return [value_class(key.type or "") for key in decode_columns(partition_keys) or []]


def table_values(table: Table) -> dict[str, Any]:
    for text in (table.owner, table.tableType, table.viewOriginalText, table.viewExpandedText):
        check_text(f"a text of table {table.dbName}.{table.tableName}:", text)
    descriptor = table.sd
    content = None if descriptor is None else encode_descriptor(descriptor)
    if descriptor is not None:
        check_text("location", descriptor.location)
    return {
        "name": table.tableName,
        "table_type": table.tableType,
        "owner": table.owner,
        "create_time": table.createTime or 0,
        "last_access_time": table.lastAccessTime or 0,
        "retention": table.retention or 0,
        "location": descriptor and descriptor.location,
        "descriptor": content and content.rest,
        "columns": content and content.columns,
        "skew_locations": content and content.skew_locations,
        "partition_keys": encode_columns(table.partitionKeys),
        "parameters": None if table.parameters is None else encode_map(table.parameters),
        "view_original_text": table.viewOriginalText,
        "view_expanded_text": table.viewExpandedText,
        "extra": encode_extra(table, TABLE_EXTRA),
    }


def same_table(loaded: StoredTable, row: Any) -> StoredTable | None:
    """The table with that row, without decoding it; None when more than the number of partitions is different."""
    if row._replace(partition_count=loaded.partition_count) != loaded.as_stored:
        return None
    return msgspec.structs.replace(loaded, partition_count=row.partition_count, as_stored=row)


def stored_table(row: Any) -> StoredTable:
    table = decode_extra(Table, row.extra)
    table.tableName = row.name
    table.dbName = row.db_name
    table.owner = row.owner
    table.createTime = row.create_time
    table.lastAccessTime = row.last_access_time
    table.retention = row.retention
    if row.descriptor is not None:
        content = DescriptorContent(row.columns, row.descriptor, row.skew_locations)
        table.sd = decode_descriptor(content, row.location)
    table.partitionKeys = decode_columns(row.partition_keys)
    table.parameters = None if row.parameters is None else decode_map(row.parameters)
    table.viewOriginalText = row.view_original_text
    table.viewExpandedText = row.view_expanded_text
    table.tableType = row.table_type
    return StoredTable(
        TableId(row.table_id), DatabaseId(row.database_id), table, row.partition_count, bool(row.has_indexes), row
    )
