"""Values of JSON objects that clients sent or files hold, checked where they are read."""

from typing import Any, TypeVar

from hms_gateway.iceberg.errors import bad_request

T = TypeVar("T")
Json = dict[str, Any]

_NAMES: dict[type, str] = {str: "a string", int: "an integer", bool: "a boolean", dict: "an object", list: "a list"}


def needed(of: Json, field: str, kind: type[T]) -> T:
    """The field's value. Raises IcebergError that names a missing field, or one of another kind."""
    value = of.get(field)
    if value is None:
        raise bad_request(f"{field} is missing")
    return checked(field, value, kind)


def optional(of: Json, field: str, kind: type[T]) -> T | None:
    """As `needed`, None for a field that is absent or null."""
    value = of.get(field)
    return None if value is None else checked(field, value, kind)


def checked(field: str, value: Any, kind: type[T]) -> T:
    """The value. Raises IcebergError for one of another kind; a boolean is no integer."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise bad_request(f"{field} must be {_NAMES[kind]}")
    return value


def objects(of: Json, field: str) -> list[Json]:
    """The objects of a list, none where it is absent. Raises IcebergError."""
    return [checked(f"{field}[{i}]", each, dict) for i, each in enumerate(optional(of, field, list) or ())]


def integers(of: Json, field: str) -> list[int]:
    return [checked(f"{field}[{i}]", each, int) for i, each in enumerate(needed(of, field, list))]


def texts(of: Json, field: str) -> list[str]:
    return [checked(f"{field}[{i}]", each, str) for i, each in enumerate(optional(of, field, list) or ())]


def text_map(of: Json, field: str) -> dict[str, str]:
    """A map of strings, empty where it is absent. Raises IcebergError."""
    found = optional(of, field, dict) or {}
    return {key: checked(f"{field}.{key}", value, str) for key, value in found.items()}
