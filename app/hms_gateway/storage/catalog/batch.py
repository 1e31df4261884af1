"""What units of work that wait together ask of the catalog and change in it: read for all of them at once, written for
all of them at once.

Each still runs alone, one after the other, over values that already contain what those before it changed. What one
changes is kept apart until it succeeds (`CatalogChanges`), so one that raises has changed nothing. What callers say
they need (`ports.CatalogWork`) is read ahead, with the lock on the catalog; what turns out to be missing is read when
it is asked for.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias, cast

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.store import (
    CatalogWork,
    EventId,
    NewPartition,
    PendingMove,
    StoredDatabase,
    StoredTable,
    TableId,
    UnstorableText,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.catalog.databases import DATABASE_BY_NAME, stored_database
from hms_gateway.storage.catalog.tables import TABLE_BY_NAME, TableRow
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement, Values
from hms_gateway.storage.partitions.descriptors import (
    ADD_TO_DESCRIPTOR,
    LAST_DESCRIPTOR,
    DescriptorKey,
    known_descriptors,
)
from hms_gateway.storage.partitions.writes import ADD_PARTITIONS, encoded_rows
from hms_gateway.storage.schema.catalog import (
    CATALOG,
    DESCRIPTORS,
    FURTHER_KEYS,
    KEY_COLUMN_COUNT,
    NOTIFICATIONS,
    OUTCOMES,
    PARTITION_MARKS,
    PARTITIONS,
    PENDING_MOVES,
    TABLE_INDEXES,
    TABLES,
)
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.names import PURGED

_OF_PARTITIONED: Final = (FURTHER_KEYS, PARTITIONS, DESCRIPTORS)
_NEW_TABLE: Final = insert(TABLES)
_NEW_EVENT: Final = insert(NOTIFICATIONS)
_NEW_OUTCOME: Final = insert(OUTCOMES)
_SET_VERSION: Final = update(CATALOG).values(last_event_id=bindparam("newest"))
_PENDING_MOVES: Final = select(PENDING_MOVES).order_by(PENDING_MOVES.c.move_id)
_HAS_OUTCOME: Final = select(OUTCOMES.c.method).where(
    OUTCOMES.c.principal == bindparam("the_principal"), OUTCOMES.c.call_key == bindparam("the_key")
)
_CHANGED: Final = [column.name for column in TABLES.c if column.name not in ("table_id", "partition_count")]
_UPDATE_TABLE: Final = (
    update(TABLES)
    .where(TABLES.c.table_id == bindparam("the_table"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGED})
)


_NEW_DESCRIPTOR: Final = insert(DESCRIPTORS)
_NEW_PARTITION: Final = insert(PARTITIONS)
# More of them are sent faster by statements of their own.
FEW: Final = 20

_Partition: TypeAlias = tuple[int, str]  # the table's id, and the name
_Descriptor: TypeAlias = tuple[int, str, str | None]  # the table's id, the content's hash, and the base


class DroppedTable(NamedTuple):
    db_name: str
    name: str
    has_partitions: bool
    has_indexes: bool


class CatalogChanges:
    """Rows and ids. `tables` are the rows as they are with the changes, by database and name."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Any] = {}
        self.new_tables: dict[int, Values] = {}
        self.table_values: dict[int, Values] = {}
        self.dropped_tables: dict[int, DroppedTable] = {}
        self.new_descriptors: dict[_Descriptor, Values] = {}
        self.new_partitions: dict[_Partition, Values] = {}
        self.descriptor_counts: Counter[int] = Counter()
        self.events: list[Values] = []
        self.outcomes: list[Values] = []

    def can_take(self, later: "CatalogChanges") -> bool:
        """Whether changes that come after these may be written with them: what is new is neither changed nor gone."""
        new = {*self.new_tables, *(table_id for table_id, _ in self.new_partitions)}
        return new.isdisjoint(later.dropped_tables) and self.new_tables.keys().isdisjoint(later.table_values)

    def take(self, later: "CatalogChanges") -> None:
        self.tables |= later.tables
        self.new_tables |= later.new_tables
        self.table_values |= later.table_values
        self.dropped_tables |= later.dropped_tables
        self.new_descriptors |= later.new_descriptors
        self.new_partitions |= later.new_partitions
        self.descriptor_counts.update(later.descriptor_counts)
        self.events += later.events
        self.outcomes += later.outcomes

    def statements(self, dialect: Dialect) -> list[Statement]:
        """What writes it, in this order: a name that is free again may be taken."""
        return [
            *self._drops(dialect),
            *_rows(_NEW_TABLE, list(self.new_tables.values())),
            *_rows(_UPDATE_TABLE, list(self.table_values.values())),
            *_rows(_NEW_DESCRIPTOR, list(self.new_descriptors.values())),
            *self._partitions(),
            *_rows(_NEW_EVENT, self.events),
            *_rows(_NEW_OUTCOME, self.outcomes),
        ]

    def _partitions(self) -> Iterable[Statement]:
        """Tables have columns for their first keys only: rows with the same ones go together."""
        if not self.new_partitions:
            return
        together: dict[tuple[str, ...], list[Values]] = {}
        for row in self.new_partitions.values():
            together.setdefault(tuple(row), []).append(row)
        yield from (Statement(_NEW_PARTITION, rows) for rows in together.values())
        of_tables = Counter(table_id for table_id, _ in self.new_partitions)
        for sql, name, counts in (
            (ADD_PARTITIONS, "the_table", of_tables),
            (ADD_TO_DESCRIPTOR, "the_descriptor", self.descriptor_counts),
        ):
            yield from _rows(sql, [{name: id, "difference": count} for id, count in counts.items()])

    def _drops(self, dialect: Dialect) -> Iterable[Statement]:
        dropped = self.dropped_tables
        if not dropped:
            return
        made = _statements(dialect)
        names = sorted((each.db_name, each.name) for each in dropped.values())
        for db_name, pairs in groupby(names, lambda pair: pair[0]):
            values = {"the_db": db_name, "names": dialect.bound_list([name for _, name in pairs])}
            yield from (Statement(purge, values) for purge in made.purges)
        with_partitions = [table_id for table_id, each in dropped.items() if each.has_partitions]
        with_indexes = [table_id for table_id, each in dropped.items() if each.has_indexes]
        for deletions, ids in (
            (made.of_partitioned, with_partitions),
            (made.of_indexed, with_indexes),
            (made.of_all, list(dropped)),
        ):
            if ids:
                yield from (Statement(deletion, {"ids": dialect.bound_list(ids)}) for deletion in deletions)


class Prepared:
    """New partitions of one table as rows, before they are inserted: the ids of their descriptors are missing."""

    def __init__(self, table_id: TableId, rows: Sequence[dict[str, Any]], keys: Sequence[DescriptorKey | None]) -> None:
        self.rows = rows
        self.keys = keys
        self.partitions: Final[list[_Partition]] = [(table_id, row["part_name"]) for row in rows]
        self.descriptors: Final[list[_Descriptor | None]] = [
            None if key is None else (table_id, key[0].content_hash, key[1]) for key in keys
        ]
        self._table_id = table_id

    def is_known(self, names: Container[_Partition], descriptors: Container[_Descriptor]) -> bool:
        return all(key in names for key in self.partitions) and all(
            key is None or key in descriptors for key in self.descriptors
        )

    def statements(self, dialect: Dialect) -> list[Statement]:
        """Which of the partitions are there, and which of the descriptors."""
        names = [name for _, name in self.partitions if is_storable(name)]
        hashes = dict.fromkeys(key[1] for key in self.descriptors if key is not None)
        values = {"the_table": self._table_id, "names": dialect.bound_list(names)}
        return [Statement(_statements(dialect).names, values), known_descriptors(self._table_id, hashes, dialect)]


class CatalogBatch:
    """Within one database transaction, from `begin` to `commit`. Raises what `errors.translated` knows."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.dialect: Final = dialect_of(connection)
        self.last_event_id = EventId(0)
        self._version = EventId(0)
        self._tables: dict[tuple[str, str], Any] = {}
        self._databases: dict[str, StoredDatabase | None] = {}
        self._moves: list[PendingMove] | None = None
        self._concluded: dict[tuple[str, str], bool] = {}
        self._table_ids: list[int] = []
        self._changes = CatalogChanges()
        self._prepared: dict[int, Prepared] = {}
        self._names: dict[_Partition, bool] = {}
        self._descriptors: dict[_Descriptor, int | None] = {}
        self._last_descriptor: int | None = None

    def begin(self, lock: Statement, works: Sequence[CatalogWork[Any]], keys: Sequence[tuple[str, str]]) -> None:
        """Take the lock, and read what the units of work say they will ask for."""
        tables = [name for name in dict.fromkeys(name for work in works for name in work.tables) if _is_storable(name)]
        databases = list(dict.fromkeys(db_name for db_name, _ in tables))
        keys = [key for key in dict.fromkeys(keys) if _is_storable(key)]
        new_tables = sum(work.new_tables for work in works)
        new_ids = self.dialect.new_ids(TABLES, new_tables) if new_tables else None
        # The works keep their lists, so that no other one gets the same id.
        additions = [work.new_partitions for work in works if work.new_partitions is not None]
        foreseen = {id(partitions): _prepared(table, partitions) for table, partitions in additions}
        self._prepared = {number: each for number, each in foreseen.items() if each is not None}
        new_partitions = list(self._prepared.values())
        statements = [
            lock,
            *(statement for each in new_partitions for statement in each.statements(self.dialect)),
            *(_table_statement(name) for name in tables),
            *(Statement(DATABASE_BY_NAME, {"db_name": name}) for name in databases),
            *(_outcome_statement(key) for key in keys),
            *([Statement(_PENDING_MOVES, {})] if tables else []),
            *([new_ids] if new_ids else []),
        ]
        answers = iter(self.dialect.run_together(self.connection, statements))
        self.last_event_id = self._version = EventId(next(answers)[0][0])
        for each in new_partitions:
            self._learn(each, next(answers), next(answers))
        self._tables = {name: _first_row(next(answers)) for name in tables}
        self._databases = {name: _first_database(next(answers)) for name in databases}
        self._concluded = {key: bool(next(answers)) for key in keys}
        if tables:
            self._moves = _moves(next(answers))
        if new_ids:
            self._table_ids = [table_id for (table_id,) in next(answers)]

    def table_row(self, name: tuple[str, str]) -> Any:
        """A `TableRow`, None where there is no such table."""
        if name not in self._tables:
            self._tables[name] = _first_row(self._read(_table_statement(name)))
        return self._tables[name]

    def row_of(self, table_id: int) -> Any:
        """The row of a table that was asked for before."""
        return next((row for row in self._tables.values() if row is not None and row.table_id == table_id), None)

    def database(self, name: str) -> StoredDatabase | None:
        if name not in self._databases:
            self._databases[name] = _first_database(self._read(Statement(DATABASE_BY_NAME, {"db_name": name})))
        return self._databases[name]

    def pending_moves(self) -> list[PendingMove]:
        if self._moves is None:
            self._moves = _moves(self._read(Statement(_PENDING_MOVES, {})))
        return self._moves

    def is_concluded(self, key: tuple[str, str]) -> bool:
        if key not in self._concluded:
            self._concluded[key] = bool(self._read(_outcome_statement(key)))
        return self._concluded[key]

    def next_table_id(self) -> TableId | None:
        """None where only the database gives ids."""
        if not self._table_ids:
            new_ids = self.dialect.new_ids(TABLES, 1)
            if new_ids is None:
                return None
            # Ids that are given and not stored yet must not be given again.
            self.flush()
            self._table_ids = [table_id for (table_id,) in self._read(new_ids)]
        return TableId(self._table_ids.pop(0))

    def prepared(self, table: StoredTable, partitions: Sequence[NewPartition]) -> "Prepared | None":
        """The rows of new partitions and what is known of them; None where statements of their own do it."""
        found = self._prepared.get(id(partitions)) or _prepared(table, partitions)
        if found is not None and not found.is_known(self._names, self._descriptors):
            self._learn(found, *self.dialect.run_together(self.connection, found.statements(self.dialect)))
        return found

    def has_partition(self, partition: "_Partition") -> bool:
        """Of those that are `prepared`."""
        return self._names[partition]

    def descriptor(self, descriptor: "_Descriptor") -> int | None:
        """The id of one that is `prepared`, None for a new one."""
        return self._descriptors[descriptor]

    def next_descriptor(self) -> int:
        if self._last_descriptor is None:
            # Those that are new already and not stored yet are counted.
            self.flush()
            self._last_descriptor = self._read(Statement(LAST_DESCRIPTOR, {}))[0][0] or 0
        self._last_descriptor += 1
        return self._last_descriptor

    def _learn(self, prepared: "Prepared", names: Rows, descriptors: Rows) -> None:
        found_names = {name for (name,) in names}
        found = {(content_hash, base): found for content_hash, base, found in descriptors}
        # What the batch has changed is known better than what is stored.
        self._names = {key: key[1] in found_names for key in prepared.partitions} | self._names
        stored = {key: found.get(key[1:]) for key in prepared.descriptors if key is not None}
        self._descriptors = stored | self._descriptors

    def take(self, changes: CatalogChanges, last_event_id: EventId) -> None:
        """What a unit of work has changed that succeeded."""
        if not self._changes.can_take(changes):
            self.flush()
        self._changes.take(changes)
        self._tables |= changes.tables
        self._names |= dict.fromkeys(changes.new_partitions, True)
        self._descriptors |= {key: cast(int, row["descriptor_id"]) for key, row in changes.new_descriptors.items()}
        self._concluded |= dict.fromkeys(((row["principal"], row["call_key"]) for row in changes.outcomes), True)  # type: ignore[misc]
        self.last_event_id = last_event_id

    def flush(self) -> None:
        """Write what was changed so far, for what reads and changes by statements of its own."""
        changes, self._changes = self._changes, CatalogChanges()
        if statements := changes.statements(self.dialect):
            self.dialect.run_together(self.connection, statements)

    def forget(self) -> None:
        """Something was changed by other statements: what is asked for next is read again."""
        self._tables, self._databases, self._moves, self._concluded, self._table_ids = {}, {}, None, {}, []
        self._names, self._descriptors, self._last_descriptor = {}, {}, None

    def forget_outcomes(self) -> None:
        """Calls were concluded by other statements."""
        self._concluded = {}

    def commit(self) -> None:
        """Raises ConnectionLost when it may have happened or not."""
        statements = self._changes.statements(self.dialect)
        if self.last_event_id != self._version:
            statements.append(Statement(_SET_VERSION, {"newest": self.last_event_id}))
        self.dialect.commit_with(self.connection, statements)

    def _read(self, statement: Statement) -> Rows:
        return self.dialect.run_together(self.connection, [statement])[0]


class _Statements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        def among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
            return dialect.is_in_list(column, name)

        def of_tables(*tables: Any) -> list[Any]:
            return [delete(table).where(among(table.c.table_id, "ids")) for table in tables]

        of_table = PARTITIONS.c.table_id == bindparam("the_table")
        self.names = select(PARTITIONS.c.part_name).where(of_table, among(PARTITIONS.c.part_name, "names"))
        self.purges = [
            delete(table).where(table.c.db_name == bindparam("the_db"), among(table.c.table_name, "names"))
            for table in PURGED
        ]
        self.of_partitioned = of_tables(*_OF_PARTITIONED)
        self.of_indexed = of_tables(TABLE_INDEXES)
        self.of_all = of_tables(PARTITION_MARKS, TABLES)


_statements: Final = cache(_Statements)


def _prepared(table: StoredTable, partitions: Sequence[NewPartition]) -> Prepared | None:
    if not 0 < len(partitions) <= FEW or len(table.table.partitionKeys or ()) > KEY_COLUMN_COUNT:
        return None
    try:
        rows, keys = encoded_rows(table, [(new.name, new.partition) for new in partitions])
    except UnstorableText:
        return None  # to be raised where it is inserted
    return Prepared(table.table_id, rows, keys)


def _rows(sql: Any, rows: Sequence[Values]) -> Iterable[Statement]:
    if rows:
        yield Statement(sql, rows)


def _is_storable(texts: Iterable[str]) -> bool:
    return all(map(is_storable, texts))


def _table_statement(name: tuple[str, str]) -> Statement:
    return Statement(TABLE_BY_NAME, {"db_name": name[0], "tbl_name": name[1]})


def _outcome_statement(key: tuple[str, str]) -> Statement:
    return Statement(_HAS_OUTCOME, {"the_principal": key[0], "the_key": key[1]})


def _first_row(rows: Rows) -> Any:
    return TableRow._make(rows[0]) if rows else None


def _first_database(rows: Rows) -> StoredDatabase | None:
    return stored_database(rows[0]) if rows else None


def _moves(rows: Rows) -> list[PendingMove]:
    return [PendingMove(move_id, TableId(table_id), source, target) for move_id, table_id, source, target in rows]
