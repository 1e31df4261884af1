"""Texts of answers: bounded words of callers, suggestions, and the bounds of column statistics."""

import decimal
import difflib
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final

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
