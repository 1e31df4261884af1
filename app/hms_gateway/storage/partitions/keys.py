"""The sort keys of partition values, which every filter compares: the leading ones in columns, the rest in a table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from sqlalchemy import bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.store import StoredTable, TableId
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, class_sort_key, value_class
from hms_gateway.storage.schema.catalog import FURTHER_KEYS, KEY_COLUMN_COUNT, KEY_COLUMNS, PARTITIONS
from hms_gateway.storage.sql.filter_sql import has_id_among, have_names
from hms_gateway.storage.sql.fragments import decode_texts
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import check_text

SortKeys: TypeAlias = Sequence[str | None]

_NAMES: Final = tuple(column.name for column in KEY_COLUMNS)
_NO_KEYS: Final = dict.fromkeys(_NAMES)
_READ_AT_ONCE: Final = 1_000
_UPDATE: Final = (
    update(PARTITIONS)
    .where(PARTITIONS.c.partition_id == bindparam("the_partition"))
    .values({name: bindparam(f"new_{name}") for name in _NAMES})
)


def sort_keys(classes: Sequence[ValueClass], values: Sequence[str]) -> list[str | None]:
    """The sort key of each value. Raises UnstorableText."""
    keys = [class_sort_key(kind, value) for kind, value in zip(classes, values, strict=True)]
    for key in keys:
        check_text("partition value", key)
    return keys


def leading_keys(keys: SortKeys) -> dict[str, str | None]:
    """The columns that hold the leading keys, without those that a table with so many keys leaves empty."""
    return dict(zip(_NAMES, keys, strict=False))


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
        self._connection.execute(_UPDATE, changes)
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
