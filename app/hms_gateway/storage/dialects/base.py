"""What the storage code asks of a kind of database. A new kind is a subclass of `Dialect` here."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from sqlalchemy import URL, Column, ColumnElement, Connection, Engine, Select, Table, and_, func
from sqlalchemy.exc import DBAPIError

from hms_gateway.metastore.ports.store import StoreUnavailable, VersionWatch
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.storage.dialects.statements import ChangesQuery, ConnectionLost, Rows, Statement

if TYPE_CHECKING:
    import sqlite3

    from hms_gateway.storage.dialects.view_sql import ViewSql

BUSY_SECONDS_MAX: Final = 20
# A process that hangs inside a unit of work loses its connection, and with it the lock the others wait for.
STUCK_SECONDS_MAX: Final = 60
CONNECT_SECONDS_MAX: Final = 10
POOL_WAIT_SECONDS_MAX: Final = 30
TOO_BUSY: Final = "another process has been changing the catalog for too long"


class Retryable(Exception):
    """The database gave up a unit of work that may succeed when it is run again; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("the database asked to run the transaction again")


class NoAnswer(StoreUnavailable):
    """The database was asked for a connection, and says neither yes nor no."""

    def __init__(self, original: BaseException) -> None:
        text = f"the database does not answer within {CONNECT_SECONDS_MAX} s"
        super().__init__(text, " ".join(str(original).split()))


class LongRows(Protocol):
    """The rows of a long query, read while they are used."""

    def fetchmany(self, count: int, /) -> Sequence[Any]:
        """So many rows or fewer; none at the end only."""

    def close(self) -> None:
        """Read no more."""


class Dialect(ABC):
    """One kind of database. It has no state: there is one instance for a process.

    has_clock            the database is a server, whose clock all gateways of a catalog share
    has_figures          its planner knows how many rows conditions leave; otherwise statements name the index to use
    has_pipeline         units of work on transactions are sent by the event loop (`postgres_pipeline`)
    is_migrated_at_open  opening a database brings its schema to our revision
    undoes_migrations    a migration that fails on the way leaves nothing behind
    deleted_with_table_max  of a table with more partitions they are deleted after it, some at a time; None: never
    """

    has_clock: ClassVar[bool] = True
    has_figures: ClassVar[bool] = True
    has_pipeline: ClassVar[bool] = False
    is_migrated_at_open: ClassVar[bool] = False
    undoes_migrations: ClassVar[bool] = True
    deleted_with_table_max: ClassVar[int | None] = None

    # Connections.

    @abstractmethod
    def check_url(self, url: URL) -> None:
        """Raises StoreError for a URL that cannot be one of this kind."""

    @abstractmethod
    def writing_engine(self, url: URL) -> Engine:
        """For the one thread that changes things, and for migrations. Use the engine's own URL from then on.

        It may connect. Raises StoreUnavailable, and StoreError for a server that is too old.
        """

    @abstractmethod
    def reading_engine(self, url: URL) -> Engine:
        """For snapshots: read-only connections, each transaction one consistent state."""

    def file(self, url: URL) -> Path | None:
        """The file that is the database; None for a server."""
        return None

    def watching_connection(self, url: URL) -> "sqlite3.Connection | None":
        """A connection that only asks whether another connection committed, where that needs no query."""
        return None

    @abstractmethod
    def version_watch(self, engine: Engine, url: URL, changes: ChangesQuery) -> VersionWatch | None:
        """A connection that asks for the newest event without waiting, None where it is not needed. Connects.

        Where it `knows_changes` it finds them by the query `changes`.

        Raises StoreUnavailable.
        """

    def run_on_driver(self, connection: Connection, statement: str) -> None:
        """Run a statement that controls the transaction."""
        connection.exec_driver_sql(statement)

    def text_of(self, statements: Sequence[Statement]) -> str:
        """The text of statements that are sent together, without values."""
        return "; ".join(str(statement.sql) for statement in statements)

    def run_together(self, connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements that do not need each other's rows; the rows of each. They are sent together where possible.

        Raises what `kinds.translated` knows.
        """
        answers = [connection.execute(*statement) for statement in statements]
        return [answer.all() if answer.returns_rows else () for answer in answers]

    def read(self, connection: Connection, statements: Sequence[Statement], *, is_all: bool) -> list[Rows]:
        """The same of a connection that reads, in one state from the first statement on.

        With `is_all` no statements follow. `leave_driver` comes before statements by SQLAlchemy.
        """
        return self.run_together(connection, statements)

    def leave_driver(self, connection: Connection) -> None:  # noqa: B027 - most databases need nothing
        """Have the connection, which reads, ready for statements by SQLAlchemy."""

    def end_reading(self, connection: Connection) -> None:
        """End the transaction of a connection that reads, if there is one."""
        connection.rollback()

    def commit_with(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """The same with the commit behind. Raises ConnectionLost when that may have happened or not."""
        self.run_together(connection, statements)
        try:
            connection.commit()
        except DBAPIError as error:
            if error.connection_invalidated or self.is_lost(error.orig):
                raise ConnectionLost from error
            raise

    @contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        """Other processes that migrate this database wait meanwhile. Raises StoreUnavailable."""
        yield

    def view_sql(self, connection: Connection) -> "ViewSql | None":
        """The SQL of views over documents of JSON; None where there are none."""
        return None

    # Errors. `original` is what the driver raised.

    @abstractmethod
    def translation(self, original: BaseException) -> Exception | None:
        """The store's own error, None for a driver's error that is not one of those with a meaning here."""

    @abstractmethod
    def is_lost(self, original: BaseException | None) -> bool:
        """Whether the driver says that an established connection is lost."""

    def is_unreachable(self, original: BaseException) -> bool:
        """Whether the driver says that the connection is lost or was never made."""
        return self.is_lost(original)

    @abstractmethod
    def refuses_login(self, original: BaseException) -> bool:
        """True if the database answered a new connection that user or password are wrong."""

    @abstractmethod
    def error_code(self, original: BaseException) -> str:
        """What the database calls the error; empty where it does not say."""

    def connections_allowed(self, connection: Connection) -> int | None:
        """The number of connections this user may have at the database; None where there is no bound."""
        return None

    # Values and conditions.

    def characters_max(self, kind: str) -> int | None:
        """How long a name of this kind (`database`, `table`, …) may be, None for any length."""
        return None

    def bound_list(self, values: Iterable[int | str]) -> object:
        """The value of a parameter that is a list of ids, or of texts that a database can hold."""
        return list(values)

    def bound_pairs(self, pairs: Collection[tuple[str, str]]) -> dict[str, object]:
        """The values of the parameters of `with_pairs`."""
        firsts, seconds = ([pair[number] for pair in pairs] for number in (0, 1))
        return {"firsts": self.bound_list(firsts), "seconds": self.bound_list(seconds)}

    @abstractmethod
    def is_in_list(self, column: ColumnElement[Any], name: str | None, value: object = None) -> ColumnElement[bool]:
        """`column` is among a `bound_list`: `value`, or the parameter `name` of a statement that is made once."""

    def with_ids(self, rows: Select[Any], column: ColumnElement[Any]) -> Select[Any]:
        """The rows whose `column` is one of the ids that the parameter `ids` lists; in no order."""
        return rows.where(self.is_in_list(column, "ids"))

    def with_pairs(self, rows: Select[Any], first: Column[str], second: Column[str]) -> Select[Any]:
        """The rows with these texts in both columns, by the parameters `firsts` and `seconds`, and perhaps others."""
        return rows.where(self.is_in_list(first, "firsts"), self.is_in_list(second, "seconds"))

    def has_name(
        self, id: Column[int], name: Column[str], names: str | Sequence[str], condition: ColumnElement[bool]
    ) -> ColumnElement[bool]:
        """`condition` holds and `name` is one of several `names`; `id` is the key of the table.

        The `names` themselves, or the parameter of a statement that is made once.
        """
        if isinstance(names, str):
            return and_(condition, self.is_in_list(name, names))
        return and_(condition, self.is_in_list(name, None, self.bound_list(names)))

    def is_among_rows(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        """`column` is one of the few values that `rows`, of one column, gives; found by index."""
        return column.in_(rows)

    def alternatives(self, pattern: Pattern) -> Iterable[str]:
        """The texts for `like` of which one matches where `pattern` does."""
        return pattern.like_alternatives("!")

    def like(self, column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
        """`column` matches one of the `alternatives`, with upper and lower case as they are."""
        return column.like(text, escape="!")

    def is_like(self, column: ColumnElement[Any], texts: Sequence[str | None]) -> ColumnElement[bool]:
        """`column` is the concatenation of `texts`, where None is any run of characters."""
        return self.like(column, "".join("%" if text is None else text.translate(_LIKE_ESCAPES) for text in texts))

    def begins_with(self, column: ColumnElement[Any], text: ColumnElement[str]) -> ColumnElement[bool]:
        """`column` begins with `text`, as its index finds it."""
        return and_(column >= text, column <= text.concat(_LAST_CHARACTER))

    def characters(self, text: ColumnElement[str]) -> ColumnElement[int]:
        """How many characters a text has."""
        return func.char_length(text)

    def position(self, text: ColumnElement[str], part: str) -> ColumnElement[int]:
        """Where `part` begins in `text`, from 1 on; 0 where it does not occur."""
        return func.instr(text, part)

    # Rows.

    def deletes_later(self, partition_count: int) -> bool:
        """Tell whether a table with so many partitions goes before them (`catalog.databases`)."""
        return self.deleted_with_table_max is not None and partition_count > self.deleted_with_table_max

    def new_ids(self, table: Table, count: int) -> Statement | None:
        """Asks for `count` ids of new rows of `table`, which no others get; None where only an insertion gives them.

        What was inserted under ids of this statement has to be stored before it is run again.
        """
        return None

    @abstractmethod
    def raise_ids(self, connection: Connection, tables: Iterable[Table], least: int) -> None:
        """Have ids of new rows of these tables begin above `least`. It may end the transaction, and wait for others."""

    @abstractmethod
    def long_rows(self, connection: Connection, rows: Select[Any], key: Column[str], at_once: int) -> LongRows:
        """Read `rows` some at a time. They are in order of `key`, which is unique among them and their first column."""

    def leave_no_traces(self, connection: Connection) -> None:  # noqa: B027 - most databases need nothing
        """Have what this transaction deletes overwritten, where the database would leave it readable in a file."""


# No text that a database holds is behind one that ends with it, and begins with what is before it.
_LAST_CHARACTER: Final = "\U0010ffff"
_LIKE_ESCAPES: Final = str.maketrans({character: "!" + character for character in "%_!"})
