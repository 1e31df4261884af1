"""What units of work that wait together ask of the catalog and change in it: read for all of them at once, written for
all of them at once.

Each still runs alone, one after the other, over values that already contain what those before it changed. What one
changes is kept apart until it succeeds (`CatalogChanges`), so one that raises has changed nothing. What callers say
they need (`ports.CatalogWork`) is read ahead, with the lock on the catalog; what turns out to be missing is read when
it is asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from hms_gateway.metastore.ports.store import CatalogWork, EventId, PendingMove, StoredDatabase, TableId
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.catalog.changes import CatalogChanges
from hms_gateway.storage.catalog.databases import database_statement, found_database
from hms_gateway.storage.catalog.known_partitions import KnownPartitions
from hms_gateway.storage.catalog.tables import table_row, table_statement, table_with_id_statement
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PENDING_MOVES, TABLES
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.batch_statements import SET_VERSION, batch_statements
from hms_gateway.storage.txn.held_locks import KnownLocks

_PENDING_MOVES: Final = select(PENDING_MOVES).order_by(PENDING_MOVES.c.move_id)
_BASES: Final = select(DESCRIPTORS.c.base_location).distinct().where(DESCRIPTORS.c.table_id == bindparam("the_table"))


class CatalogBatch:
    """Within one database transaction, from `begin` to `commit`. Raises what `errors.translated` knows."""

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
        self.partitions: Final = KnownPartitions(self.dialect, self._read_together, self.flush)
        self.locks: Final = KnownLocks(self.dialect, clock, self._read_together)

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
            *([Statement(_PENDING_MOVES, {})] if tables else []),
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
            self._moves = _moves(next(answers))
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
            self._moves = _moves(self._read(Statement(_PENDING_MOVES, {})))
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
        changes, self._changes = self._changes, CatalogChanges()
        if statements := changes.statements(self.dialect):
            self.dialect.run_together(self.connection, statements)
        self.partitions.forget_descriptors(changes.lessened)

    def forget(self) -> None:
        """Something may be changed by other statements: what is asked for next is read again."""
        self._tables, self._databases, self._moves, self._concluded, self._table_ids = {}, {}, None, {}, []
        self._names = {}
        self.partitions.forget()
        self.locks.forget()

    def forget_calls(self) -> None:
        """Calls on transactions and locks were answered by other statements."""
        self._concluded = {}
        self.locks.forget()

    def commit(self) -> None:
        """Raises ConnectionLost when it may have happened or not."""
        statements = self._changes.statements(self.dialect)
        if self.last_event_id != self._version:
            statements.append(Statement(SET_VERSION, {"newest": self.last_event_id}))
        self.dialect.commit_with(self.connection, statements)

    def _know_tables(self, tables: Mapping[tuple[str, str], Any]) -> None:
        self._tables |= tables
        self._names |= {row.table_id: name for name, row in tables.items() if row is not None}

    def _read(self, statement: Statement) -> Rows:
        return self._read_together([statement])[0]

    def _read_together(self, statements: Sequence[Statement]) -> list[Rows]:
        return self.dialect.run_together(self.connection, statements)


def _pair(row: Sequence[Any]) -> tuple[str, str]:
    return row[0], row[1]


def _is_storable(texts: Iterable[str]) -> bool:
    return all(map(is_storable, texts))


def _outcomes_statement(keys: Sequence[tuple[str, str]], dialect: Dialect) -> Statement:
    return Statement(batch_statements(dialect).outcomes, dialect.bound_pairs(keys))


def _moves(rows: Rows) -> list[PendingMove]:
    return [PendingMove(move_id, TableId(table_id), source, target) for move_id, table_id, source, target in rows]
