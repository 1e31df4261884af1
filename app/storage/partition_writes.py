"""Changing partitions: whole sets at a time, never a statement for each (design D6)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, literal, or_, select, update

from app.metastore.ports import DuplicateKey, NewPartition, Selection, StoredPartition, StoredTable, TableId
from app.metastore.typed_values import ValueClass, value_class
from app.storage.errors import check_name, check_text
from app.storage.filter_sql import has_id_among, is_among
from app.storage.fragments import (
    DescriptorContent,
    decode_texts,
    encode_columns,
    encode_descriptor,
    encode_map,
    encode_partition_extra,
    encode_texts,
)
from app.storage.partition_keys import PartitionKeys, key_columns, sort_keys
from app.storage.partition_rows import Descriptor, placement
from app.storage.partitions import PartitionReads
from app.storage.schema import DESCRIPTORS, FURTHER_KEYS, KEY_COLUMN_COUNT, PARTITIONS, TABLES
from app.structs import FieldSchema, Partition, StorageDescriptor

DescriptorKey: TypeAlias = tuple[DescriptorContent, str | None]
Row: TypeAlias = dict[str, Any]

# Everything of a row that can change while the name stays.
_VALUE_NAMES: Final = (
    "descriptor_id", "part_values", "create_time", "last_access_time", "parameters", "location", "extra"
)  # fmt: skip
_UPDATE: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values({name: bindparam(f"new_{name}") for name in _VALUE_NAMES})
)
_DESCRIPTOR_FIELDS: Final = tuple(
    field.name for field in StorageDescriptor.definition.fields if field.name != "location"
)


class PartitionWrites(PartitionReads):
    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        if not partitions:
            return
        self._check_names_free(table, [partition.name for partition in partitions])
        rows = self._rows_of(table, [(new.name, new.partition) for new in partitions])
        self._insert_rows(table, rows)
        self._add_to_count(table.table_id, len(rows))
        self._add_to_descriptor_counts(table.table_id, Counter(row["descriptor_id"] for row in rows))

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
        self._update_rows([row for row in rows if row["part_name"] == old[row["partition_id"]][0]])
        difference = Counter(row["descriptor_id"] for row in rows)
        difference.subtract(descriptor_id for _, descriptor_id in old.values())
        self._add_to_descriptor_counts(table.table_id, difference)

    def delete_partitions(self, table: StoredTable, names: Sequence[str]) -> None:
        condition = and_(*self._conditions(table, Selection(names=names)))
        used = select(PARTITIONS.c.descriptor_id, func.count()).where(condition).group_by(PARTITIONS.c.descriptor_id)
        counts = {descriptor_id: -count for descriptor_id, count in self._connection.execute(used)}
        if not counts:
            return
        if len(table.table.partitionKeys or []) > KEY_COLUMN_COUNT:
            ids = select(PARTITIONS.c.partition_id).where(condition)
            self._connection.execute(delete(FURTHER_KEYS).where(FURTHER_KEYS.c.partition_id.in_(ids)))
        self._connection.execute(delete(PARTITIONS).where(condition))
        self._add_to_count(table.table_id, sum(counts.values()))
        self._add_to_descriptor_counts(table.table_id, counts)

    def replace_partition_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> None:
        fragment = encode_columns(columns)
        changed = [
            {
                "the_descriptor": descriptor.descriptor_id,
                "new_columns": fragment,
                "new_hash": descriptor.content.with_columns(fragment).content_hash,
            }
            for descriptor in self._descriptors_of(table_id)
        ]
        statement = (
            update(DESCRIPTORS)
            .where(DESCRIPTORS.c.descriptor_id == bindparam("the_descriptor"))
            .values(columns=bindparam("new_columns"), content_hash=bindparam("new_hash"))
        )
        if changed:
            self._connection.execute(statement, changed)

    def move_partition_locations(self, table_id: TableId, old_path: str, new_path: str) -> None:
        """Touches a row for each descriptor only, unless partitions lie under a part of their base or outside it."""
        check_text("location", new_path)
        old_path, new_path = old_path.rstrip("/"), new_path.rstrip("/")
        for descriptor in self._descriptors_of(table_id):
            base = descriptor.base_location
            if base is None:
                self._move_absolute(table_id, descriptor, old_path, new_path)
            elif base == old_path or base.startswith(old_path + "/"):
                moved = update(DESCRIPTORS).where(DESCRIPTORS.c.descriptor_id == descriptor.descriptor_id)
                self._connection.execute(moved.values(base_location=new_path + base[len(old_path) :]))
            elif old_path.startswith(base + "/"):
                self._move_part_of_base(table_id, descriptor, old_path[len(base) :], new_path)

    def _move_absolute(self, table_id: TableId, descriptor: Descriptor, old_path: str, new_path: str) -> None:
        location = PARTITIONS.c.location
        moved = (
            update(PARTITIONS)
            .where(PARTITIONS.c.table_id == table_id, PARTITIONS.c.descriptor_id == descriptor.descriptor_id)
            .where(_is_at_or_below(location, old_path))
            .values(location=literal(new_path) + func.substr(location, len(old_path) + 1))
        )
        self._connection.execute(moved)

    def _move_part_of_base(self, table_id: TableId, descriptor: Descriptor, old_below: str, new_path: str) -> None:
        """Those partitions leave their base: their locations become absolute."""
        below = func.coalesce(PARTITIONS.c.location, literal("/") + PARTITIONS.c.part_name)
        condition = and_(
            PARTITIONS.c.table_id == table_id,
            PARTITIONS.c.descriptor_id == descriptor.descriptor_id,
            _is_at_or_below(below, old_below),
        )
        counted = select(func.count()).select_from(PARTITIONS).where(condition)
        count = self._connection.execute(counted).scalar_one()
        if not count:
            return
        without_base = self._descriptor_ids(table_id, [(descriptor.content, None)])[descriptor.content, None]
        moved = update(PARTITIONS).where(condition)
        location = literal(new_path) + func.substr(below, len(old_below) + 1)
        self._connection.execute(moved.values(descriptor_id=without_base, location=location))
        self._add_to_descriptor_counts(table_id, {without_base: count, descriptor.descriptor_id: -count})

    def _check_names_free(self, table: StoredTable, names: Sequence[str]) -> None:
        for name in names:
            check_name("partition", name)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        statement = select(PARTITIONS.c.part_name).where(
            PARTITIONS.c.table_id == table.table_id, is_among(PARTITIONS.c.part_name, names, self._dialect_name)
        )
        taken = {*repeated, *self._connection.execute(statement).scalars()}
        if taken:
            raise DuplicateKey(next(name for name in names if name in taken))

    def _rows_of(self, table: StoredTable, partitions: Sequence[tuple[str, Partition]]) -> list[Row]:
        """The rows to store, with their descriptors stored already, but not yet counted."""
        table_location = None if table.table.sd is None else table.table.sd.location
        classes = [value_class(key.type or "") for key in table.table.partitionKeys or []]
        contents = _Contents()
        keys: list[DescriptorKey | None] = []
        rows = []
        for name, partition in partitions:
            key, below = None, None
            if partition.sd is not None:
                check_text("location", partition.sd.location)
                base, below = placement(partition.sd.location, table_location, name)
                key = contents.of(partition.sd), base
            keys.append(key)
            rows.append(_row(table.table_id, name, partition, below, classes))
        ids = self._descriptor_ids(table.table_id, dict.fromkeys(key for key in keys if key is not None))
        for row, key in zip(rows, keys, strict=True):
            row["descriptor_id"] = key and ids[key]
        return rows

    def _insert_rows(self, table: StoredTable, rows: Sequence[Row]) -> None:
        self._load_rows(rows)
        keys = table.table.partitionKeys or []
        if len(keys) <= KEY_COLUMN_COUNT:
            return
        names = [row["part_name"] for row in rows]
        statement = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_values).where(
            PARTITIONS.c.table_id == table.table_id, is_among(PARTITIONS.c.part_name, names, self._dialect_name)
        )
        classes = [value_class(key.type or "") for key in keys]
        inserted = self._connection.execute(statement).all()
        found = [(partition_id, sort_keys(classes, decode_texts(values))) for partition_id, values in inserted]
        PartitionKeys(self._connection).insert_further(table.table_id, found)

    def _load_rows(self, rows: Sequence[Row]) -> None:
        if self._dialect_name != "postgresql":
            self._connection.execute(insert(PARTITIONS), rows)
            return
        # Its bulk path takes a quarter of the time of as many inserts.
        columns = list(rows[0])
        cursor: Any = self._connection.connection.cursor()
        with cursor, cursor.copy(f"COPY partitions ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row[name] for name in columns])

    def _old_rows(self, table_id: TableId, ids: Sequence[int]) -> dict[int, tuple[str, int | None]]:
        statement = select(PARTITIONS.c.partition_id, PARTITIONS.c.part_name, PARTITIONS.c.descriptor_id).where(
            PARTITIONS.c.table_id == table_id, has_id_among(PARTITIONS.c.partition_id, ids, self._dialect_name)
        )
        return {row[0]: (row[1], row[2]) for row in self._connection.execute(statement)}

    def _replace_rows(self, table: StoredTable, rows: Sequence[Row]) -> None:
        """Renamed partitions go and come back under their ids, so that names may also change places."""
        if not rows:
            return
        ids = [row["partition_id"] for row in rows]
        PartitionKeys(self._connection).delete_further(ids)
        condition = has_id_among(PARTITIONS.c.partition_id, ids, self._dialect_name)
        self._connection.execute(delete(PARTITIONS).where(condition))
        self._check_names_free(table, [row["part_name"] for row in rows])
        self._insert_rows(table, rows)

    def _update_rows(self, rows: Sequence[Row]) -> None:
        if rows:
            changes = [
                {"the_partition": row["partition_id"], **{f"new_{name}": row[name] for name in _VALUE_NAMES}}
                for row in rows
            ]
            self._connection.execute(_UPDATE, changes)

    def _add_to_count(self, table_id: TableId, difference: int) -> None:
        count = TABLES.c.partition_count + difference
        self._connection.execute(update(TABLES).where(TABLES.c.table_id == table_id).values(partition_count=count))

    def _add_to_descriptor_counts(self, table_id: TableId, differences: dict[int | None, int]) -> None:
        changes = [
            {"the_descriptor": descriptor_id, "difference": difference}
            for descriptor_id, difference in differences.items()
            if descriptor_id is not None and difference
        ]
        if not changes:
            return
        statement = (
            update(DESCRIPTORS)
            .where(DESCRIPTORS.c.descriptor_id == bindparam("the_descriptor"))
            .values(partition_count=DESCRIPTORS.c.partition_count + bindparam("difference"))
        )
        self._connection.execute(statement, changes)
        if any(change["difference"] < 0 for change in changes):
            unused = and_(DESCRIPTORS.c.table_id == table_id, DESCRIPTORS.c.partition_count == 0)
            self._connection.execute(delete(DESCRIPTORS).where(unused))

    def _descriptor_ids(self, table_id: TableId, wanted: Iterable[DescriptorKey]) -> dict[DescriptorKey, int]:
        """Find descriptors by content and base, storing those that are new."""
        keys = list(wanted)
        hashes = {content.content_hash for content, _ in keys}
        statement = select(DESCRIPTORS.c.content_hash, DESCRIPTORS.c.base_location, DESCRIPTORS.c.descriptor_id).where(
            DESCRIPTORS.c.table_id == table_id, is_among(DESCRIPTORS.c.content_hash, hashes, self._dialect_name)
        )
        known = {(row[0], row[1]): row[2] for row in self._connection.execute(statement)}
        new = [(content, base) for content, base in keys if (content.content_hash, base) not in known]
        ids = {key: known.get((key[0].content_hash, key[1])) for key in keys}
        if new:
            # One unit of work runs at a time, so nobody else can take these ids.
            first = (self._connection.execute(select(func.max(DESCRIPTORS.c.descriptor_id))).scalar() or 0) + 1
            ids.update(zip(new, range(first, first + len(new)), strict=True))
            self._connection.execute(insert(DESCRIPTORS), [_descriptor_row(table_id, ids[key], *key) for key in new])
        return {key: found for key, found in ids.items() if found is not None}

    def _descriptors_of(self, table_id: TableId) -> list[Descriptor]:
        statement = select(DESCRIPTORS.c.descriptor_id).where(DESCRIPTORS.c.table_id == table_id)
        return self._descriptors(self._connection.execute(statement).scalars().all())


class _Contents:
    """Encodes storage descriptors; those of one request are mostly equal but for the location."""

    def __init__(self) -> None:
        self._last: StorageDescriptor | None = None
        self._content: DescriptorContent | None = None
        self._seen: dict[DescriptorContent, DescriptorContent] = {}

    def of(self, descriptor: StorageDescriptor) -> DescriptorContent:
        last = self._last
        if self._content is not None and all(
            getattr(descriptor, name) == getattr(last, name) for name in _DESCRIPTOR_FIELDS
        ):
            return self._content
        content = encode_descriptor(descriptor)
        self._last, self._content = descriptor, self._seen.setdefault(content, content)
        return self._content


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
        **key_columns(sort_keys(classes, values)),
    }


def _descriptor_row(table_id: TableId, descriptor_id: Any, content: DescriptorContent, base: str | None) -> Row:
    return {
        "descriptor_id": descriptor_id,
        "table_id": table_id,
        "content_hash": content.content_hash,
        "columns": content.columns,
        "rest": content.rest,
        "skew_locations": content.skew_locations,
        "base_location": base,
        "partition_count": 0,
    }


def _is_at_or_below(location: ColumnElement[Any], path: str) -> ColumnElement[bool]:
    """`path` itself or something under it, whatever the column's collation."""
    return or_(location == path, func.substr(location, 1, len(path) + 1) == path + "/")
