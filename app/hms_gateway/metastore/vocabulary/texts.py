"""Texts of answers: bounded words of callers, suggestions, bounds of statistics, and structs as Java prints them."""

import decimal
import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from hms_gateway.structs import Struct

SHOWN_CHARACTERS_MAX: Final = 200


def shown(text: str | None) -> str:
    """`text` or its beginning; `null` for none, as Java prints it."""
    if text is None:
        return "null"
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def did_you_mean(word: str, known: Iterable[str], *, most: int = 3, likeness: float = 0.6) -> str:
    """`; did you mean x or y?`, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=most, cutoff=likeness)
    return f"; did you mean {' or '.join(near)}?" if near else ""


_EPOCH: Final = date(1970, 1, 1)


def bound_text(value: Any) -> str | None:
    """Text of a number, decimal, date or timestamp (seconds since 1970)."""
    if value is None or isinstance(value, int | float):
        return None if value is None else str(value)
    if hasattr(value, "daysSinceEpoch"):
        return (_EPOCH + timedelta(days=value.daysSinceEpoch)).isoformat()
    if hasattr(value, "unscaled"):
        return str(decimal.Decimal(int.from_bytes(value.unscaled, "big", signed=True)).scaleb(-value.scale))
    return str(value.secondsSinceEpoch)


# Java's primitive fields cannot be absent.
_UNSET: Final = {"i8": "0", "i16": "0", "i32": "0", "i64": "0", "double": "0.0", "bool": "false"}


def java_text(value: object) -> str:
    """What `toString` of Thrift's Java classes gives: `Name(field:value, ...)`.

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
