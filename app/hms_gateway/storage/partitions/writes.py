"""Changing partitions: whole sets at a time, never a statement for each (design D6)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import and_, bindparam, delete, select, update

from hms_gateway.metastore.ports.store import (
    DuplicateKey,
    NewPartition,
    Selection,
    StoredPartition,
    StoredTable,
    TableId,
)
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, value_class
from hms_gateway.storage.partitions.by_names import as_stored
from hms_gateway.storage.partitions.descriptors import ContentEncoder, DescriptorKey, Descriptors
from hms_gateway.storage.partitions.keys import PartitionKeys, leading_keys, sort_keys
from hms_gateway.storage.partitions.locations import PartitionLocations
from hms_gateway.storage.partitions.reads import PartitionReads
from hms_gateway.storage.partitions.rows import placement
from hms_gateway.storage.schema.catalog import (
    FURTHER_KEYS,
    KEY_COLUMN_COUNT,
    PARTITION_STATISTICS,
    PARTITIONS,
    PRIVILEGES,
    TABLES,
)
from hms_gateway.storage.sql.filter_sql import has_id_among, have_names
from hms_gateway.storage.sql.fragments import decode_texts, encode_map, encode_partition_extra, encode_texts
from hms_gateway.storage.sql.texts import check_name, check_text
from hms_gateway.storage.txn.names import TxnNames
from hms_gateway.structs import FieldSchema, Partition

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


class PartitionWrites(PartitionReads):
    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        if not partitions:
            return
        self._check_names_free(table, [partition.name for partition in partitions])
        rows = self._rows_of(table, [(new.name, new.partition) for new in partitions])
        self._insert_rows(table, rows)
        self._add_to_count(table.table_id, len(rows))
        Descriptors(self._connection).add_to_counts(table.table_id, Counter(row["descriptor_id"] for row in rows))

    def update_partitions(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> None:
        if not partitions:
            return
        ids = [stored.partition_id for stored in partitions]
        old = self._old_rows(table.table_id, ids)
        if len(old) != len(ids):
            raise AssertionError("a partition to update is not there, or is there twice")
        rows = self._rows_of(table, [(stored.name, stored.partition) for stored in partitions])
        for row, partition_id in zip(rows, ids, strict=True):
            row["partition_id"] = partition_id
        renamed = [row for row in rows if row["part_name"] != old[row["partition_id"]][0]]
        self._replace_rows(table, renamed)
        self._rename_in_txns(table, {old[row["partition_id"]][0]: row["part_name"] for row in renamed})
        self._update_rows([row for row in rows if row["part_name"] == old[row["partition_id"]][0]])
        difference = Counter(row["descriptor_id"] for row in rows)
        difference.subtract(descriptor_id for _, descriptor_id in old.values())
        Descriptors(self._connection).add_to_counts(table.table_id, difference)

    def are_unchanged(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> bool:
        rows, descriptors = self._named_rows(table, [one.name for one in partitions])
        stored = {row[1]: as_stored(row, descriptors) for row in rows}
        return all(stored.get(one.name) == one.as_stored for one in partitions)

    def delete_partitions(self, table: StoredTable, names: Sequence[str]) -> None:
        named = and_(*self._conditions(table, Selection(names=names)))
        found = select(PARTITIONS.c.partition_id, PARTITIONS.c.descriptor_id).where(named)
        used: dict[int, int | None] = {row[0]: row[1] for row in self._connection.execute(found)}
        if not used:
            return
        has_further_keys = len(table.table.partitionKeys or []) > KEY_COLUMN_COUNT
        for dependent in (*([FURTHER_KEYS] if has_further_keys else ()), PARTITION_STATISTICS, PRIVILEGES):
            among = has_id_among(dependent.c.partition_id, used, self._dialect)
            self._connection.execute(delete(dependent).where(dependent.c.table_id == table.table_id, among))
        self._connection.execute(delete(PARTITIONS).where(has_id_among(PARTITIONS.c.partition_id, used, self._dialect)))
        TxnNames(self._connection).drop_partitions(table.table.dbName or "", table.table.tableName or "", names)
        self._add_to_count(table.table_id, -len(used))
        difference: Counter[int | None] = Counter()
        difference.subtract(used.values())
        Descriptors(self._connection).add_to_counts(table.table_id, difference)

    def replace_partition_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> None:
        Descriptors(self._connection).replace_columns(table_id, columns)

    def move_partition_locations(self, table_id: TableId, old_path: str, new_path: str) -> None:
        PartitionLocations(self._connection).move(table_id, old_path, new_path)

    def _rename_in_txns(self, table: StoredTable, new_names: dict[str, str]) -> None:
        TxnNames(self._connection).rename_partitions(table.table.dbName or "", table.table.tableName or "", new_names)

    def _check_names_free(self, table: StoredTable, names: Sequence[str]) -> None:
        for name in names:
            check_name("partition", name, self._dialect)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        taken = {*repeated, *self.partition_names(table, Selection(names=names))}
        if taken:
            raise DuplicateKey(next(name for name in names if name in taken))

    def _rows_of(self, table: StoredTable, partitions: Sequence[tuple[str, Partition]]) -> list[Row]:
        """The rows to store, with their descriptors stored already, but not yet counted."""
        rows, keys = encoded_rows(table, partitions)
        ids = Descriptors(self._connection).ids_of(
            table.table_id, dict.fromkeys(key for key in keys if key is not None)
        )
        for row, key in zip(rows, keys, strict=True):
            row["descriptor_id"] = key and ids[key]
        return rows

    def _insert_rows(self, table: StoredTable, rows: Sequence[Row]) -> None:
        self._dialect.insert_rows(self._connection, PARTITIONS, rows)
        keys = table.table.partitionKeys or []
        if len(keys) <= KEY_COLUMN_COUNT:
            return
        names = [row["part_name"] for row in rows]
        statement = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_values).where(
            have_names(table.table_id, names, self._dialect)
        )
        classes = [value_class(key.type or "") for key in keys]
        inserted = self._connection.execute(statement).all()
        found = [(partition_id, sort_keys(classes, decode_texts(values))) for partition_id, values in inserted]
        PartitionKeys(self._connection).insert_further(table.table_id, found)

    def _old_rows(self, table_id: TableId, ids: Sequence[int]) -> dict[int, tuple[str, int | None]]:
        statement = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_name, PARTITIONS.c.descriptor_id).where(
            PARTITIONS.c.table_id == table_id, has_id_among(PARTITIONS.c.partition_id, ids, self._dialect)
        )
        return {row[0]: (row[1], row[2]) for row in self._connection.execute(statement)}

    def _replace_rows(self, table: StoredTable, rows: Sequence[Row]) -> None:
        """Renamed partitions go and come back under their ids, so that names may also change places."""
        if not rows:
            return
        ids = [row["partition_id"] for row in rows]
        PartitionKeys(self._connection).delete_further(ids)
        condition = has_id_among(PARTITIONS.c.partition_id, ids, self._dialect)
        self._connection.execute(delete(PARTITIONS).where(condition))
        self._check_names_free(table, [row["part_name"] for row in rows])
        self._insert_rows(table, rows)

    def _update_rows(self, rows: Sequence[Row]) -> None:
        if rows:
            self._connection.execute(UPDATE_PARTITION, [new_values(row["partition_id"], row) for row in rows])

    def _add_to_count(self, table_id: TableId, difference: int) -> None:
        self._connection.execute(ADD_PARTITIONS, {"the_table": table_id, "difference": difference})


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
