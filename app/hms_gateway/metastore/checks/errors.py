"""The exceptions several services raise, with the texts clients match (semantics §2, clients §11.1)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from hms_gateway.metastore.ports.store import FileSystemError, UnstorableText
from hms_gateway.metastore.vocabulary.names import display_name
from hms_gateway.structs import MetaException, NoSuchObjectException

T = TypeVar("T")


def table_not_found(db_name: str | None, tbl_name: str | None) -> NoSuchObjectException:
    """The answer of get_table and drop_table; names as the caller gave them."""
    return NoSuchObjectException(f"{display_name(db_name, tbl_name)} table not found")


def database_not_found(name: str | None) -> NoSuchObjectException:
    """The answer of get_database: nothing but the name, and no message at all for an empty one (semantics §2.3)."""
    return NoSuchObjectException(name or None)


def required(value: T | None, name: str) -> T:
    """`value`, or MetaException when the caller left it out.

    Hive's own text is a Java NullPointerException that differs between versions; only the class counts (semantics
    §0.1).
    """
    if value is None:
        raise MetaException(f"{name} must not be null")
    return value


@contextmanager
def file_errors_as_meta() -> Iterator[None]:
    """Turns a FileSystemError into the MetaException every method with directories declares."""
    try:
        yield
    except FileSystemError as error:
        raise MetaException(str(error)) from error


@contextmanager
def unstorable_as_meta() -> Iterator[None]:
    """Turns an UnstorableText (a NUL, a name too long) into the MetaException every changing method declares."""
    try:
        yield
    except UnstorableText as error:
        raise MetaException(str(error)) from error
