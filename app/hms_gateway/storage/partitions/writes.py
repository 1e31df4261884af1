"""Partitions as the rows that store them, but for the ids that a batch gives; and their names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import bindparam, select, update

from hms_gateway.metastore.ports.store import DuplicateKey, PartitionId, StoredPartition, StoredTable, TableId
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, value_class
from hms_gateway.storage.partitions.descriptors import ContentEncoder, DescriptorKey
from hms_gateway.storage.partitions.keys import PartitionKeys, leading_keys, sort_keys
from hms_gateway.storage.partitions.rows import placement
from hms_gateway.storage.schema.catalog import PARTITIONS, TABLES
from hms_gateway.storage.sql.filter_sql import has_id_among, have_names
from hms_gateway.storage.sql.fragments import encode_map, encode_partition_extra, encode_texts
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import check_name, check_text
from hms_gateway.storage.txn.names import RENAMED_PARTITIONS
from hms_gateway.structs import Partition

Row: TypeAlias = dict[str, Any]

# Everything of a row that can change while the name stays.
VALUE_NAMES: Final = (
    "descriptor_id", "part_values", "create_time", "last_access_time", "parameters", "location", "extra"
)  # fmt: skip
UPDATE_PARTITION: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values({name: bindparam(f"new_{name}") for name in VALUE_NAMES})
)
ADD_PARTITIONS: Final = (
    update(TABLES)
    .where(TABLES.c.table_id == bindparam("the_table"))
    .values(partition_count=TABLES.c.partition_count + bindparam("difference"))
)

_RENAME: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values(part_name=bindparam("new_name"))
)
_RENAME_IN_TXNS: Final = [
    update(table)
    .where(
        table.c.db_name == bindparam("the_db"),
        table.c.table_name == bindparam("the_table"),
        table.c.partition_name == bindparam("old_name"),
    )
    .values(partition_name=bindparam("new_name"))
    for table in RENAMED_PARTITIONS
]


class PartitionNames(Repository):
    def rename(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> None:
        """Give partitions, by their ids, the names and keys that they have here. Raises DuplicateKey.

        What transactions have noted under their old names follows. Names may change places.
        """
        new_names = {one.partition_id: one.name for one in partitions}
        found = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_name).where(
            PARTITIONS.c.table_id == table.table_id,
            has_id_among(PARTITIONS.c.partition_id, new_names, self._dialect),
        )
        old_names = {PartitionId(row[0]): row[1] for row in self._connection.execute(found)}
        if len(old_names) != len(partitions):
            raise AssertionError("a partition to update is not there, or is there twice")
        self._check_names_free(table, [one.name for one in partitions], {*old_names.values()})
        # In two steps, or a name that is given on within the same call would be taken along.
        between = {one: f"\1{name}" for one, name in new_names.items()}
        self._rename(table, old_names, between)
        self._rename(table, between, new_names)
        classes = [value_class(key.type or "") for key in table.table.partitionKeys or []]
        keys = [(one.partition_id, sort_keys(classes, one.partition.values or [])) for one in partitions]
        PartitionKeys(self._connection).replace(table.table_id, keys)

    def _rename(self, table: StoredTable, before: Mapping[PartitionId, str], after: Mapping[PartitionId, str]) -> None:
        """From these names to those, by ids."""
        of_table = {"the_db": table.table.dbName, "the_table": table.table.tableName}
        rows = [{"the_partition": one, "new_name": name} for one, name in after.items()]
        self._connection.execute(_RENAME, rows)
        names = [{**of_table, "old_name": before[one], "new_name": name} for one, name in after.items()]
        for statement in _RENAME_IN_TXNS:
            self._connection.execute(statement, names)

    def _check_names_free(self, table: StoredTable, names: Sequence[str], given_up: set[str]) -> None:
        for name in names:
            check_name("partition", name, self._dialect)
        named = select(PARTITIONS.c.part_name).where(have_names(table.table_id, names, self._dialect))
        taken = {*self._connection.execute(named).scalars()} - given_up
        taken |= {name for name, count in Counter(names).items() if count > 1}
        if taken:
            raise DuplicateKey(next(name for name in names if name in taken))


def new_values(partition_id: int, row: Row) -> Row:
    """For UPDATE_PARTITION."""
    return {"the_partition": partition_id, **{f"new_{name}": row[name] for name in VALUE_NAMES}}


def encoded_rows(
    table: StoredTable, partitions: Iterable[tuple[str, Partition]]
) -> tuple[list[Row], list[DescriptorKey | None]]:
    """The rows of partitions, given by name, without the ids of their descriptors; and these. Raises UnstorableText."""
    table_location = None if table.table.sd is None else table.table.sd.location
    classes = [value_class(key.type or "") for key in table.table.partitionKeys or []]
    contents = ContentEncoder()
    keys: list[DescriptorKey | None] = []
    rows = []
    for name, partition in partitions:
        key, below = None, None
        if partition.sd is not None:
            check_text("location", partition.sd.location)
            base, below = placement(partition.sd.location, table_location, name)
            key = contents.encode(partition.sd), base
        keys.append(key)
        rows.append(_row(table.table_id, name, partition, below, classes))
    return rows, keys


def _row(table_id: TableId, name: str, partition: Partition, below: str | None, classes: Sequence[ValueClass]) -> Row:
    values = partition.values or []
    return {
        "table_id": table_id,
        "part_name": name,
        "descriptor_id": None,
        "part_values": encode_texts(values),
        "create_time": partition.createTime or 0,
        "last_access_time": partition.lastAccessTime or 0,
        "parameters": encode_map(partition.parameters),
        "location": below,
        "extra": encode_partition_extra(partition),
        **leading_keys(sort_keys(classes, values)),
    }
