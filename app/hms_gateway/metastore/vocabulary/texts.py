"""Texts: bounded words of callers, suggestions, bounds of column statistics; functions of texts that remember."""

import decimal
import difflib
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

# Texts of answers: bounded words of callers, suggestions, and the bounds of column statistics.


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


# The year 5138, counted in seconds.
_MILLISECONDS_FROM: Final = 100_000_000_000


def time_text(moment: float | None) -> str | None:
    """Seconds or milliseconds since 1970 as ISO 8601 in UTC; None for None and 0, which mean that there is no time.

    A number stays one if the calendar has no year for it.
    """
    if not moment:
        return None
    try:
        time = datetime.fromtimestamp(moment / 1000 if moment >= _MILLISECONDS_FROM else moment, UTC)
    except (OverflowError, ValueError, OSError):
        return str(moment)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


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


# Remembers what functions of texts gave, but not for long texts: those come from callers, and could be of any size.


P = ParamSpec("P")
T = TypeVar("T")

CHARACTERS_MAX = 1_000


def remembered(entries_max: int, characters: Callable[P, int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like lru_cache, for arguments of at most CHARACTERS_MAX `characters`; longer ones are computed each time."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        known = lru_cache(entries_max)(function)

        @wraps(function)
        def answer(*arguments: P.args, **named: P.kwargs) -> T:
            if characters(*arguments, **named) > CHARACTERS_MAX:
                return function(*arguments, **named)
            return known(*arguments, **named)  # type: ignore[arg-type]

        return answer

    return decorate
