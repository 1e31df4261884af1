"""What units of work have changed in the catalog, as values, and the statements that write it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, insert, update

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement, Values
from hms_gateway.storage.partitions.rows import ADD_TO_DESCRIPTOR
from hms_gateway.storage.partitions.writes import ADD_PARTITIONS, UPDATE_PARTITION
from hms_gateway.storage.schema.catalog import (
    DESCRIPTORS,
    DROPPED_TABLES,
    FURTHER_KEYS,
    OF_PARTITIONED,
    OUTCOMES,
    PARTITION_MARKS,
    PARTITION_STATISTICS,
    PARTITIONS,
    PENDING_MOVES,
    PRIVILEGES,
    TABLE_INDEXES,
    TABLES,
)
from hms_gateway.storage.txn.batch_statements import NEW_EVENT, OF_PARTITIONS, PURGED, RENAMED, WRITE_IDS

PartitionKey: TypeAlias = tuple[int, str]  # the table's id, and the name
ContentKey: TypeAlias = tuple[int, str, str | None]  # of a descriptor: the table's id, the content's hash, and the base

_NEW_TABLE: Final = insert(TABLES)
_DELETED_LATER: Final = insert(DROPPED_TABLES)
_NEW_OUTCOME: Final = insert(OUTCOMES)
_NEW_DESCRIPTOR: Final = insert(DESCRIPTORS)
_NEW_PARTITION: Final = insert(PARTITIONS)
_CHANGED: Final = [column.name for column in TABLES.c if column.name not in ("table_id", "partition_count")]
_UPDATE_TABLE: Final = (
    update(TABLES)
    .where(TABLES.c.table_id == bindparam("the_table"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGED})
)
_DELETE_MOVE: Final = delete(PENDING_MOVES).where(PENDING_MOVES.c.move_id == bindparam("the_move"))


class DroppedTable(NamedTuple):
    """A table with descriptors has partitions, or had some when the batch began."""

    db_name: str
    name: str
    partition_count: int
    has_descriptors: bool
    has_indexes: bool


class RenamedTable(NamedTuple):
    old_db_name: str
    old_name: str
    db_name: str
    name: str


class DroppedPartition(NamedTuple):
    """Of which table. Partitions of one table are equal in this."""

    db_name: str
    table_name: str
    table_id: int
    has_further_keys: bool


class CatalogChanges:
    """Rows and ids. `tables` and `partitions` are rows as they are with the changes, by their names.

    Counts are differences. Of the tables in `lessened` descriptors may have lost their last partition.
    """

    def __init__(self, lessened: Iterable[int] = ()) -> None:
        """`lessened` are those of changes that were written before."""
        self.tables: dict[tuple[str, str], Any] = {}
        self.new_tables: dict[int, Values] = {}
        self.table_values: dict[int, Values] = {}
        self.dropped_tables: dict[int, DroppedTable] = {}
        self.renamed_tables: list[RenamedTable] = []
        self.deleted_moves: list[int] = []
        self.partitions: dict[PartitionKey, Any] = {}
        self.new_descriptors: dict[ContentKey, Values] = {}
        self.new_partitions: dict[PartitionKey, Values] = {}
        self.partition_values: dict[int, Values] = {}
        self.dropped_partitions: dict[int, DroppedPartition] = {}
        self.partition_counts: Counter[int] = Counter()
        self.descriptor_counts: Counter[int] = Counter()
        self.lessened = dict.fromkeys(lessened)
        self.events: list[Values] = []
        self.outcomes: list[Values] = []

    @property
    def touched_tables(self) -> set[int]:
        """Those that cannot be dropped before this is written."""
        return {*self.new_tables, *self.partition_counts, *(key[0] for key in self.new_descriptors)}

    def can_take(self, later: "CatalogChanges") -> bool:
        """Whether changes that come after these may be written with them: what is new is neither changed nor gone, and
        names that are given on are given on in their order.
        """
        if self.renamed_tables or (later.renamed_tables and (self.new_tables or self.table_values)):
            return False
        if self.new_tables.keys() & later.table_values.keys():
            return False
        return not later.dropped_tables or self.touched_tables.isdisjoint(later.dropped_tables)

    def take(self, later: "CatalogChanges") -> None:
        self.tables |= later.tables
        self.new_tables |= later.new_tables
        self.table_values |= later.table_values
        self.dropped_tables |= later.dropped_tables
        self.renamed_tables += later.renamed_tables
        self.deleted_moves += later.deleted_moves
        self.partitions |= later.partitions
        self.new_descriptors |= later.new_descriptors
        self.new_partitions |= later.new_partitions
        self.partition_values |= later.partition_values
        for partition_id in later.dropped_partitions:
            self.partition_values.pop(partition_id, None)
        self.dropped_partitions |= later.dropped_partitions
        self.partition_counts.update(later.partition_counts)
        self.descriptor_counts.update(later.descriptor_counts)
        self.lessened |= later.lessened
        self.events += later.events
        self.outcomes += later.outcomes

    def statements(self, dialect: Dialect) -> list[Statement]:
        """Statements that write it, in this order: a name that is free again may be taken. Unused descriptors stay."""
        return [
            *self._dropped_partitions(dialect),
            *self._dropped_tables(dialect),
            *_rows(_NEW_TABLE, list(self.new_tables.values())),
            *self._renames(),
            *_rows(_UPDATE_TABLE, list(self.table_values.values())),
            *_rows(_DELETE_MOVE, [{"the_move": move_id} for move_id in self.deleted_moves]),
            *_rows(_NEW_DESCRIPTOR, list(self.new_descriptors.values())),
            *self._new_partitions(),
            *_rows(UPDATE_PARTITION, list(self.partition_values.values())),
            *self._counts(),
            *_rows(NEW_EVENT, self.events),
            *_rows(_NEW_OUTCOME, self.outcomes),
        ]

    def unused_descriptors(self, dialect: Dialect) -> list[Statement]:
        """Deletions for the end of the batch: before, a unit of work may be about to use a descriptor again."""
        if not self.lessened:
            return []
        return [Statement(_statements(dialect).unused_descriptors, {"ids": dialect.bound_list(self.lessened)})]

    def _new_partitions(self) -> Iterable[Statement]:
        """Tables have columns for their first keys only: rows with the same ones go together."""
        together: dict[tuple[str, ...], list[Values]] = {}
        for row in self.new_partitions.values():
            together.setdefault(tuple(row), []).append(row)
        return [Statement(_NEW_PARTITION, rows) for rows in together.values()]

    def _counts(self) -> Iterable[Statement]:
        for sql, name, counts in (
            (ADD_PARTITIONS, "the_table", self.partition_counts),
            (ADD_TO_DESCRIPTOR, "the_descriptor", self.descriptor_counts),
        ):
            yield from _rows(sql, [{name: id, "difference": count} for id, count in counts.items() if count])

    def _renames(self) -> Iterable[Statement]:
        for each in self.renamed_tables:
            new = {"the_db": each.db_name, "the_name": each.name}
            yield from (Statement(sql, new) for sql in _FORGET_WRITE_IDS)
            old = {"old_db": each.old_db_name, "old_name": each.old_name}
            yield from (Statement(sql, {**old, "new_db": each.db_name, "new_name": each.name}) for sql in _RENAME)

    def _dropped_partitions(self, dialect: Dialect) -> Iterable[Statement]:
        dropped = self.dropped_partitions
        if not dropped:
            return
        made = _statements(dialect)
        ids = {"ids": dialect.bound_list(dropped)}
        tables = dict.fromkeys(dropped.values())
        for db_name, table_name, table_id, _ in tables:
            values = {"the_db": db_name, "the_name": table_name, "the_table": table_id, **ids}
            yield from (Statement(purge, values) for purge in made.partition_purges)
        table_ids = dialect.bound_list({each.table_id for each in tables})
        yield from (Statement(deletion, {**ids, "table_ids": table_ids}) for deletion in made.of_partitions)
        if any(each.has_further_keys for each in tables):
            yield Statement(made.further_keys, ids)
        yield Statement(made.partitions, ids)

    def _dropped_tables(self, dialect: Dialect) -> Iterable[Statement]:
        dropped = self.dropped_tables
        if not dropped:
            return
        made = _statements(dialect)
        names = sorted((each.db_name, each.name) for each in dropped.values())
        for db_name, pairs in groupby(names, lambda pair: pair[0]):
            values = {"the_db": db_name, "names": dialect.bound_list([name for _, name in pairs])}
            yield from (Statement(purge, values) for purge in made.purges)
        later = {table_id for table_id, each in dropped.items() if dialect.deletes_later(each.partition_count)}
        with_partitions = [
            table_id for table_id, each in dropped.items() if each.has_descriptors and table_id not in later
        ]
        with_indexes = [table_id for table_id, each in dropped.items() if each.has_indexes]
        yield from _rows(_DELETED_LATER, [{"table_id": table_id} for table_id in later])
        for deletions, ids in (
            (made.of_partitioned, with_partitions),
            (made.of_indexed, with_indexes),
            (made.of_all, list(dropped)),
        ):
            if ids:
                yield from (Statement(deletion, {"ids": dialect.bound_list(ids)}) for deletion in deletions)


class _Statements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        def among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
            return dialect.is_in_list(column, name)

        def of_tables(*tables: Any) -> list[Any]:
            return [delete(table).where(among(table.c.table_id, "ids")) for table in tables]

        self.purges = [
            delete(table).where(table.c.db_name == bindparam("the_db"), among(table.c.table_name, "names"))
            for table in PURGED
        ]
        self.of_partitioned = of_tables(*OF_PARTITIONED)
        self.of_indexed = of_tables(TABLE_INDEXES)
        self.of_all = of_tables(PARTITION_MARKS, TABLES)
        # Mostly there are none, which MariaDB finds out sooner without thousands of names.
        self.partition_purges = [
            delete(table).where(
                _is_it(table, "the_db", "the_name"),
                exists().where(
                    PARTITIONS.c.table_id == bindparam("the_table"),
                    PARTITIONS.c.part_name == table.c.partition_name,
                    among(PARTITIONS.c.partition_id, "ids"),
                ),
            )
            for table in OF_PARTITIONS
        ]
        self.of_partitions = [
            delete(table).where(among(table.c.table_id, "table_ids"), among(table.c.partition_id, "ids"))
            for table in (PARTITION_STATISTICS, PRIVILEGES)
        ]
        self.further_keys = delete(FURTHER_KEYS).where(among(FURTHER_KEYS.c.partition_id, "ids"))
        self.partitions = delete(PARTITIONS).where(among(PARTITIONS.c.partition_id, "ids"))
        self.unused_descriptors = delete(DESCRIPTORS).where(
            among(DESCRIPTORS.c.table_id, "ids"), DESCRIPTORS.c.partition_count == 0
        )


_statements: Final = cache(_Statements)


def _is_it(table: Any, db_name: str, name: str) -> ColumnElement[bool]:
    return and_(table.c.db_name == bindparam(db_name), table.c.table_name == bindparam(name))


# What was allocated under the new name before the table existed goes.
_FORGET_WRITE_IDS: Final = [delete(table).where(_is_it(table, "the_db", "the_name")) for table in WRITE_IDS]
_RENAME: Final = [
    update(table)
    .where(_is_it(table, "old_db", "old_name"))
    .values(db_name=bindparam("new_db"), table_name=bindparam("new_name"))
    for table in RENAMED
]


def _rows(sql: Any, rows: Sequence[Values]) -> Iterable[Statement]:
    if rows:
        yield Statement(sql, rows)
