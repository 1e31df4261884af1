"""The store: snapshots to read from a pool of connections, units of work through the one writer."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, QueuePool, event, select

from hms_gateway.metastore.changes.fencing import fenced
from hms_gateway.metastore.changes.implicit_locks import locked
from hms_gateway.metastore.ports.store import (
    ChangeSelection,
    EventId,
    LookUp,
    MadeChange,
    Snapshot,
    StoredEvent,
    StoreError,
    StoreUnavailable,
    Transaction,
)
from hms_gateway.runtime.call_keys import CallKey, KeptAnswer, Outcome, answering
from hms_gateway.runtime.call_record import WorkTimes, current_notes
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Done
from hms_gateway.storage.catalog.databases import first_dropped
from hms_gateway.storage.catalog.events import CHANGES_QUERY, change_headers, changes_made
from hms_gateway.storage.dialects import Dialect, dialect_of_url, parse_url
from hms_gateway.storage.dialects.base import LookUpConnection, Retryable
from hms_gateway.storage.dialects.errors import as_unavailable, is_worth_another_try, translated
from hms_gateway.storage.dialects.kinds import system_of
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.migrations.revisions import check_revision, migrate_engine
from hms_gateway.storage.partitions.reads import SharedSnapshot
from hms_gateway.storage.registry.gateways import GatewayRow, forget_gateway, known_gateways, note_gateway
from hms_gateway.storage.registry.outcomes import find_outcome
from hms_gateway.storage.schema.catalog import CATALOG
from hms_gateway.storage.writing.availability import Availability
from hms_gateway.storage.writing.snapshot import SqlSnapshot
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from hms_gateway.storage.writing.transaction import SqlTransaction
from hms_gateway.txn.ports.txn import TxnWork

if TYPE_CHECKING:
    from hms_gateway.storage.dialects.mysql_version_watch import MysqlVersionWatch
    from hms_gateway.storage.dialects.postgres_pipeline import PostgresPipeline
    from hms_gateway.storage.dialects.postgres_version_watch import PostgresVersionWatch

LOOK_UP_CONNECTIONS_MAX: Final = 8

_look_up_log = logging.getLogger(__name__)


class _InUsualWay(BaseException):
    """The read has to be run in the usual way. Not an Exception, so that the read does not handle it."""


class LookUps:
    """`connect` gives a new connection, None where the database has none of this kind."""

    def __init__(self, connect: Callable[[], LookUpConnection | None], dialect: Dialect) -> None:
        self._connect = connect
        self._dialect = dialect
        self._lock = threading.Lock()
        self._idle: list[LookUpConnection] = []
        self._places = LOOK_UP_CONNECTIONS_MAX

    @contextmanager
    def snapshot(self, *, asks_once: bool) -> Iterator[Snapshot | None]:
        """None, or one in which a read ends early that has to be run in the usual way. As in `LookUp`."""
        connection = self._taken()
        if connection is None:
            yield None
            return
        try:
            yield _LookUpSnapshot(self._dialect, connection, asks_once=asks_once)
        except _InUsualWay:
            pass
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """No read begins this way any more."""
        with self._lock:
            idle, self._idle, self._places = self._idle, [], -LOOK_UP_CONNECTIONS_MAX
        for connection in idle:
            connection.close()

    def _taken(self) -> LookUpConnection | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._places <= 0:
                return None
            self._places -= 1
        connection = None
        try:
            connection = self._connect()
        except Exception:
            _look_up_log.debug("no connection for look-ups", exc_info=True)  # the usual way says what is wrong
        if connection is None:
            self._gone()
        return connection

    def _give_back(self, connection: LookUpConnection) -> None:
        try:
            connection.end()
        except Exception:
            # Others that were idle have probably been lost with it.
            with self._lock:
                lost, self._idle = [connection, *self._idle], []
            for each in lost:
                each.close()
                self._gone()
            return
        with self._lock:
            is_open = self._places >= 0
            if is_open:
                self._idle.append(connection)
        if not is_open:
            connection.close()

    def _gone(self) -> None:
        with self._lock:
            self._places += 1


class _LookUpSnapshot(SqlSnapshot):
    def __init__(self, dialect: Dialect, connection: LookUpConnection, *, asks_once: bool) -> None:
        self._dialect = dialect
        self._look_ups = connection
        self._asks_once = asks_once
        self._has_asked = False

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        raise _InUsualWay

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        if self._asks_once and self._has_asked:
            raise _InUsualWay
        self._has_asked = True
        try:
            return self._look_ups.run(statements, is_all=self._asks_once)
        except Exception as error:
            raise _InUsualWay from error


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
_LAST_EVENT_ID: Final = select(CATALOG.c.last_event_id)


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
    return SqlStore(parsed, dialect.reading_engine(parsed, read_connections_max), writing, watching, clock, limits)


def connections_wanted(read_connections_max: int) -> int:
    """The number of connections to a database server a store may have at the same time."""
    return read_connections_max + LOOK_UP_CONNECTIONS_MAX + _OTHER_CONNECTIONS


class SqlStore:
    """`ports.Store` over SQLAlchemy."""

    def __init__(
        self,
        url: URL,
        reading: Engine,
        writing: Engine,
        watching: sqlite3.Connection | None,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._url = url
        self._reading = reading
        self._writing = writing
        self._watching = watching
        self._watching_lock = threading.Lock()
        self._clock = clock
        self.times = WorkTimes()
        self.availability = Availability()
        self._dialect = dialect_of_url(url)
        for engine in (reading, writing) if self._dialect.has_clock else ():
            # A connection that looked at the revision is not known here.
            engine.dispose()
            event.listen(engine, "do_connect", lambda *_: self.availability.check())
            event.listen(engine, "connect", lambda connection, _: self.availability.keep(connection))
        connect = self._open_pipeline if self._dialect.has_pipeline else None
        self._look_ups = LookUps(self._open_look_ups, self._dialect)
        self._writer = ThreadWriter(writing, clock, limits.write_queue_max, connect, self.times, self.availability)

    def read(self, work: Callable[[Snapshot], T]) -> T:
        """See `ports.Store.read`. A list in the result keeps the connection until it is closed."""
        begin = time.perf_counter()
        try:
            result = self._read(work)
        except BaseException as error:
            self.availability.note("read", error)
            raise
        else:
            self.availability.note("read")
            return result
        finally:
            self.times.note("read", begin)

    def _read(self, work: Callable[[Snapshot], T]) -> T:
        if isinstance(work, LookUp):
            with self._look_ups.snapshot(asks_once=work.asks_once) as snapshot:
                if snapshot is not None:
                    return cast(T, work.work(snapshot))
        return self._on_a_working_connection(partial(self._read_once, work))

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
        """Connections for reading that are in use, beside the few for look-ups."""
        return cast(QueuePool, self._reading.pool).checkedout()

    @property
    def connections_max(self) -> int:
        return cast(QueuePool, self._reading.pool).size()

    def ready(self) -> None:
        """Raises StoreUnavailable when the database cannot be reached."""
        self.version()

    def version(self) -> EventId:
        """The newest event's id. Raises StoreUnavailable."""
        if self._watching is not None:
            with translated(self._reading), self._watching_lock:
                return EventId(self._watching.execute("SELECT last_event_id FROM catalog").fetchone()[0])
        return self._read(lambda snapshot: snapshot.current_event_id())

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

    def version_watch(self) -> "PostgresVersionWatch | MysqlVersionWatch | None":
        """See `cache.freshness.QueriedFeed`; None where `data_version` answers."""
        try:
            watch = self._dialect.version_watch(self._reading, self._url, CHANGES_QUERY)
        except StoreError as error:
            self.availability.note_answer(error)
            raise
        self.availability.note_answer()
        return watch

    def _open_look_ups(self) -> LookUpConnection | None:
        self.availability.check()
        found = self._dialect.look_up_connection(self._reading, self._url)
        if found is not None and self._dialect.has_clock:
            self.availability.keep(found)
        return found

    def _open_pipeline(self) -> "PostgresPipeline":
        # Only here, since PostgreSQL's driver costs a tenth of the memory of a server that needs none.
        from hms_gateway.storage.dialects.postgres_pipeline import open_pipeline

        self.availability.check()
        pipeline = open_pipeline(self._writing, self._url)
        self.availability.keep(pipeline)
        return pipeline

    def changes_since(self, event_id: EventId) -> list[StoredEvent]:
        """The events after `event_id` in order, without messages but those of commits. Raises StoreUnavailable."""

        def read() -> list[StoredEvent]:
            with self._reading.connect() as connection:
                return change_headers(connection, event_id)

        return self._on_a_working_connection(read)

    def changes_made(self, selection: ChangeSelection) -> list[MadeChange]:
        """See `ports.store.ChangeTrail.changes_made`."""

        def read() -> list[MadeChange]:
            with self._reading.connect() as connection:
                return changes_made(connection, selection)

        return self._on_a_working_connection(read)

    def forget_changes(self, before_seconds: int) -> int:
        """Forget who made changes before that time, where their events are forgotten as well; how many."""
        return self._writer.write(lambda tx: tx.delete_changes_before(before_seconds))

    def find(self, principal: str, key: str) -> Outcome | None:
        """See `call_keys.Outcomes.find`."""

        def read() -> Outcome | None:
            with self._reading.connect() as connection:
                return find_outcome(connection, principal, key)

        return self._on_a_working_connection(read)

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
            table_id = self._on_a_working_connection(self._first_dropped)
            if table_id is None:
                return
            self._writer.write(partial(SqlTransaction.delete_dropped, table_id=table_id))

    def _first_dropped(self) -> int | None:
        with self._reading.connect() as connection:
            return first_dropped(connection)

    @property
    def knows_gateways(self) -> bool:
        """Whether gateways that share the database can be known: it is a server."""
        return self._dialect.has_clock

    def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
        """Say that this process is there; all that are. It takes no lock that a change waits for."""
        return self._beside_writer(partial(note_gateway, row=row))

    def known_gateways(self) -> list[GatewayRow]:
        """The processes of gateways that use this database."""

        def read() -> list[GatewayRow]:
            with self._reading.connect() as connection:
                return known_gateways(connection)

        return self._on_a_working_connection(read)

    def connections_allowed(self) -> int | None:
        """The number of connections the database lets all gateways together have; None where there is no bound."""

        def read() -> int | None:
            with self._reading.connect() as connection:
                return self._dialect.connections_allowed(connection)

        return self._on_a_working_connection(read)

    def forget_gateway(self, gateway_id: str) -> None:
        """This process ends."""
        self._beside_writer(partial(forget_gateway, gateway_id=gateway_id))

    def _beside_writer(self, work: Callable[[Connection], T]) -> T:
        """A change that has nothing to do with the catalog. Raises StoreError."""
        with translated(self._writing), self._writing.begin() as connection:
            return work(connection)

    def close(self) -> None:
        """Finish the writes that are waiting, then close every connection that is not lent to a list."""
        self._writer.close()
        if self._watching is not None:
            with self._watching_lock:
                self._watching.close()
        self._look_ups.close()
        self._reading.dispose()
        self._writing.dispose()

    def _on_a_working_connection(self, read: Callable[[], T]) -> T:
        """What `read` gives; it is run again when its connection turns out to be broken. Raises StoreError."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                with translated(self._reading):
                    return read()
            except (Retryable, StoreUnavailable) as error:
                # When a connection broke while it was idle, SQLAlchemy drops the others of the pool with it.
                if attempt == _ATTEMPTS_MAX or not is_worth_another_try(self._reading, error):
                    raise as_unavailable(error) from error
        raise AssertionError("unreachable")

    def _read_once(self, work: Callable[[Snapshot], T]) -> T:
        shared = SharedSnapshot(self._reading.connect())
        try:
            result = work(SqlSnapshot(shared.connection, shared))
        except BaseException:
            shared.end()
            raise
        shared.release()
        return result
