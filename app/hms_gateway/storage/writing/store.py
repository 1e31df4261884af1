"""The store: snapshots to read from a pool of connections, units of work through the one writer."""

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, event

from hms_gateway.metastore.changes.fencing import fenced
from hms_gateway.metastore.changes.implicit_locks import locked
from hms_gateway.metastore.ports.store import (
    ChangeSelection,
    EventId,
    MadeChange,
    Snapshot,
    StoredEvent,
    StoreError,
    StoreUnavailable,
    Transaction,
    VersionWatch,
)
from hms_gateway.runtime.call_keys import CallKey, KeptAnswer, Outcome, answering
from hms_gateway.runtime.call_record import WorkTimes, current_notes
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Done
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.catalog.databases import DatabaseReads, database_statement, first_dropped, found_database
from hms_gateway.storage.catalog.events import CHANGES_QUERY, EventReads, change_headers, changes_made
from hms_gateway.storage.catalog.names import NameReads
from hms_gateway.storage.catalog.tables import TableReads, table_row, table_statement
from hms_gateway.storage.dialects import dialect_of_url, parse_url
from hms_gateway.storage.dialects.base import Retryable
from hms_gateway.storage.dialects.kinds import as_unavailable, is_worth_another_try, system_of, translated
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.migrations.revisions import check_revision, migrate_engine
from hms_gateway.storage.partitions.reads import PartitionReads
from hms_gateway.storage.registry.gateways import GatewayRow, forget_gateway, known_gateways, note_gateway
from hms_gateway.storage.registry.outcomes import find_outcome
from hms_gateway.storage.sql.repository import AsksMore, ReadPool, SharedSnapshot, is_storable
from hms_gateway.storage.txn.txns import SqlTxnReads
from hms_gateway.storage.writing.availability import Availability
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from hms_gateway.storage.writing.transaction import SqlTransaction
from hms_gateway.txn.ports.txn import TxnWork

if TYPE_CHECKING:
    from hms_gateway.storage.dialects.postgres_pipeline import PostgresPipeline

_BEGIN: Final = "statement began at"


def note_statements(engine: Engine) -> None:
    """From now on the statements of `engine` are noted."""

    @event.listens_for(engine, "before_cursor_execute")
    def _began(connection: Connection, *_: Any) -> None:
        connection.info[_BEGIN] = time.perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def _ended(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        notes = current_notes()
        if notes is not None:
            notes.add("sql", connection.info[_BEGIN], statement)


T = TypeVar("T")

READ_CONNECTIONS_MAX: Final = 40
# Two of the engine that writes, those of the pipeline and of the version watch.
_OTHER_CONNECTIONS: Final = 4
_ATTEMPTS_MAX: Final = 3
# Of `delete_dropped`: the thread has other chores.
_PIECES_MAX: Final = 40


def open_store(url: str, clock: Clock, limits: Limits, read_connections_max: int = READ_CONNECTIONS_MAX) -> "SqlStore":
    """Open the catalog in the database `url`: `sqlite:///file`, `postgresql+psycopg://…` or `mariadb+pymysql://…`.

    A SQLite file is made and migrated as needed, another database must have our revision. Raises StoreError with a
    text that says what to do, StoreUnavailable when the database cannot be reached.
    """
    parsed = parse_url(url)
    dialect = dialect_of_url(parsed)
    writing = dialect.writing_engine(parsed)
    try:
        if dialect.is_migrated_at_open:
            migrate_engine(writing)
        else:
            check_revision(writing)
    except BaseException:
        writing.dispose()
        raise
    parsed = parsed.set(drivername=writing.url.drivername)
    watching = dialect.watching_connection(parsed)
    reading = ReadPool(dialect.reading_engine(parsed), read_connections_max)
    return SqlStore(parsed, reading, writing, watching, clock, limits)


def connections_wanted(read_connections_max: int) -> int:
    """The number of connections to a database server a store may have at the same time."""
    return read_connections_max + _OTHER_CONNECTIONS


class SqlSnapshot(PartitionReads, TableReads, DatabaseReads, EventReads, NameReads):
    """`ports.Snapshot` inside a read-only transaction that `shared` keeps open."""

    def __init__(self, shared: SharedSnapshot) -> None:
        self._dialect = shared.dialect
        self._shared: SharedSnapshot = shared

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        return self._shared.connection

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        return self._shared.run(statements)

    def foresee(self, tables: Sequence[tuple[str, str]]) -> None:
        names = [name for name in dict.fromkeys(tables) if all(map(is_storable, name))]
        databases = dict.fromkeys(db_name for db_name, _ in names)
        statements = [*map(table_statement, names), *map(database_statement, databases)]
        answers = iter(self._run_together(statements))
        self._foreseen_tables = {name: table_row(next(answers)) for name in names}
        self._foreseen_databases = {name: found_database(next(answers)) for name in databases}

    @property
    def txns(self) -> SqlTxnReads:
        return SqlTxnReads(self._connection)


def _retried(engine: Engine, attempt: Callable[[], T]) -> T:
    """The result of the first attempt that ends. Raises StoreError."""
    before = sys.exception()
    for number in range(1, _ATTEMPTS_MAX + 1):
        try:
            return attempt()
        except (Retryable, StoreUnavailable) as error:
            # When a connection broke while it was idle, the others of the pool are dropped with it.
            if number == _ATTEMPTS_MAX or not is_worth_another_try(engine, error):
                raise as_unavailable(error) from error
            forget_frames(error, before)
    raise AssertionError("unreachable")


class SqlStore:
    """`ports.Store` over SQLAlchemy."""

    def __init__(
        self,
        url: URL,
        reading: ReadPool,
        writing: Engine,
        watching: sqlite3.Connection | None,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._url = url
        self._pool = reading
        self._reading = reading.engine
        self._writing = writing
        self._watching = watching
        self._watching_lock = threading.Lock()
        self._clock = clock
        self.times = WorkTimes()
        self.availability = Availability()
        self._dialect = dialect_of_url(url)
        for engine in (reading.engine, writing) if self._dialect.has_clock else ():
            # A connection that looked at the revision is not known here.
            engine.dispose()
            event.listen(engine, "do_connect", lambda *_: self.availability.check())
            event.listen(engine, "connect", lambda connection, _: self.availability.keep(connection))
        connect = self._open_pipeline if self._dialect.has_pipeline else None
        self._writer = ThreadWriter(writing, clock, limits.write_queue_max, connect, self.times, self.availability)

    def read(self, work: Callable[[Snapshot], T], *, asks_once: bool = False) -> T:
        """See `ports.Store.read`. A list in the result keeps the connection until it is closed."""
        begin = time.perf_counter()
        try:
            result = self._read(work, asks_once=asks_once)
        except BaseException as error:
            self.availability.note("read", error)
            raise
        else:
            self.availability.note("read")
            return result
        finally:
            self.times.note("read", begin)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `ports.Store.write`. Under the lease that the caller presents, if any, and under implicit locks."""
        guarded: Callable[[Transaction], T] = work if isinstance(work, TxnWork) else locked(fenced(work))
        return self._writer.write(guarded)

    def start(self, work: TxnWork[Any], done: Done) -> None:
        """See `suspension.Runner`."""
        self._writer.start(work, done)

    @property
    def system(self) -> str:
        """The name of the kind of database in traces."""
        return system_of(self._url)

    def note_statements(self) -> None:
        """From now on the statements of calls that are traced are noted."""
        for engine in (self._reading, self._writing):
            note_statements(engine)

    @property
    def writes_waiting(self) -> int:
        """Units of work that the writer has not begun."""
        return self._writer.waiting

    @property
    def connections_in_use(self) -> int:
        """Connections for reading that are in use."""
        return self._pool.in_use

    @property
    def connections_max(self) -> int:
        return self._pool.connections_max

    def ready(self) -> None:
        """Raises StoreUnavailable when the database cannot be reached."""
        self.version()

    def version(self) -> EventId:
        """The newest event's id. Raises StoreUnavailable."""
        if self._watching is not None:
            with translated(self._reading), self._watching_lock:
                return EventId(self._watching.execute("SELECT last_event_id FROM catalog").fetchone()[0])
        return self._read(lambda snapshot: snapshot.current_event_id(), asks_once=True)

    def data_version(self) -> int | None:
        """A number that changes with every commit to a SQLite file, by any process; None for other databases."""
        if self._watching is None:
            return None
        try:
            with self._watching_lock:
                return int(self._watching.execute("PRAGMA data_version").fetchone()[0])
        except Exception:
            # Runs for every cached call, so the translator is entered only when it has something to translate.
            with translated(self._reading):
                raise

    def version_watch(self) -> VersionWatch | None:
        """See `cache.freshness.QueriedFeed`; None where `data_version` answers."""
        try:
            watch = self._dialect.version_watch(self._reading, self._url, CHANGES_QUERY)
        except StoreError as error:
            self.availability.note_answer(error)
            raise
        self.availability.note_answer()
        return watch

    def _open_pipeline(self) -> "PostgresPipeline":
        # Only here, since PostgreSQL's driver costs a tenth of the memory of a server that needs none.
        from hms_gateway.storage.dialects.postgres_pipeline import open_pipeline

        self.availability.check()
        pipeline = open_pipeline(self._writing, self._url)
        self.availability.keep(pipeline)
        return pipeline

    def changes_since(self, event_id: EventId) -> list[StoredEvent]:
        """The events after `event_id` in order, without messages but those of commits. Raises StoreUnavailable."""
        return self._read(lambda snapshot: change_headers(snapshot.connection, event_id))

    def changes_made(self, selection: ChangeSelection) -> list[MadeChange]:
        """The changes that are selected, and who made them: the newest first. Raises StoreUnavailable."""
        return self._read(lambda snapshot: changes_made(snapshot.connection, selection))

    def forget_changes(self, before_seconds: int) -> int:
        """Forget who made changes before that time, where their events are forgotten as well; how many."""
        return self._writer.write(lambda tx: tx.delete_changes_before(before_seconds))

    def find(self, principal: str, key: str) -> Outcome | None:
        """See `call_keys.Outcomes.find`."""
        return self._read(lambda snapshot: find_outcome(snapshot.connection, principal, key))

    def complete(self, key: CallKey, answer: KeptAnswer) -> None:
        """See `call_keys.Outcomes.complete`."""
        with answering(None):
            self._writer.write(lambda tx: tx.complete_outcome(key, answer))

    def conclude_failed(self, key: CallKey, answer: KeptAnswer) -> None:
        """See `call_keys.Outcomes.conclude_failed`."""
        with answering(None):
            self._writer.write(lambda tx: tx.conclude_failed(key, self._clock.seconds(), answer))

    def forget_outcomes(self, before_seconds: int) -> int:
        """Delete the outcomes of calls concluded before that time; how many."""
        return self._writer.write(lambda tx: tx.delete_outcomes_before(before_seconds))

    @property
    def deletes_later(self) -> bool:
        """Whether `delete_dropped` ever has something to do."""
        return self._dialect.deleted_with_table_max is not None

    def delete_dropped(self) -> None:
        """Delete partitions of tables that are dropped already, some at a time, so that no other change waits long."""
        for _ in range(_PIECES_MAX):
            table_id = self._read(lambda snapshot: first_dropped(snapshot.connection))
            if table_id is None:
                return
            self._writer.write(partial(SqlTransaction.delete_dropped, table_id=table_id))

    @property
    def knows_gateways(self) -> bool:
        """Whether gateways that share the database can be known: it is a server."""
        return self._dialect.has_clock

    def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
        """Say that this process is there; all that are. It takes no lock that a change waits for."""
        return self._beside_writer(partial(note_gateway, row=row))

    def known_gateways(self) -> list[GatewayRow]:
        """The processes of gateways that use this database."""
        return self._read(lambda snapshot: known_gateways(snapshot.connection))

    def connections_allowed(self) -> int | None:
        """The number of connections the database lets all gateways together have; None where there is no bound."""
        return self._read(lambda snapshot: self._dialect.connections_allowed(snapshot.connection))

    def forget_gateway(self, gateway_id: str) -> None:
        """This process ends."""
        self._beside_writer(partial(forget_gateway, gateway_id=gateway_id))

    def _beside_writer(self, work: Callable[[Connection], T]) -> T:
        """A change that has nothing to do with the catalog. Raises StoreError."""

        def once() -> T:
            with translated(self._writing), self._writing.begin() as connection:
                return work(connection)

        return _retried(self._writing, once)

    def close(self) -> None:
        """Finish the writes that are waiting, then close every connection that is not lent to a list."""
        self._writer.close()
        if self._watching is not None:
            with self._watching_lock:
                self._watching.close()
        self._pool.close()
        self._writing.dispose()

    def _read(self, work: Callable[[Snapshot], T], *, asks_once: bool = False) -> T:
        """The result of `work`, which is run again when its connection turns out to be broken. Raises StoreError."""
        try:
            return _retried(self._reading, partial(self._read_once, work, asks_once))
        except AsksMore:
            return self._read(work)

    def _read_once(self, work: Callable[[Snapshot], T], asks_once: bool) -> T:
        try:
            shared = self._pool.take(asks_once=asks_once)
            try:
                return work(SqlSnapshot(shared))
            finally:
                self._pool.give_back(shared)
        except Exception:
            with translated(self._reading):
                raise
