"""Values of JSON objects that clients sent or files hold, checked where they are read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.iceberg.errors import bad_request

T = TypeVar("T")
Json = dict[str, Any]

# Of a value in an object or list, besides its text.
_VALUE_BYTES: Final = 64
# C code that reads a text keeps Python's lock to its end, and the event loop waits: longer texts are read in pieces.
PIECE_BYTES: Final = 256 * 1024
# Lists and objects in each other that are taken apart: each takes another walk over the text.
_LEVELS: Final = 4
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_is_count = re.compile(r"\d{1,19}", re.ASCII).fullmatch
LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1
_NAMES: dict[type, str] = {str: "a string", int: "an integer", bool: "a boolean", dict: "an object", list: "a list"}


def decoded_bytes(text: bytes) -> int:
    """About the memory that the values of a JSON text take."""
    begins = range(0, len(text), PIECE_BYTES)
    signs = (text.count(sign, at, at + PIECE_BYTES) for at in begins for sign in (b",", b":", b"{", b"["))
    return len(text) + _VALUE_BYTES * sum(signs)


def decoded(text: bytes | msgspec.Raw, levels: int = _LEVELS) -> Any:
    """The value of a JSON text. Raises DecodeError, UnicodeDecodeError, RecursionError."""
    if len(memoryview(text)) < PIECE_BYTES or levels == 0:
        return msgspec.json.decode(text)
    match memoryview(text)[:1].tobytes():
        case b"{":
            return {key: decoded(value, levels - 1) for key, value in _fields(text).items()}
        case b"[":
            return [decoded(value, levels - 1) for value in _elements(text)]
    return msgspec.json.decode(text)


def needed(of: Json, field: str, kind: type[T]) -> T:
    """The field's value. Raises IcebergError that names a missing field, or one of another kind."""
    value = of.get(field)
    if value is None:
        raise bad_request(f"{field} is missing")
    return checked(field, value, kind)


def optional(of: Json, field: str, kind: type[T]) -> T | None:
    """The field's value, None where it is absent or null. Raises as `needed`."""
    value = of.get(field)
    return None if value is None else checked(field, value, kind)


def checked(field: str, value: Any, kind: type[T]) -> T:
    """The value. Raises IcebergError for one of another kind; a boolean is no integer."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise bad_request(f"{field} must be {_NAMES[kind]}")
    if isinstance(value, int) and not -LONG_MAX <= value <= LONG_MAX:
        raise bad_request(f"{field} must be an integer of 64 bits")
    return value


def count(value: Any) -> int | None:
    """A number of files, rows or bytes as summaries have it, None for any other text or value."""
    return int(value) if isinstance(value, str) and _is_count(value) else None


@contextmanager
def read_by_name() -> Iterator[None]:
    """Inside, what a value lacks, or has of another kind, is refused. Raises IcebergError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise bad_request(f"the metadata or the request has an odd value: {type(error).__name__}: {error}") from error


def objects(of: Json, field: str) -> list[Json]:
    """The objects of a list, none where it is absent. Raises IcebergError."""
    return [checked(f"{field}[{i}]", each, dict) for i, each in enumerate(optional(of, field, list) or ())]


def small(of: Json, field: str, minimum: int = 0) -> int:
    """A needed integer of 32 bits. Raises IcebergError, also for one below the minimum."""
    value = needed(of, field, int)
    if not minimum <= value <= INT_MAX:
        raise bad_request(f"{field} must be an integer from {minimum} to {INT_MAX}")
    return value


def integers(of: Json, field: str) -> list[int]:
    return [checked(f"{field}[{i}]", each, int) for i, each in enumerate(needed(of, field, list))]


def texts(of: Json, field: str) -> list[str]:
    return [checked(f"{field}[{i}]", each, str) for i, each in enumerate(optional(of, field, list) or ())]


def text_map(of: Json, field: str) -> dict[str, str]:
    """A map of strings, empty where it is absent. Raises IcebergError."""
    found = optional(of, field, dict) or {}
    return {key: checked(f"{field}.{key}", value, str) for key, value in found.items()}
