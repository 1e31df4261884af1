"""Partitions of a table by their names, and the descriptors of few in a statement that is sent together with theirs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import and_, bindparam, select

from hms_gateway.metastore.ports.store import PartitionId, StoredPartition, StoredTable
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.partitions.descriptors import DESCRIPTOR_COLUMNS
from hms_gateway.storage.partitions.rows import ROW_COLUMNS, Descriptor, StructRows
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PARTITIONS
from hms_gateway.storage.sql.texts import is_storable

NamedRow: TypeAlias = Sequence[Any]
"""The id of a partition, then ROW_COLUMNS."""


# To find the descriptors, the database looks each name up once more. Above this it takes longer than one more message.
TOGETHER_MAX: Final = 100


def rows_by_names(table_id: int, names: Iterable[str], dialect: Dialect) -> list[Statement]:
    """A statement for the rows, in no order, and where `reads_descriptors` one for their descriptors."""
    wanted = [name for name in dict.fromkeys(names) if is_storable(name)]
    if len(wanted) == 1:
        return [Statement(sql, {"the_table": table_id, "the_name": wanted[0]}) for sql in _OF_ONE]
    values = {"the_table": table_id, "names": dialect.bound_list(wanted)}
    return [Statement(sql, values) for sql in _of_many(dialect)[: 2 if reads_descriptors(wanted) else 1]]


def reads_descriptors(names: Collection[str]) -> bool:
    """Whether descriptors are read together with the rows of these names, each of which is another one."""
    return len(names) <= TOGETHER_MAX


_OF_TABLE: Final = PARTITIONS.c.table_id == bindparam("the_table")
_ROWS: Final = select(PARTITIONS.c.partition_id, *ROW_COLUMNS)
_USED: Final = select(PARTITIONS.c.descriptor_id)
_IS_ONE: Final = and_(_OF_TABLE, PARTITIONS.c.part_name == bindparam("the_name"))
# PostgreSQL plans statements with lists each time.
_OF_ONE: Final = [
    _ROWS.where(_IS_ONE),
    select(*DESCRIPTOR_COLUMNS).where(DESCRIPTORS.c.descriptor_id == _USED.where(_IS_ONE).scalar_subquery()),
]


@cache
def _of_many(dialect: Dialect) -> list[Any]:
    are_wanted = dialect.has_name(PARTITIONS.c.partition_id, PARTITIONS.c.part_name, "names", _OF_TABLE)
    descriptors = select(*DESCRIPTOR_COLUMNS)
    return [
        _ROWS.where(are_wanted),
        descriptors.where(dialect.is_among_rows(DESCRIPTORS.c.descriptor_id, _USED.where(are_wanted))),
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
