"""PostgreSQL, by psycopg."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ARRAY,
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    NullPool,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.sql.selectable import TableValuedAlias

from hms_gateway.metastore.ports.store import StoreUnavailable, VersionWatch
from hms_gateway.storage.dialects.base import (
    CONNECT_SECONDS_MAX,
    TOO_BUSY,
    Dialect,
    LongRows,
    NoAnswer,
    Retryable,
)
from hms_gateway.storage.dialects.statements import ChangesQuery, Rows, Statement

if TYPE_CHECKING:
    from hms_gateway.storage.dialects.view_sql import ViewSql

_MIGRATION_LOCK: Final = 0x686D7367
_RETRYABLE_STATES: Final = frozenset({"40001", "40P01"})  # serialization failure, deadlock detected
_LOCK_TIMEOUT: Final = "55P03"
# Of a connection that was never made psycopg has no state.
_LOGIN_REFUSED: Final = re.compile('authentication failed|no password supplied|role ".*" (does not exist|is not permi)')
# Without the slots of superusers; NULL is no bound of role or database.
_CONNECTIONS_ALLOWED: Final = text("""
    SELECT least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0),
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
    )""")


_SEQUENCE: Final = func.pg_get_serial_sequence(bindparam("the_table", type_=Text), bindparam("the_column", type_=Text))
_NUMBERS: Final = func.generate_series(1, bindparam("count", type_=Integer)).table_valued("number")
_NEW_IDS: Final = select(func.nextval(cast(_SEQUENCE, REGCLASS))).select_from(_NUMBERS)
_LEAST: Final = bindparam("least", type_=BigInteger)
_RAISED: Final = select(
    func.setval(cast(_SEQUENCE, REGCLASS), func.greatest(_LEAST, func.nextval(cast(_SEQUENCE, REGCLASS))))
)


class PostgresDialect(Dialect):
    has_pipeline = True

    def check_url(self, url: URL) -> None:
        """Nothing is wrong with any: what is left out has a default."""

    def writing_engine(self, url: URL) -> Engine:
        engine = create_engine(
            url,
            hide_parameters=True,
            pool_size=1,
            max_overflow=1,
            isolation_level="READ COMMITTED",
            # psycopg forgets all prepared statements with a ROLLBACK, also those of `run_together`.
            connect_args={"connect_timeout": CONNECT_SECONDS_MAX, "prepare_threshold": None},
        )

        @event.listens_for(engine, "connect")
        def _bounded_waits(connection: Any, record: Any) -> None:
            from hms_gateway.storage.dialects.postgres_pipeline import bound_waits

            bound_waits(connection)
            connection.commit()

        return engine

    def reading_engine(self, url: URL) -> Engine:
        engine = create_engine(
            url,
            hide_parameters=True,
            poolclass=NullPool,
            # Who reads ends the transaction; psycopg could not, in pipeline mode.
            pool_reset_on_return=None,
            isolation_level="REPEATABLE READ",
            connect_args={"connect_timeout": CONNECT_SECONDS_MAX, "prepare_threshold": None},
        )

        @event.listens_for(engine, "connect")
        def _read_only(connection: Any, record: Any) -> None:
            from hms_gateway.storage.dialects.postgres_pipeline import find_by_index

            connection.read_only = True
            connection.execute("SET default_transaction_isolation = 'repeatable read'")
            find_by_index(connection)
            connection.commit()

        return engine

    def version_watch(self, engine: Engine, url: URL, changes: ChangesQuery) -> VersionWatch:
        # Only here, since the driver costs a tenth of a server's memory, and some commands need no connection.
        from hms_gateway.storage.dialects.postgres_pipeline import open_watch

        return open_watch(engine, url, changes)

    def text_of(self, statements: Sequence[Statement]) -> str:
        from hms_gateway.storage.dialects.postgres_pipeline import text_of

        return text_of(statements)

    def run_together(self, connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
        from hms_gateway.storage.dialects.postgres_pipeline import run_together

        return run_together(connection, statements)

    def read(self, connection: Connection, statements: Sequence[Statement], *, is_all: bool) -> list[Rows]:
        from hms_gateway.storage.dialects.postgres_pipeline import read

        return read(connection, statements, is_all=is_all)

    def leave_driver(self, connection: Connection) -> None:
        from hms_gateway.storage.dialects.postgres_pipeline import leave

        leave(connection)

    def end_reading(self, connection: Connection) -> None:
        from hms_gateway.storage.dialects.postgres_pipeline import roll_back

        roll_back(connection)

    def commit_with(self, connection: Connection, statements: Sequence[Statement]) -> None:
        from hms_gateway.storage.dialects.postgres_pipeline import commit_with

        commit_with(connection, statements)

    @contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        yield

    def view_sql(self, connection: Connection) -> "ViewSql":
        from hms_gateway.storage.dialects.view_sql import PostgresViewSql

        return PostgresViewSql()

    def translation(self, original: BaseException) -> Exception | None:
        state = self.error_code(original)
        if state in _RETRYABLE_STATES:
            return Retryable()
        if type(original).__name__ == "ConnectionTimeout":
            return NoAnswer(original)
        return StoreUnavailable(TOO_BUSY) if state == _LOCK_TIMEOUT else None

    def is_lost(self, original: BaseException | None) -> bool:
        from hms_gateway.storage.dialects.postgres_pipeline import is_lost_state

        return original is not None and is_lost_state(self.error_code(original))

    def refuses_login(self, original: BaseException) -> bool:
        return _LOGIN_REFUSED.search(str(original)) is not None

    def connections_allowed(self, connection: Connection) -> int:
        return int(connection.execute(_CONNECTIONS_ALLOWED).scalar_one())

    def error_code(self, original: BaseException) -> str:
        return getattr(original, "sqlstate", None) or ""

    def is_in_list(self, column: ColumnElement[Any], name: str | None, value: object = None) -> ColumnElement[bool]:
        array = ARRAY(Text() if isinstance(column.type, Text) else column.type)
        bound: Any = bindparam(name, type_=array) if name is not None else bindparam(None, value, type_=array)
        return column == func.any(bound)

    def has_name(
        self, id: Column[int], name: Column[str], names: str | Sequence[str], condition: ColumnElement[bool]
    ) -> ColumnElement[bool]:
        array: Any = ARRAY(Text)
        if isinstance(names, str):
            wanted: Any = bindparam(names, type_=array)
        else:
            wanted = bindparam(None, self.bound_list(names), type_=array)
        each = func.unnest(wanted).table_valued("wanted").render_derived()
        ids = _looked_up(select(id).where(condition, name == each.c.wanted), each)
        return id == func.any(func.array(ids.scalar_subquery()))

    def is_among_rows(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        # By index, also while it has no figures about the table.
        return column == func.any(func.array(rows.distinct().scalar_subquery()))

    def begins_with(self, column: ColumnElement[Any], text: ColumnElement[str]) -> ColumnElement[bool]:
        return column.op("^@", is_comparison=True)(text)

    def position(self, text: ColumnElement[str], part: str) -> ColumnElement[int]:
        return func.strpos(text, part)

    def new_ids(self, table: Table, count: int) -> Statement:
        (key,) = table.primary_key
        return Statement(_NEW_IDS, {"the_table": table.name, "the_column": key.name, "count": count})

    def raise_ids(self, connection: Connection, tables: Iterable[Table], least: int) -> None:
        for table in tables:
            (key,) = table.primary_key
            connection.execute(_RAISED, {"the_table": table.name, "the_column": key.name, "least": least})

    def long_rows(self, connection: Connection, rows: Select[Any], key: Column[str], at_once: int) -> LongRows:
        # A cursor in the server, which SQLAlchemy reads ahead from.
        return connection.execute(rows, execution_options={"stream_results": True, "max_row_buffer": at_once})


def _looked_up(rows: Select[Any], each: TableValuedAlias) -> Select[Any]:
    """`rows` for each row of `each`, one after the other.

    PostgreSQL would rather read all of one table's partitions while it has no figures about them. OFFSET makes it look
    up one by one.
    """
    found = rows.offset(literal_column("0")).correlate(each).lateral()
    return select(found).select_from(each.join(found, true())).correlate(None)


DIALECT: Final = PostgresDialect()
