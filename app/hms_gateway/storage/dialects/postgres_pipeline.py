"""Connections on which PostgreSQL is sent several statements at once, without blocking for the answers.

Below SQLAlchemy's connections and psycopg's cursors, whose share of the time is several times PostgreSQL's own; the
calls are libpq's, in its pipeline mode. Statements are made from SQLAlchemy's, and prepared when they are first used.
"""

import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from sqlalchemy import URL, Connection, Engine, Executable, Insert, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import OperationalError

from hms_gateway.metastore.ports.store import EventId, StoredEvent, StoreUnavailable
from hms_gateway.runtime.call_record import TraceSpans, current_notes
from hms_gateway.storage.dialects.base import BUSY_SECONDS_MAX, CONNECT_SECONDS_MAX, STUCK_SECONDS_MAX
from hms_gateway.storage.dialects.kinds import dialect_of, not_connected
from hms_gateway.storage.dialects.statements import (
    COMMIT,
    ChangesQuery,
    ConnectionEnded,
    ConnectionLost,
    Rows,
    Statement,
    StatementRefused,
    Values,
)
from hms_gateway.storage.schema.catalog import PARTITIONS

_DIALECT: Final = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_TEXT_FORMAT, _BINARY_FORMAT = 0, 1
# More partitions are inserted by COPY.
FEW_ROWS: Final = 20
# Connection exceptions, server starting up or shutting down, too many connections.
_LOST_STATES: Final = ("08", "57P0", "53300")
_ROLLBACK: Final = Statement(text("ROLLBACK"), {})
_PLAN_FREELY: Final = Statement(text("SET LOCAL enable_seqscan = on"), {})


_Key: TypeAlias = tuple[Executable, tuple[str, ...]]  # a statement, and the names of its values


class PostgresPipeline:
    """See `pipelined_writer.Pipeline`. Others may use the connection between `exit` and `enter`."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._loaders = Transformer(connection)
        # psycopg does not report it when the connection is lost, and then it is not watched any more.
        self._fileno = connection.fileno()
        self._prepared: dict[_Key, _Prepared] = {}
        # What was sent and is not answered yet; the answer to None, which prepares a statement, is of no interest.
        self._sent: list[_Prepared | None] = []
        self._answered: list[Rows] = []
        self._answered_count = 0
        self._refusal: psycopg.Error | None = None
        self._name_count = 0
        self._is_rolling_back = False
        self._pgconn.nonblocking = 1

    def enter(self) -> None:
        """Raises ConnectionLost."""
        try:
            self._pgconn.enter_pipeline_mode()
        except psycopg.Error as error:
            raise ConnectionLost from error
        if self._is_rolling_back:
            self.wait()
            self._is_rolling_back = False

    def exit(self) -> None:
        self._pgconn.exit_pipeline_mode()

    def roll_back(self) -> None:
        """End a transaction without waiting for it. Raises ConnectionLost."""
        if self._pgconn.pipeline_status == pq.PipelineStatus.OFF:
            self._connection.rollback()
        elif self.is_in_transaction and not self._is_rolling_back:
            self.send([_ROLLBACK])
            self.flush()
            self._is_rolling_back = True

    @cached_property
    def begin(self) -> Statement:
        """Begins a transaction as psycopg would, which does not do it in time here."""
        level = psycopg.IsolationLevel(self._connection.isolation_level or psycopg.IsolationLevel.READ_COMMITTED)
        mode = "READ ONLY" if self._connection.read_only else "READ WRITE"
        return Statement(text(f"BEGIN ISOLATION LEVEL {level.name.replace('_', ' ')} {mode}"), {})

    @property
    def is_in_transaction(self) -> bool:
        return self._pgconn.transaction_status != pq.TransactionStatus.IDLE

    def fileno(self) -> int:
        return self._fileno

    def send(self, statements: Iterable[Statement]) -> None:
        self._sent, self._answered, self._answered_count, self._refusal = [], [], 0, None
        # First of all of them, so that nothing is sent when one cannot be.
        written = [_parameters(*statement) for statement in statements]
        try:
            for key, rows in written:
                for row in rows:
                    self._send_one(key, *row)
            self._pgconn.pipeline_sync()
        except psycopg.Error as error:
            raise ConnectionLost from error

    def flush(self) -> bool:
        try:
            return self._pgconn.flush() == 0
        except psycopg.Error as error:
            raise ConnectionLost from error

    def answers(self) -> list[Rows] | None:
        try:
            self._pgconn.consume_input()
            while self._sent and not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:  # the end of one statement's results
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._sent = []
                    if self._refusal is not None:
                        # Which statements it has prepared is not known.
                        self._prepared.clear()
                        raise StatementRefused(self._refusal.sqlstate) from self._refusal
                    return self._answered
                self._take(result)
        except psycopg.Error as error:
            raise ConnectionLost from error
        return None

    def wait(self) -> list[Rows]:
        """The answers, when they have come. Raises as `answers`."""
        waiting = select.poll()
        is_sent = self.flush()
        while (answers := self.answers()) is None:
            waiting.register(self._fileno, select.POLLIN if is_sent else select.POLLIN | select.POLLOUT)
            waiting.poll()
            is_sent = is_sent or self.flush()
        return answers

    def close(self) -> None:
        self._connection.close()
        # Another file may get the number.
        self._fileno = -1

    def _send_one(self, key: "_Key", parameters: list[bytes | None], formats: list[int] | None) -> None:
        prepared = self._prepared.get(key)
        if prepared is None:
            self._name_count += 1
            prepared = self._prepared[key] = _Prepared(b"s%d" % self._name_count, compiled(*key))
            self._pgconn.send_prepare(prepared.name, prepared.compiled.text)
            self._sent.append(None)
        self._pgconn.send_query_prepared(prepared.name, parameters, formats)
        self._sent.append(prepared)

    def _take(self, result: Any) -> None:
        if self._refusal is not None:
            return
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            self._refusal = error_from_result(result)
            state = self._refusal.sqlstate or ""
            if not state or is_lost_state(state):
                is_before_last = self._answered_count + 1 < len(self._sent)
                raise (ConnectionEnded if is_before_last else ConnectionLost)(state) from self._refusal
            return
        if self._sent[self._answered_count] is not None:
            self._loaders.set_pgresult(result)
            self._answered.append(self._loaders.load_rows(0, result.ntuples, list))
        self._answered_count += 1


class Compiled(NamedTuple):
    """A statement as PostgreSQL takes it. Parameters by their numbers; some have a value that never changes."""

    text: bytes
    names: Sequence[str]
    constants: Values

    def parameters(self, row: Values) -> tuple[list[bytes | None], list[int] | None]:
        """As bytes, and their formats where they are not all texts."""
        values = [row[name] if name in row else self.constants[name] for name in self.names]
        formats = None
        if bytes in map(type, values):
            formats = [_BINARY_FORMAT if isinstance(value, bytes) else _TEXT_FORMAT for value in values]
        return [_WRITTEN.get(type(value), _written)(value) for value in values], formats


class _Prepared(NamedTuple):
    name: bytes
    compiled: Compiled


def open_pipeline(engine: Engine, url: URL) -> PostgresPipeline:
    """Connect as `engine`, which writes, does. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(url)
    ours = {"autocommit": True, "connect_timeout": CONNECT_SECONDS_MAX, "client_encoding": "utf8"}
    try:
        connection = psycopg.connect(*positional, **{**named, **ours})
    except psycopg.Error as error:
        raise StoreUnavailable("the database cannot be reached") from error
    try:
        bound_waits(connection)
        # Else PostgreSQL plans look-ups of one id each time: it expects lists of ten, for which they would be dearer.
        connection.execute("SET plan_cache_mode = force_generic_plan")
        pipeline = PostgresPipeline(connection)
        pipeline.enter()
        return pipeline
    except (psycopg.Error, ConnectionLost) as error:
        connection.close()
        raise StoreUnavailable("the database cannot be reached") from error


def bound_waits(connection: Any) -> None:
    """Bound what a connection that writes waits for, and what others wait for because of it."""
    connection.execute(f"SET lock_timeout = {int(BUSY_SECONDS_MAX * 1000)}")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{STUCK_SECONDS_MAX}s'")
    find_by_index(connection)


def find_by_index(connection: Any) -> None:
    """Have no table read whole: plans are kept, and that of a small table would be used when it has grown."""
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET jit = off")


def is_lost_state(state: str) -> bool:
    """True if the state of an error says that the connection is at its end."""
    return state.startswith(_LOST_STATES)


def run_together(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
    """See `Dialect.run_together`."""
    bulk = _last_bulk(statements)
    try:
        if bulk is None:
            return _run(connection, statements)
        answers = run_together(connection, statements[:bulk])
        _copy(connection, *statements[bulk])
        return [*answers, (), *_run(connection, statements[bulk + 1 :])]
    except ConnectionLost as error:
        raise _disconnect(error) from error


def read(connection: Connection, statements: Sequence[Statement], *, is_all: bool) -> list[Rows]:
    """See `Dialect.read`. The connection stays in pipeline mode."""
    try:
        # All that is sent up to an answer is a transaction, also without a BEGIN.
        return _run(connection, statements, begins=not is_all, stays=True)
    except ConnectionLost as error:
        raise _disconnect(error) from error


def leave(connection: Connection) -> None:
    """See `Dialect.leave_driver`. Statements of SQLAlchemy are planned each time, and may read tables whole."""
    pipeline = _pipeline_of(connection)
    try:
        pipeline.enter()
        before = [] if pipeline.is_in_transaction else [pipeline.begin]
        pipeline.send([*before, _PLAN_FREELY])
        pipeline.wait()
        pipeline.exit()
    except ConnectionLost as error:
        connection.invalidate()
        raise _disconnect(error) from error


def roll_back(connection: Connection) -> None:
    """See `Dialect.end_reading`."""
    connection.rollback()
    _pipeline_of(connection).roll_back()


def commit_with(connection: Connection, statements: Sequence[Statement]) -> None:
    """See `Dialect.commit_with`."""
    bulk = _last_bulk(statements)
    if bulk is not None:
        run_together(connection, statements[: bulk + 1])
        statements = statements[bulk + 1 :]
    try:
        _run(connection, [*statements, COMMIT])
    except ConnectionEnded as error:
        raise _disconnect(error) from error
    connection.commit()  # for SQLAlchemy, which does not know it yet


def _last_bulk(statements: Sequence[Statement]) -> int | None:
    """The place of the last insertion of many partitions."""
    places = range(len(statements) - 1, -1, -1)
    return next((place for place in places if _is_bulk(*statements[place])), None)


def _is_bulk(sql: Executable, values: Values | Sequence[Values]) -> bool:
    """Rows of other tables stay within one message, and a refusal says which row it was."""
    is_of_partitions = isinstance(sql, Insert) and sql.table is PARTITIONS
    return is_of_partitions and isinstance(values, Sequence) and len(values) > FEW_ROWS


def _copy(connection: Connection, sql: Any, rows: Any) -> None:
    """Insert rows, which all have values for the same columns, in a quarter of the time of as many insertions.

    Raises ConnectionLost, and what psycopg raises.
    """
    columns = list(rows[0])
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(f"COPY {sql.table.name} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row[name] for name in columns])
    except psycopg.Error as error:
        if not driver.closed:
            raise
        connection.invalidate()
        raise ConnectionLost from error


def _run(
    connection: Connection, statements: Sequence[Statement], *, begins: bool = True, stays: bool = False
) -> list[Rows]:
    """On SQLAlchemy's own connection and in its transaction. Raises ConnectionLost, and what psycopg raises."""
    if not statements:
        return []
    pipeline = _pipeline_of(connection)
    notes, begin = current_notes(), time.perf_counter()
    try:
        pipeline.enter()
        before = [pipeline.begin] if begins and not pipeline.is_in_transaction else []
        pipeline.send([*before, *statements])
        answers = pipeline.wait()
        if not stays:
            pipeline.exit()
        _note(notes, begin, statements)
        return answers[len(before) :]
    except StatementRefused as refused:
        pipeline.exit()
        raise (refused.__cause__ or refused) from refused
    except ConnectionLost:
        connection.invalidate()
        raise
    except BaseException:
        pipeline.exit()
        raise


def text_of(statements: Sequence[Statement]) -> str:
    """See `Dialect.text_of`."""
    texts = [
        compiled(sql, tuple(values[0] if isinstance(values, Sequence) else values)).text for sql, values in statements
    ]
    return b"; ".join(texts).decode()


def _note(notes: TraceSpans | None, begin: float, statements: Sequence[Statement]) -> None:
    if notes is not None:
        notes.add("sql", begin, text_of(statements), len(statements))


def _disconnect(error: Exception) -> OperationalError:
    return OperationalError("", None, error, connection_invalidated=True)


def _pipeline_of(connection: Connection) -> PostgresPipeline:
    found: PostgresPipeline | None = connection.info.get("pipeline")
    if found is None:
        driver: Any = connection.connection.driver_connection
        found = connection.info["pipeline"] = PostgresPipeline(driver)
    return found


def _parameters(
    sql: Executable, values: Values | Sequence[Values]
) -> tuple[_Key, list[tuple[list[bytes | None], list[int] | None]]]:
    """The parameters of each row; all have values for the same ones."""
    rows = values if isinstance(values, Sequence) else (values,)
    key = sql, tuple(rows[0])
    made = compiled(*key)
    return key, [made.parameters(row) for row in rows]


@cache
def compiled(sql: Executable, names: tuple[str, ...]) -> "Compiled":
    """A statement as it is sent; `names` are those of the values that will be given, for insertions the columns."""
    made: Any = sql.compile(dialect=_DIALECT, column_keys=names, for_executemany=isinstance(sql, Insert))  # type: ignore[attr-defined]
    return Compiled(str(made).encode(), made.positiontup or (), made.params)


def _written(value: Any) -> bytes | None:
    """As PostgreSQL reads a value as text; bytes go as they are. psycopg's dumpers take twice as long, for arrays nine
    times, and a batch has an array in nearly each of its statements.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int):
        return b"%d" % value
    return b"{%b}" % b",".join([_quoted(each) if isinstance(each, str) else b"%d" % each for each in value])


# The usual types at once.
_WRITTEN: Final[Mapping[type, Callable[[Any], bytes | None]]] = {
    type(None): lambda value: None,
    str: str.encode,
    int: b"%d".__mod__,
    bytes: bytes,
}


def _quoted(text: str) -> bytes:
    """As an element of an array."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.encode()


_STATEMENT: Final = b"newest_event"
_QUERY: Final = b"SELECT last_event_id FROM catalog"
_CHANGES_STATEMENT: Final = b"changes"


class PostgresVersionWatch:
    """See `cache.freshness.VersionWatch`."""

    sees_lasting_only = True
    knows_changes = True

    def __init__(self, connection: psycopg.Connection, changes: ChangesQuery) -> None:
        """`connection` commits by itself and belongs to the watch from now on. Raises StoreUnavailable."""
        self._connection = connection
        self._changes = changes
        self._changes_query = compiled(changes.sql, ("after",))
        self._pgconn = connection.pgconn
        self._loaders = Transformer(connection)
        # Kept, since libpq forgets the number of a socket it lost, and who waits for the socket has to name it to stop.
        self._socket = connection.fileno()
        with _unavailable():
            find_by_index(connection)
            prepared = [
                self._pgconn.prepare(_STATEMENT, _QUERY),
                self._pgconn.prepare(_CHANGES_STATEMENT, self._changes_query.text),
            ]
        if any(each.status != pq.ExecStatus.COMMAND_OK for each in prepared):
            raise StoreUnavailable("the database cannot be asked for its newest event")
        self._pgconn.nonblocking = 1

    def fileno(self) -> int:
        return self._socket

    def ask(self) -> None:
        self._send(_STATEMENT, None)

    def answer(self) -> EventId | None:
        rows = self._rows()
        if rows is None:
            return None
        if not rows:
            raise StoreUnavailable("the database did not return its newest event")
        return EventId(rows[0][0])

    def ask_changes(self, event_id: EventId) -> None:
        parameters, _ = self._changes_query.parameters({"after": event_id})
        self._send(_CHANGES_STATEMENT, parameters)

    def changes(self) -> list[StoredEvent] | None:
        rows = self._rows()
        return None if rows is None else self._changes.read(rows)

    def close(self) -> None:
        self._connection.close()

    def _send(self, statement: bytes, parameters: list[bytes | None] | None) -> None:
        with _unavailable():
            self._pgconn.send_query_prepared(statement, parameters)
            # So few bytes, one question at a time: they always fit into the socket's buffer.
            self._pgconn.flush()

    def _rows(self) -> Sequence[Sequence[Any]] | None:
        """Rows of the answer, None before it is there."""
        with _unavailable():
            self._pgconn.consume_input()
            if self._pgconn.is_busy():
                return None
            rows: Sequence[Sequence[Any]] | None = None
            while (result := self._pgconn.get_result()) is not None:
                if result.status != pq.ExecStatus.TUPLES_OK:
                    raise StoreUnavailable("the database did not return its newest event")
                self._loaders.set_pgresult(result)
                rows = self._loaders.load_rows(0, result.ntuples, list)
            return rows


def open_watch(engine: Engine, url: URL, changes: ChangesQuery) -> PostgresVersionWatch:
    """Connect as `engine` would. Raises StoreUnavailable."""
    positional, named = engine.dialect.create_connect_args(url)
    try:
        connection = psycopg.connect(*positional, autocommit=True, connect_timeout=CONNECT_SECONDS_MAX, **named)
    except psycopg.Error as error:
        raise dialect_of(engine).translation(error) or not_connected(engine, error) from error
    try:
        return PostgresVersionWatch(connection, changes)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StoreUnavailable("the connection that watches for changes is lost") from error
