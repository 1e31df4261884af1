"""What units of work that wait together ask of the catalog and change in it: read for all of them at once, written for
all of them at once.

Each still runs alone, one after the other, over values that already contain what those before it changed. What one
changes is kept apart until it succeeds (`CatalogChanges`), so one that raises has changed nothing. What callers say
they need (`ports.CatalogWork`) is read ahead, with the lock on the catalog; what turns out to be missing is read when
it is asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, bindparam, select

from hms_gateway.metastore.ports.store import (
    CatalogWork,
    EventId,
    PendingMove,
    StoredDatabase,
    StoredPartition,
    StoredTable,
    TableId,
    UnstorableText,
)
from hms_gateway.rpc.structs import Partition
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.catalog.changes import CatalogChanges, ContentKey, PartitionKey
from hms_gateway.storage.catalog.databases import database_statement, found_database
from hms_gateway.storage.catalog.events import PENDING, found_moves
from hms_gateway.storage.catalog.tables import table_row, table_statement, table_with_id_statement
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.partitions.rows import (
    LAST_DESCRIPTOR,
    Descriptor,
    DescriptorKey,
    by_id,
    descriptor_of_row,
    descriptors_by_ids,
    found_descriptors,
    known_descriptors,
    reads_descriptors,
    rows_by_names,
)
from hms_gateway.storage.partitions.writes import encoded_rows
from hms_gateway.storage.schema.catalog import DESCRIPTORS, TABLES
from hms_gateway.storage.sql.repository import is_storable
from hms_gateway.storage.txn.batch_statements import SET_VERSION, batch_statements
from hms_gateway.storage.txn.locks import KnownLocks

# What is known of a partition that the batch has inserted: that it is there.
NEW: Final = object()

KnownRow: TypeAlias = Any
"""A `NamedRow`, None for no such partition, or NEW."""


class Encoded:
    """Partitions of one table as rows. What is missing are the ids of their descriptors."""

    def __init__(self, table: StoredTable, partitions: Sequence[tuple[str, Partition]], *, are_new: bool) -> None:
        """Raises UnstorableText."""
        self.are_new = are_new
        self.table_id: Final[TableId] = table.table_id
        self.rows, self.contents = encoded_rows(table, partitions)
        self.partitions: Final[list[PartitionKey]] = [(self.table_id, name) for name, _ in partitions]
        self.descriptors: Final[list[ContentKey | None]] = [self._key(content) for content in self.contents]

    def _key(self, content: DescriptorKey | None) -> ContentKey | None:
        return None if content is None else (self.table_id, content[0].content_hash, content[1])


class Wanted:
    """Rows to read: partitions by name and descriptors by hash, for each table by its id."""

    def __init__(self) -> None:
        # With their descriptors, or only whether they are there.
        self.names: dict[tuple[int, bool], dict[str, None]] = {}
        self.hashes: dict[int, dict[str, None]] = {}

    def add_names(self, table_id: int, names: Iterable[str], *, whole: bool = True) -> None:
        of_table = self.names.setdefault((table_id, whole), {})
        of_table.update((name, None) for name in names if is_storable(name))

    def add(self, encoded: Encoded) -> None:
        self.add_names(encoded.table_id, (name for _, name in encoded.partitions), whole=not encoded.are_new)
        hashes = ((key[1], None) for key in encoded.descriptors if key is not None)
        self.hashes.setdefault(encoded.table_id, {}).update(hashes)

    def statements(self, dialect: Dialect) -> list[Statement]:
        """For each table one or two, for each that has hashes one more, and then the last descriptor's id."""
        of_names = [
            statement
            for (table_id, whole), names in self.names.items()
            for statement in rows_by_names(table_id, names, dialect)[: 2 if whole else 1]
        ]
        of_hashes = [known_descriptors(table_id, hashes, dialect) for table_id, hashes in self.hashes.items()]
        return [*of_names, *of_hashes, *([Statement(LAST_DESCRIPTOR, {})] if of_hashes else [])]


class KnownPartitions:
    """Partitions as a batch knows them. `read` sends statements together."""

    def __init__(self, dialect: Dialect, read: Callable[[Sequence[Statement]], list[Rows]]) -> None:
        self._dialect = dialect
        self._read = read
        self._encoded: dict[int, Encoded] = {}
        self.forget()

    def forget(self) -> None:
        self._rows: dict[PartitionKey, KnownRow] = {}
        self._descriptors: dict[int, Descriptor] = {}
        self._hashes: set[tuple[int, str]] = set()
        self._ids: dict[ContentKey, int] = {}
        self._last_descriptor: int | None = None

    def foreseen(self, works: Iterable[CatalogWork[Any]]) -> Wanted:
        """Rows that units of work will ask for. They keep their lists, so that no other one gets the same id."""
        wanted = Wanted()
        for work in works:
            if work.partitions is not None:
                wanted.add_names(work.partitions[0].table_id, work.partitions[1])
            for given in (work.new_partitions, work.changed_partitions):
                if given is not None and given[1]:
                    with suppress(UnstorableText):  # to be raised where it is stored
                        found = self._encoded[id(given[1])] = _encoded(*given)
                        wanted.add(found)
        return wanted

    def learn(self, wanted: Wanted, answers: Iterable[Rows]) -> None:
        """The answers to its statements. What the batch has changed is known better than what is stored."""
        each = iter(answers)
        for (table_id, whole), names in wanted.names.items():
            rows = {row[1]: tuple(row) for row in next(each)}
            self._rows = {(table_id, name): rows.get(name) for name in names} | self._rows
            if whole and reads_descriptors(names):
                self._learn_descriptors(next(each))
        for table_id, hashes in wanted.hashes.items():
            ids = {(table_id, content_hash, base): found for content_hash, base, found in next(each)}
            self._ids = ids | self._ids
            self._hashes.update((table_id, content_hash) for content_hash in hashes)
        if wanted.hashes and self._last_descriptor is None:
            self._last_descriptor = next(each)[0][0] or 0

    def encoded(self, table: StoredTable, partitions: Sequence[Any]) -> Encoded:
        """Encode partitions as rows, and read what is known of them. Raises UnstorableText."""
        found = self._encoded.get(id(partitions)) or _encoded(table, partitions)
        self._know(found)
        return found

    def has_new(self, table_id: int, names: Iterable[str]) -> bool:
        return any(self._rows.get((table_id, name)) is NEW for name in names)

    def rows(self, table_id: int, names: Iterable[str]) -> list[KnownRow]:
        """None for those that are not there. New ones are read, so they have to be written before."""
        keys = [(table_id, name) for name in names]
        unknown = {key for key in keys if is_storable(key[1]) and self._rows.get(key, NEW) is NEW}
        if unknown:
            wanted = Wanted()
            wanted.add_names(table_id, (name for _, name in unknown))
            self._rows = {key: row for key, row in self._rows.items() if key not in unknown}
            self._load(wanted)
        rows = [self._rows.get(key) for key in keys]
        self._load_descriptors(row[2] for row in rows if row is not None and row[2] is not None)
        return rows

    def row(self, key: PartitionKey) -> KnownRow:
        """Row of a partition that was asked for."""
        return self._rows.get(key)

    @property
    def descriptors(self) -> dict[int, Descriptor]:
        """Descriptors of the rows, by id."""
        return self._descriptors

    def descriptor_id(self, key: ContentKey, content: DescriptorKey) -> int | None:
        """Id of one of the `encoded`; None for a new one."""
        found = self._ids.get(key)
        if found is not None and found not in self._descriptors:
            self._descriptors[found] = Descriptor(found, *content)
        return found

    def next_descriptor(self) -> int:
        assert self._last_descriptor is not None
        self._last_descriptor += 1
        return self._last_descriptor

    def take(self, changes: CatalogChanges) -> None:
        self._rows |= changes.partitions
        for key, row in changes.new_descriptors.items():
            found = descriptor_of_row(row)
            self._ids[key] = found.descriptor_id
            self._descriptors[found.descriptor_id] = found

    def _know(self, encoded: Encoded) -> None:
        """Read which of the partitions are there, and which of the descriptors."""
        wanted = Wanted()
        wanted.add(encoded)
        are_known = all(key in self._rows for key in encoded.partitions if is_storable(key[1]))
        if not are_known or any((key[0], key[1]) not in self._hashes for key in encoded.descriptors if key is not None):
            self._load(wanted)

    def _load(self, wanted: Wanted) -> None:
        self.learn(wanted, self._read(wanted.statements(self._dialect)))

    def _load_descriptors(self, used: Iterable[int]) -> None:
        if missing := set(used) - self._descriptors.keys():
            self._learn_descriptors(self._read([descriptors_by_ids(missing, self._dialect)])[0])

    def _learn_descriptors(self, rows: Rows) -> None:
        self._descriptors |= by_id(found_descriptors(rows))


def _encoded(table: StoredTable, partitions: Sequence[Any]) -> Encoded:
    """Encode new partitions, or stored ones as they will be. Raises UnstorableText."""
    are_new = not isinstance(partitions[0], StoredPartition)
    return Encoded(table, [(each.name, each.partition) for each in partitions], are_new=are_new)


_BASES: Final = (
    select(DESCRIPTORS.c.base_location)
    .distinct()
    .where(DESCRIPTORS.c.table_id == bindparam("the_table"), DESCRIPTORS.c.partition_count > 0)
)


class CatalogBatch:
    """Within one database transaction, from `begin` to `commit`. Raises what `kinds.translated` knows."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.dialect: Final = dialect_of(connection)
        self.last_event_id = EventId(0)
        self._version = EventId(0)
        self._tables: dict[tuple[str, str], Any] = {}
        self._names: dict[int, tuple[str, str]] = {}  # of tables, by their ids
        self._databases: dict[str, StoredDatabase | None] = {}
        self._moves: list[PendingMove] | None = None
        self._concluded: dict[tuple[str, str], bool] = {}
        self._table_ids: list[int] = []
        self._changes = CatalogChanges()
        # No method of the batch: a cycle would keep each batch until the next collection.
        self._read_together: Final = partial(self.dialect.run_together, connection)
        self.partitions: Final = KnownPartitions(self.dialect, self._read_together)

    @cached_property
    def locks(self) -> KnownLocks:
        return KnownLocks(self.dialect, self.clock, self._read_together)

    def begin(self, lock: Statement, works: Sequence[CatalogWork[Any]], keys: Sequence[tuple[str, str]]) -> None:
        """Take the lock, and read what the units of work say they will ask for."""
        tables = [name for name in dict.fromkeys(name for work in works for name in work.tables) if _is_storable(name)]
        databases = list(dict.fromkeys(db_name for db_name, _ in tables))
        keys = [key for key in dict.fromkeys(keys) if _is_storable(key)]
        new_tables = sum(work.new_tables for work in works)
        new_ids = self.dialect.new_ids(TABLES, new_tables) if new_tables else None
        partitions = self.partitions.foreseen(works)
        of_partitions = partitions.statements(self.dialect)
        locked = [name for work in works if work.reads_locks for name in work.tables]
        of_locks = self.locks.statements(locked) if locked else []
        statements = [
            lock,
            *of_partitions,
            *map(table_statement, tables),
            *map(database_statement, databases),
            *([PENDING] if tables else []),
            *([_outcomes_statement(keys, self.dialect)] if keys else []),
            *([new_ids] if new_ids else []),
            *of_locks,
        ]
        answers = iter(self.dialect.run_together(self.connection, statements))
        self.last_event_id = self._version = EventId(next(answers)[0][0])
        self.partitions.learn(partitions, [next(answers) for _ in of_partitions])
        if tables:
            self._know_tables({name: table_row(next(answers)) for name in tables})
            self._databases = {name: found_database(next(answers)) for name in databases}
            self._moves = found_moves(next(answers))
        if keys:
            self._concluded = dict.fromkeys(keys, False) | dict.fromkeys(map(_pair, next(answers)), True)
        if new_ids:
            self._table_ids = [table_id for (table_id,) in next(answers)]
        if of_locks:
            self.locks.learn(locked, [next(answers) for _ in of_locks])

    def table_row(self, name: tuple[str, str]) -> Any:
        """A `TableRow`, None where there is no such table."""
        if name not in self._tables:
            self._know_tables({name: table_row(self._read(table_statement(name)))})
        return self._tables[name]

    def row_of(self, table_id: int) -> Any:
        """The row of the table with this id, None where there is none."""
        if table_id not in self._names:
            row = table_row(self._read(table_with_id_statement(table_id)))
            if row is None:
                return None
            self._know_tables({(row.db_name, row.name): row})
        row = self._tables[self._names[table_id]]
        return row if row is not None and row.table_id == table_id else None

    def database(self, name: str) -> StoredDatabase | None:
        if name not in self._databases:
            self._databases[name] = found_database(self._read(database_statement(name)))
        return self._databases[name]

    def pending_moves(self) -> list[PendingMove]:
        if self._moves is None:
            self._moves = found_moves(self._read(PENDING))
        return self._moves

    def is_concluded(self, key: tuple[str, str]) -> bool:
        if key not in self._concluded:
            self._concluded[key] = key in map(_pair, self._read(_outcomes_statement([key], self.dialect)))
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

    def partition_rows(self, table_id: int, names: Sequence[str]) -> list[KnownRow]:
        """None for those that are not there; never NEW."""
        if self.partitions.has_new(table_id, names):
            self.flush()
        return self.partitions.rows(table_id, names)

    def bases(self, table_id: int) -> list[str | None]:
        """What the locations of a table's partitions are relative to."""
        if table_id in self._changes.touched_tables:
            self.flush()
        return [base for (base,) in self._read(Statement(_BASES, {"the_table": table_id}))]

    def take(self, changes: CatalogChanges, last_event_id: EventId) -> None:
        """What a unit of work has changed that succeeded."""
        if not self._changes.can_take(changes):
            self.flush()
        self._changes.take(changes)
        self._know_tables(changes.tables)
        self.partitions.take(changes)
        if self._moves is not None and changes.deleted_moves:
            self._moves = [move for move in self._moves if move.move_id not in changes.deleted_moves]
        self._concluded |= dict.fromkeys(((row["principal"], row["call_key"]) for row in changes.outcomes), True)  # type: ignore[misc]
        self.last_event_id = last_event_id

    def flush(self) -> None:
        """Write what was changed so far, for what reads and changes by statements of its own."""
        changes, self._changes = self._changes, CatalogChanges(self._changes.lessened)
        self.write(changes)

    def write(self, changes: CatalogChanges) -> None:
        if statements := changes.statements(self.dialect):
            self.dialect.run_together(self.connection, statements)

    def has_lessened(self, table_id: int) -> bool:
        """Tell whether the table may have descriptors that no partition uses any more."""
        return table_id in self._changes.lessened

    def forget(self) -> None:
        """Something may be changed by other statements: what is asked for next is read again."""
        self._tables, self._databases, self._moves, self._concluded, self._table_ids = {}, {}, None, {}, []
        self._names = {}
        self.partitions.forget()
        vars(self).pop("locks", None)

    def forget_calls(self) -> None:
        """Calls on transactions and locks were answered by other statements."""
        self._concluded = {}
        vars(self).pop("locks", None)

    def commit(self) -> None:
        """Raises ConnectionLost when it may have happened or not."""
        statements = [*self._changes.statements(self.dialect), *self._changes.unused_descriptors(self.dialect)]
        if self.last_event_id != self._version:
            statements.append(Statement(SET_VERSION, {"newest": self.last_event_id}))
        self.dialect.commit_with(self.connection, statements)

    def _know_tables(self, tables: Mapping[tuple[str, str], Any]) -> None:
        self._tables |= tables
        self._names |= {row.table_id: name for name, row in tables.items() if row is not None}

    def _read(self, statement: Statement) -> Rows:
        return self._read_together([statement])[0]


def _pair(row: Sequence[Any]) -> tuple[str, str]:
    return row[0], row[1]


def _is_storable(texts: Iterable[str]) -> bool:
    return all(map(is_storable, texts))


def _outcomes_statement(keys: Sequence[tuple[str, str]], dialect: Dialect) -> Statement:
    return Statement(batch_statements(dialect).outcomes, dialect.bound_pairs(keys))
