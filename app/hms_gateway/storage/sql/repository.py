"""A base for repositories: a connection inside a transaction that others begin and commit."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Insert

from hms_gateway.metastore.ports.store import Snapshot, UnstorableText
from hms_gateway.storage.dialects import Dialect, dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.catalog import NAME_BYTES_MAX


def check_name(kind: str, name: str, dialect: Dialect) -> None:
    """Raise UnstorableText unless `name` can be stored and indexed on a database of this kind."""
    check_text(kind, name)
    longest = dialect.characters_max(kind)
    if longest is not None and len(name) > longest:
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {longest} characters")
    if len(name) * 4 > NAME_BYTES_MAX and len(name.encode()) > NAME_BYTES_MAX:
        raise UnstorableText(f"{kind} {name[:80]}… is longer than {NAME_BYTES_MAX} bytes")


def check_text(kind: str, text: str | None) -> None:
    """Raise UnstorableText for what no database can keep on its own; inside encoded fragments it is escaped."""
    if text is not None and not is_storable(text):
        shown = text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
        raise UnstorableText(f"{kind} {shown[:80]} contains a NUL character or half of a surrogate pair")


def is_storable(text: str) -> bool:
    """Tell whether a database can hold the text as it is."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Repository:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)

    def _run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """See `Dialect.run_together`."""
        return self._dialect.run_together(self._connection, statements)

    def _inserted_id(self, statement: Insert) -> int:
        """Run an insert of one row and return the id the database gave it."""
        key: Any = self._connection.execute(statement).inserted_primary_key
        return int(key[0])


class AggregateRows(Repository):
    """Rows of an aggregate, inside a unit of work."""

    def __init__(self, unit: Snapshot) -> None:
        super().__init__(unit.connection)
