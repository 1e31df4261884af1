"""Partitions of a table by their names, with their descriptors: two statements that are sent together."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import bindparam, select

from hms_gateway.metastore.ports.store import PartitionId, StoredPartition, StoredTable
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.partitions.descriptors import DESCRIPTOR_COLUMNS
from hms_gateway.storage.partitions.rows import ROW_COLUMNS, Descriptor, StructRows
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PARTITIONS
from hms_gateway.storage.sql.texts import is_storable

NamedRow: TypeAlias = Sequence[Any]
"""The id of a partition, then ROW_COLUMNS."""


def rows_by_names(table_id: int, names: Iterable[str], dialect: Dialect) -> list[Statement]:
    """Statements for the rows, in no order, and for their descriptors."""
    wanted = [name for name in dict.fromkeys(names) if is_storable(name)]
    values = {"the_table": table_id, "names": dialect.bound_list(wanted)}
    return [Statement(sql, values) for sql in _statements(dialect)]


@cache
def _statements(dialect: Dialect) -> list[Any]:
    are_wanted = dialect.has_name(
        PARTITIONS.c.partition_id, PARTITIONS.c.part_name, "names", PARTITIONS.c.table_id == bindparam("the_table")
    )
    used = select(PARTITIONS.c.descriptor_id).where(are_wanted)
    return [
        select(PARTITIONS.c.partition_id, *ROW_COLUMNS).where(are_wanted),
        select(*DESCRIPTOR_COLUMNS).where(dialect.is_among_rows(DESCRIPTORS.c.descriptor_id, used)),
    ]


def stored_partitions(
    table: StoredTable, rows: Sequence[NamedRow], descriptors: Mapping[int, Descriptor]
) -> list[StoredPartition]:
    """As objects. They remember their rows, by which storage sees whether they have changed."""
    builder = StructRows(table.table)
    builder.learn(descriptors[used] for used in {row[2] for row in rows if row[2] is not None})
    built = builder.build([row[1:] for row in rows])  # type: ignore[misc]
    return [
        StoredPartition(PartitionId(row[0]), row[1], partition, as_stored(row, descriptors))
        for row, partition in zip(rows, built, strict=True)
    ]


def as_stored(row: NamedRow, descriptors: Mapping[int, Descriptor]) -> object:
    """All that is stored of a partition. Of two that are equal the partitions are equal."""
    return tuple(row), None if row[2] is None else descriptors[row[2]]
