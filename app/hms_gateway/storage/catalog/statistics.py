"""Statistics of columns as rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Insert, and_, bindparam, case, delete, func, insert, literal, or_, select, update
from sqlalchemy import Table as SqlTable

from hms_gateway.metastore.ports.store import StoredTable
from hms_gateway.metastore.vocabulary.names import PartitionId, TableId, normalize
from hms_gateway.metastore.vocabulary.parameters import with_accurate_columns, without_accurate_columns
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import ColumnStatisticsData_v4, FieldSchema
from hms_gateway.rpc.wire.tjson_codec import decode_value, encode_value
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PARTITION_STATISTICS, PARTITIONS, TABLE_STATISTICS
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.fragments import decode_map, encode_map
from hms_gateway.storage.sql.repository import AggregateRows, check_name, check_text

_DATA: Final = StructType("ColumnStatisticsData_v4")
_FIGURES: Final = ("column_name", "column_type", "data", "last_analyzed", "write_id")
_NEW_OF_TABLE: Final = insert(TABLE_STATISTICS)
_NEW_OF_PARTITION: Final = insert(PARTITION_STATISTICS)
_SET_PARAMETERS: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values(parameters=bindparam("new_parameters"))
)


class ColumnFigures(msgspec.Struct, frozen=True):
    """The statistics of one column, computed at `last_analyzed` (seconds); `write_id` is for transactional tables."""

    column: str
    column_type: str
    data: ColumnStatisticsData_v4
    last_analyzed: int
    write_id: int | None = None


class StatisticsRows(AggregateRows):
    def of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> list[ColumnFigures]:
        conditions = [TABLE_STATISTICS.c.table_id == table_id, TABLE_STATISTICS.c.engine == engine]
        rows = self._connection.execute(
            select(*(TABLE_STATISTICS.c[name] for name in _FIGURES))
            .where(*conditions, *self._of_columns(TABLE_STATISTICS, columns))
            .order_by(TABLE_STATISTICS.c.column_name)
        )
        return [_figures(*row) for row in rows]

    def of_partitions(
        self, table: StoredTable, engine: str, names: Sequence[str], columns: Sequence[str] | None = None
    ) -> dict[str, list[ColumnFigures]]:
        """By the name of the partition, in byte order; partitions without statistics are left out."""
        rows = self._connection.execute(
            select(PARTITIONS.c.part_name, *(PARTITION_STATISTICS.c[name] for name in _FIGURES))
            .join(PARTITION_STATISTICS, PARTITION_STATISTICS.c.partition_id == PARTITIONS.c.partition_id)
            .where(
                PARTITIONS.c.table_id == table.table_id,
                is_among(PARTITIONS.c.part_name, names, self._dialect),
                PARTITION_STATISTICS.c.engine == engine,
                *self._of_columns(PARTITION_STATISTICS, columns),
            )
            .order_by(PARTITIONS.c.part_name, PARTITION_STATISTICS.c.column_name)
        )
        found: dict[str, list[ColumnFigures]] = {}
        for name, *figures in rows:
            found.setdefault(name, []).append(_figures(*figures))
        return found

    def columns_of_table(self, table_id: TableId) -> list[str]:
        """The columns with statistics of any engine, in byte order."""
        names = select(TABLE_STATISTICS.c.column_name).distinct().where(TABLE_STATISTICS.c.table_id == table_id)
        return list(self._connection.execute(names.order_by(TABLE_STATISTICS.c.column_name)).scalars())

    def columns_of_partition(self, table: StoredTable, name: str) -> list[str]:
        """The same for a partition; none when it is not there."""
        ids = self.partition_ids(table, [name])
        is_it = has_id_among(PARTITION_STATISTICS.c.partition_id, ids.values(), self._dialect)
        names = select(PARTITION_STATISTICS.c.column_name).distinct().where(is_it)
        return list(self._connection.execute(names.order_by(PARTITION_STATISTICS.c.column_name)).scalars())

    def partition_ids(self, table: StoredTable, names: Sequence[str]) -> dict[str, PartitionId]:
        """Ids of the named partitions that exist."""
        rows = self._connection.execute(
            select(PARTITIONS.c.part_name, PARTITIONS.c.partition_id).where(
                PARTITIONS.c.table_id == table.table_id, is_among(PARTITIONS.c.part_name, names, self._dialect)
            )
        )
        return {name: PartitionId(partition_id) for name, partition_id in rows}

    def put_of_table(self, table_id: TableId, engine: str, figures: Sequence[ColumnFigures]) -> None:
        """Insert or replace."""
        self.delete_of_table(table_id, engine, [one.column for one in figures])
        rows = [{"table_id": table_id, "engine": engine, **_row(one, self._dialect)} for one in figures]
        self._insert(_NEW_OF_TABLE, rows)

    def put_of_partitions(
        self, table_id: TableId, engine: str, figures: Mapping[PartitionId, Sequence[ColumnFigures]]
    ) -> None:
        """Insert or replace, and note the columns in the partitions' COLUMN_STATS_ACCURATE."""
        alike: dict[tuple[str, ...], list[PartitionId]] = {}
        for partition_id, of_partition in figures.items():
            alike.setdefault(tuple(one.column for one in of_partition), []).append(partition_id)
        for columns, partition_ids in alike.items():
            self.delete_of_partitions(engine, partition_ids, columns)
        rows = [
            {"table_id": table_id, "partition_id": partition_id, "engine": engine, **_row(one, self._dialect)}
            for partition_id, of_partition in figures.items()
            for one in of_partition
        ]
        self._insert(_NEW_OF_PARTITION, rows)
        self._change_parameters(
            has_id_among(PARTITIONS.c.partition_id, figures, self._dialect),
            lambda partition_id, parameters: with_accurate_columns(
                parameters, (one.column for one in figures[partition_id])
            ),
        )

    def delete_of_table(self, table_id: TableId, engine: str, columns: Sequence[str] | None = None) -> int:
        """Delete statistics; the number of columns that lost theirs."""
        condition = and_(
            TABLE_STATISTICS.c.table_id == table_id,
            TABLE_STATISTICS.c.engine == engine,
            *self._of_columns(TABLE_STATISTICS, columns),
        )
        return self._connection.execute(delete(TABLE_STATISTICS).where(condition)).rowcount

    def delete_of_partitions(
        self, engine: str, partition_ids: Sequence[PartitionId], columns: Sequence[str] | None = None
    ) -> int:
        """The same for partitions."""
        condition = and_(
            has_id_among(PARTITION_STATISTICS.c.partition_id, partition_ids, self._dialect),
            PARTITION_STATISTICS.c.engine == engine,
            *self._of_columns(PARTITION_STATISTICS, columns),
        )
        return self._connection.execute(delete(PARTITION_STATISTICS).where(condition)).rowcount

    def keep_table_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> list[str]:
        """Delete what is not about a column of one of these names and types; the names that were deleted."""
        lost = self._lost(TABLE_STATISTICS, TABLE_STATISTICS.c.table_id == table_id, columns)
        if lost is None:
            return []
        names = self._connection.execute(select(TABLE_STATISTICS.c.column_name).where(lost).distinct()).scalars().all()
        self._connection.execute(delete(TABLE_STATISTICS).where(lost))
        return list(names)

    def keep_partition_columns(
        self, table_id: TableId, columns: Sequence[FieldSchema], partition_ids: Sequence[PartitionId] | None = None
    ) -> None:
        """The same for these partitions or all of the table, also in their COLUMN_STATS_ACCURATE."""
        among = PARTITION_STATISTICS.c.table_id == table_id
        if partition_ids is not None:
            among = and_(among, has_id_among(PARTITION_STATISTICS.c.partition_id, partition_ids, self._dialect))
        condition = self._lost(PARTITION_STATISTICS, among, columns)
        if condition is None:
            return
        lost: dict[int, list[str]] = {}
        for partition_id, column in self._connection.execute(
            select(PARTITION_STATISTICS.c.partition_id, PARTITION_STATISTICS.c.column_name).where(condition)
        ):
            lost.setdefault(partition_id, []).append(column)
        self._connection.execute(delete(PARTITION_STATISTICS).where(condition))
        self._change_parameters(
            has_id_among(PARTITIONS.c.partition_id, lost, self._dialect),
            lambda partition_id, parameters: without_accurate_columns(parameters, lost[partition_id]),
        )

    def delete_below(self, table_id: TableId, path: str) -> None:
        """Delete those of the partitions that lie at `path` or under it."""
        path = path.rstrip("/")
        of_table = PARTITION_STATISTICS.c.table_id == table_id
        if self._connection.execute(select(literal(1)).where(of_table).limit(1)).first() is None:
            return
        below = PARTITIONS.c.location
        base = DESCRIPTORS.c.base_location
        location = case(
            (base.is_(None), below), else_=base + func.coalesce(below, literal("/") + PARTITIONS.c.part_name)
        )
        moved = (
            select(PARTITIONS.c.partition_id)
            .join(DESCRIPTORS, DESCRIPTORS.c.descriptor_id == PARTITIONS.c.descriptor_id)
            .where(
                PARTITIONS.c.table_id == table_id,
                or_(location == path, func.substr(location, 1, len(path) + 1) == path + "/"),
            )
        )
        self._connection.execute(
            delete(PARTITION_STATISTICS).where(of_table, PARTITION_STATISTICS.c.partition_id.in_(moved))
        )

    def _of_columns(self, table: SqlTable, columns: Sequence[str] | None) -> list[ColumnElement[bool]]:
        return [] if columns is None else [is_among(table.c.column_name, columns, self._dialect)]

    def _lost(
        self, table: SqlTable, among: ColumnElement[bool], columns: Iterable[FieldSchema]
    ) -> ColumnElement[bool] | None:
        """What is stored about columns that have none of these names and types, None when there is nothing."""
        kept = {(normalize(column.name or ""), (column.type or "").lower()) for column in columns}
        pairs = select(table.c.column_name, table.c.column_type).where(among).distinct()
        lost: dict[str, list[str]] = {}
        for name, column_type in self._connection.execute(pairs):
            if (name, column_type.lower()) not in kept:
                lost.setdefault(column_type, []).append(name)
        of_types = [
            and_(table.c.column_type == column_type, is_among(table.c.column_name, names, self._dialect))
            for column_type, names in lost.items()
        ]
        return and_(among, or_(*of_types)) if of_types else None

    def _insert(self, insertion: Insert, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            self._run_together([Statement(insertion, rows)])

    def _change_parameters(
        self, condition: ColumnElement[bool], change: Callable[[PartitionId, dict[str, str]], dict[str, str]]
    ) -> None:
        rows = self._connection.execute(
            select(PARTITIONS.c.partition_id, PARTITIONS.c.parameters).where(condition)
        ).all()
        changed = []
        for partition_id, fragment in rows:
            parameters = decode_map(fragment)
            after = change(PartitionId(partition_id), parameters)
            if after != parameters:
                changed.append({"the_partition": partition_id, "new_parameters": encode_map(after)})
        if changed:
            self._run_together([Statement(_SET_PARAMETERS, changed)])


def _figures(column: str, column_type: str, data: str, last_analyzed: int, write_id: int | None) -> ColumnFigures:
    return ColumnFigures(column, column_type, decode_value(_DATA, data.encode()), last_analyzed, write_id)


def _row(figures: ColumnFigures, dialect: Dialect) -> dict[str, Any]:
    check_name("column", figures.column, dialect)
    check_text("column type", figures.column_type)
    return {
        "column_name": figures.column,
        "column_type": figures.column_type,
        "data": encode_value(_DATA, figures.data).decode(),
        "last_analyzed": figures.last_analyzed,
        "write_id": figures.write_id,
    }
