"""Locations of databases, tables and partitions, in pages by their keys, as rows."""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select

from hms_gateway.metastore.vocabulary.locations import parse_location, spellings
from hms_gateway.metastore.vocabulary.names import PartitionId, TableId
from hms_gateway.metastore.vocabulary.table_types import (
    EXTERNAL_KEY,
    METADATA_LOCATION,
    TableType,
    is_external,
    is_view,
)
from hms_gateway.rpc.structs import Database
from hms_gateway.rpc.structs.catalogs import shown_key
from hms_gateway.storage.partitions.rows import full_location
from hms_gateway.storage.schema.catalog import DATABASES, DESCRIPTORS, PARTITIONS, TABLES
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.fragments import decode_columns, decode_extra, decode_map
from hms_gateway.storage.sql.repository import AggregateRows, is_storable

_TABLES: Final[Select[Any]] = select(
    TABLES.c.table_id,
    DATABASES.c.name.label("db_name"),
    TABLES.c.name,
    TABLES.c.location,
    TABLES.c.table_type,
    TABLES.c.parameters,
    TABLES.c.partition_keys,
    TABLES.c.partition_count,
).join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
_PARTITIONS: Final = select(
    PARTITIONS.c.partition_id,
    PARTITIONS.c.table_id,
    PARTITIONS.c.part_name,
    PARTITIONS.c.location,
    DESCRIPTORS.c.base_location,
    PARTITIONS.c.descriptor_id,
).outerjoin(DESCRIPTORS, DESCRIPTORS.c.descriptor_id == PARTITIONS.c.descriptor_id)
# `/` is the last character before `0`, so that what begins with a name and `/` lies between the two.
_BEHIND_SLASH: Final = "0"
_AROUND_MAX: Final = 2


class DatabasePlace(NamedTuple):
    """`locations` are where its tables go, and where its managed tables go, as far as they are stored."""

    name: str
    locations: tuple[str, ...]


class TablePlace(NamedTuple):
    """`owns_data` is true where the catalog makes the table's directory, and deletes it with the table.

    `has_metadata_file` is true for one of Iceberg's, or a view of it.
    """

    table_id: TableId
    db_name: str
    name: str
    location: str | None
    owns_data: bool
    partition_keys: tuple[str, ...]
    partition_count: int
    has_metadata_file: bool = False

    def __str__(self) -> str:
        return f"{shown_key(self.db_name)}.{self.name}"


class PartitionPlace(NamedTuple):
    partition_id: PartitionId
    table_id: TableId
    name: str
    location: str | None


class PartitionsBelow(msgspec.Struct, frozen=True):
    """So many partitions of a table that the catalog owns, all at or below one location."""

    table: str
    location: str
    count: int


class PlaceRows(AggregateRows):
    def databases(self, after: str, limit: int) -> list[DatabasePlace]:
        columns = DATABASES.c.name, DATABASES.c.location, DATABASES.c.extra
        statement = select(*columns).where(DATABASES.c.name > after).order_by(DATABASES.c.name).limit(limit)
        return [_database(*row) for row in self._connection.execute(statement)]

    def tables(self, after: int, limit: int) -> list[TablePlace]:
        return self._tables(TABLES.c.table_id > after, limit)

    def tables_named(self, db_name: str, names: Sequence[str]) -> list[TablePlace]:
        is_named = is_among(TABLES.c.name, names, self._dialect)
        return self._tables(and_(DATABASES.c.name == db_name, is_named), len(names))

    def tables_with_ids(self, ids: Collection[int]) -> list[TablePlace]:
        return self._tables(has_id_among(TABLES.c.table_id, ids, self._dialect), len(ids))

    def tables_around(self, location: str) -> list[TablePlace]:
        """Tables whose locations are this one, lie in it or around it, by any scheme of its file system; a slash at
        their ends does not count.
        """
        place, at_or_above, is_in = TABLES.c.location, list[str](), list[ColumnElement[bool]]()
        for spelled in spellings(parse_location(location)):
            names = spelled.split("/")
            above = ["/".join(names[:count]) for count in range(2, len(names) + 1)]
            at_or_above += [each for one in above for each in (one, f"{one}/")]
            is_in.append(and_(place > f"{spelled}/", place < f"{spelled}{_BEHIND_SLASH}"))
        return self._tables(or_(is_among(place, at_or_above, self._dialect), *is_in), _AROUND_MAX)

    def partitions(self, after: int, limit: int) -> list[PartitionPlace]:
        key = PARTITIONS.c.partition_id
        return self._partitions(_PARTITIONS.where(key > after).order_by(key).limit(limit))

    def partitions_named(self, table_id: TableId, names: Sequence[str]) -> list[PartitionPlace]:
        is_named = is_among(PARTITIONS.c.part_name, names, self._dialect)
        return self._partitions(_PARTITIONS.where(PARTITIONS.c.table_id == table_id, is_named))

    def has_partitions_below(self, table_id: TableId, path: str) -> bool:
        """Tell whether the table has a partition whose name begins with these parts (`year=2024`) and has more."""
        if not is_storable(path):
            return False
        name = PARTITIONS.c.part_name
        is_below = and_(name > f"{path}/", name < f"{path}{_BEHIND_SLASH}")
        statement = select(PARTITIONS.c.partition_id).where(PARTITIONS.c.table_id == table_id, is_below).limit(1)
        return self._connection.execute(statement).first() is not None

    def owned_tables_elsewhere(self, beginnings: Sequence[str], after: int, limit: int) -> list[TablePlace]:
        """Tables that may own their data, whose locations begin with none of these texts."""
        condition = and_(TABLES.c.table_id > after, _may_own(), _is_elsewhere(TABLES.c.location, beginnings))
        return self._tables(condition, limit)

    def owned_partitions_elsewhere(self, beginnings: Sequence[str]) -> list[PartitionsBelow]:
        """Descriptors say it for all partitions below a base; others have a descriptor without one."""
        base = DESCRIPTORS.c.base_location
        elsewhere = _of_descriptors(base, DESCRIPTORS.c.partition_count).where(_is_elsewhere(base, beginnings))
        place = PARTITIONS.c.location
        is_used = and_(
            PARTITIONS.c.table_id == DESCRIPTORS.c.table_id, PARTITIONS.c.descriptor_id == DESCRIPTORS.c.descriptor_id
        )
        absolute = (
            _of_descriptors(func.min(place), func.count())
            .join(PARTITIONS, is_used)
            .where(base.is_(None), _is_elsewhere(place, beginnings))
            .group_by(DATABASES.c.name, TABLES.c.name, TABLES.c.table_id, TABLES.c.parameters)
        )
        rows = [row for statement in (elsewhere, absolute) for row in self._connection.execute(statement)]
        return [
            PartitionsBelow(f"{shown_key(db_name)}.{name}", location, count)
            for db_name, name, parameters, location, count in rows
            if _owns_data(parameters)
        ]

    def _tables(self, condition: ColumnElement[bool], limit: int) -> list[TablePlace]:
        statement = _TABLES.where(condition).order_by(TABLES.c.table_id).limit(limit)
        return [_table(row) for row in self._connection.execute(statement)]

    def _partitions(self, statement: Select[Any]) -> list[PartitionPlace]:
        return [
            PartitionPlace(
                PartitionId(partition_id),
                TableId(table_id),
                name,
                None if descriptor_id is None else full_location(base, location, name),
            )
            for partition_id, table_id, name, location, base, descriptor_id in self._connection.execute(statement)
        ]


def _of_descriptors(*columns: ColumnElement[Any]) -> Select[Any]:
    """Rows about the descriptors of tables that may own their data: database, table, its parameters, and `columns`."""
    return (
        select(DATABASES.c.name, TABLES.c.name, TABLES.c.parameters, *columns)
        .select_from(DESCRIPTORS)
        .join(TABLES, TABLES.c.table_id == DESCRIPTORS.c.table_id)
        .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
        .where(_may_own())
    )


def _may_own() -> ColumnElement[bool]:
    """What is stored as external is; of the others the parameters say it."""
    kind = TABLES.c.table_type
    return or_(kind.is_(None), kind.not_in([TableType.EXTERNAL_TABLE.value, TableType.VIRTUAL_VIEW.value]))


def _is_elsewhere(location: ColumnElement[Any], beginnings: Sequence[str]) -> ColumnElement[bool]:
    """Whether there is a location that begins with none of the texts, whatever the column's collation."""
    return and_(location.is_not(None), *(func.substr(location, 1, len(one)) != one for one in beginnings))


def _owns_data(parameters: str | None) -> bool:
    """Decoding is for the few texts in which the word occurs at all."""
    return parameters is None or f'"{EXTERNAL_KEY}"' not in parameters or not is_external(decode_map(parameters))


def _database(name: str, location: str | None, extra: str | None) -> DatabasePlace:
    managed = decode_extra(Database, extra).managedLocationUri
    return DatabasePlace(name, tuple(one for one in (location, managed) if one))


def _table(row: Row[Any]) -> TablePlace:
    return TablePlace(
        TableId(row.table_id),
        row.db_name,
        row.name,
        row.location,
        not is_view(row.table_type) and _owns_data(row.parameters),
        tuple((key.name or "").lower() for key in decode_columns(row.partition_keys) or ()),
        row.partition_count,
        f'"{METADATA_LOCATION}"' in (row.parameters or ""),
    )
