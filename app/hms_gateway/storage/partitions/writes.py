"""Changing partitions: the rows that store them, without the ids that a batch gives; sort keys, names and locations.

Every filter compares sort keys: the leading ones are in columns, the rest in a table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, literal, or_, select, update

from hms_gateway.metastore.ports.store import DuplicateKey, PartitionId, StoredPartition, StoredTable, TableId
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, class_sort_key, value_class
from hms_gateway.rpc.structs import Partition
from hms_gateway.storage.partitions.rows import ContentEncoder, Descriptor, DescriptorKey, Descriptors, placement
from hms_gateway.storage.schema.catalog import (
    DESCRIPTORS,
    FURTHER_KEYS,
    KEY_COLUMN_COUNT,
    KEY_COLUMNS,
    PARTITIONS,
    TABLES,
)
from hms_gateway.storage.sql.filter_sql import has_id_among, have_names
from hms_gateway.storage.sql.fragments import decode_texts, encode_map, encode_partition_extra, encode_texts
from hms_gateway.storage.sql.repository import Repository, check_name, check_text
from hms_gateway.storage.txn.batch_statements import RENAMED_PARTITIONS

SortKeys: TypeAlias = Sequence[str | None]

_KEY_NAMES: Final = tuple(column.name for column in KEY_COLUMNS)
_NO_KEYS: Final = dict.fromkeys(_KEY_NAMES)
_READ_AT_ONCE: Final = 1_000
_UPDATE_KEYS: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values({name: bindparam(f"new_{name}") for name in _KEY_NAMES})
)


def sort_keys(classes: Sequence[ValueClass], values: Sequence[str]) -> list[str | None]:
    """The sort key of each value. Raises UnstorableText."""
    keys = [class_sort_key(kind, value) for kind, value in zip(classes, values, strict=True)]
    for key in keys:
        check_text("partition value", key)
    return keys


def leading_keys(keys: SortKeys) -> dict[str, str | None]:
    """The columns that hold the leading keys, without those that a table with so many keys leaves empty."""
    return dict(zip(_KEY_NAMES, keys, strict=False))


def key_columns(keys: SortKeys) -> dict[str, str | None]:
    """The columns that hold the leading keys, all of them."""
    return {**_NO_KEYS, **leading_keys(keys)}


class PartitionKeys(Repository):
    def insert_further(self, table: StoredTable, names: Sequence[str]) -> None:
        """Store the keys that have no columns, of partitions that are just stored."""
        statement = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_values).where(
            have_names(table.table_id, names, self._dialect)
        )
        classes = [value_class(key.type or "") for key in table.table.partitionKeys or []]
        inserted = self._connection.execute(statement).all()
        self._insert_further(
            table.table_id, [(one, sort_keys(classes, decode_texts(values))) for one, values in inserted]
        )

    def _insert_further(self, table_id: TableId, keys: Iterable[tuple[int, SortKeys]]) -> None:
        further = [
            {"partition_id": partition_id, "position": position, "table_id": table_id, "sort_key": key}
            for partition_id, keys_of_one in keys
            for position, key in enumerate(keys_of_one)
            if position >= KEY_COLUMN_COUNT
        ]
        if further:
            self._connection.execute(insert(FURTHER_KEYS), further)

    def rewrite(self, table_id: TableId, classes: Sequence[ValueClass]) -> None:
        """A partition key changed its type, and with it how its values compare: make all keys of the table anew."""
        for rows in self._ids_and_values(table_id):
            self.replace(table_id, [(one, sort_keys(classes, decode_texts(values))) for one, values in rows])

    def replace(self, table_id: TableId, keys: Sequence[tuple[int, SortKeys]]) -> None:
        """Store other keys, given by partition id."""
        changes = [
            {"the_partition": partition_id, **{f"new_{name}": key for name, key in key_columns(found).items()}}
            for partition_id, found in keys
        ]
        self._connection.execute(_UPDATE_KEYS, changes)
        condition = has_id_among(FURTHER_KEYS.c.partition_id, [one for one, _ in keys], self._dialect)
        self._connection.execute(delete(FURTHER_KEYS).where(condition))
        self._insert_further(table_id, keys)

    def _ids_and_values(self, table_id: TableId) -> Iterator[list[tuple[int, str]]]:
        last = 0
        while True:
            statement = (
                select(PARTITIONS.c.partition_id, PARTITIONS.c.part_values)
                .where(PARTITIONS.c.table_id == table_id, PARTITIONS.c.partition_id > last)
                .order_by(PARTITIONS.c.partition_id)
                .limit(_READ_AT_ONCE)
            )
            rows = [(row[0], row[1]) for row in self._connection.execute(statement)]
            if not rows:
                return
            last = rows[-1][0]
            yield rows


class PartitionLocations(Repository):
    def move(self, table_id: TableId, old_path: str, new_path: str) -> list[str]:
        """Give what lies under `old_path` the same place under `new_path`.

        Changes a row for each descriptor, and rows of partitions that lie outside their table's directory. The names
        of those that lie below a part of their base, and so leave it, are returned.
        """
        check_text("location", new_path)
        names: list[str] = []
        for descriptor in Descriptors(self._connection).of_table(table_id):
            base = descriptor.base_location
            if base is None:
                self._move_absolute(table_id, descriptor, old_path, new_path)
            elif base == old_path or base.startswith(old_path + "/"):
                self._move_base(descriptor, new_path + base[len(old_path) :])
            elif old_path.startswith(base + "/"):
                below = func.coalesce(PARTITIONS.c.location, literal("/") + PARTITIONS.c.part_name)
                is_moved = and_(_uses(table_id, descriptor), _is_at_or_below(below, old_path[len(base) :]))
                names += self._connection.execute(select(PARTITIONS.c.part_name).where(is_moved)).scalars()
        return names

    def _move_base(self, descriptor: Descriptor, base: str) -> None:
        moved = update(DESCRIPTORS).where(DESCRIPTORS.c.descriptor_id == descriptor.descriptor_id)
        self._connection.execute(moved.values(base_location=base))

    def _move_absolute(self, table_id: TableId, descriptor: Descriptor, old_path: str, new_path: str) -> None:
        location = PARTITIONS.c.location
        moved = update(PARTITIONS).where(_uses(table_id, descriptor), _is_at_or_below(location, old_path))
        new_location = literal(new_path) + func.substr(location, len(old_path) + 1)
        self._connection.execute(moved.values(location=new_location))


def _uses(table_id: TableId, descriptor: Descriptor) -> ColumnElement[bool]:
    return and_(PARTITIONS.c.table_id == table_id, PARTITIONS.c.descriptor_id == descriptor.descriptor_id)


def _is_at_or_below(location: ColumnElement[Any], path: str) -> ColumnElement[bool]:
    """`path` itself or something under it, whatever the column's collation."""
    return or_(location == path, func.substr(location, 1, len(path) + 1) == path + "/")


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
        between = {one: f"\1{one}" for one in new_names}
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
