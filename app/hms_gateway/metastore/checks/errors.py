"""The exceptions several services raise, with the texts clients match (semantics §2, clients §11.1).

Several of Hive's error texts end in a struct as Java prints it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from hms_gateway.metastore.ports.store import FileSystemError, UnstorableText
from hms_gateway.metastore.vocabulary.names import display_name
from hms_gateway.rpc.structs import MetaException, NoSuchObjectException, Struct

T = TypeVar("T")

# Java's primitive fields cannot be absent.
_UNSET: Final = {"i8": "0", "i16": "0", "i32": "0", "i64": "0", "double": "0.0", "bool": "false"}


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


def java_text(value: object) -> str:
    """Text of `toString` of Thrift's Java classes: `Name(field:value, ...)`.

    Optional fields appear when they are set, the others always.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case Struct():
            return f"{value.definition.hive_name}({', '.join(_fields(value))})"
        case Mapping():
            return "{" + ", ".join(f"{java_text(key)}={java_text(item)}" for key, item in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(map(java_text, value)) + "]"
        case _:
            return str(value)


def _fields(struct: Struct) -> list[str]:
    shown = []
    for field in struct.definition.fields:
        value = getattr(struct, field.name)
        if value is None and field.requiredness != "optional":
            kind = field.type if isinstance(field.type, str) else ""
            shown.append(f"{field.name}:{_UNSET.get(kind, 'null')}")
        elif value is not None:
            shown.append(f"{field.name}:{java_text(value)}")
    return shown
