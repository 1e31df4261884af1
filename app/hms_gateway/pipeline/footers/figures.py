"""What is known about the values of one column: how many are null, the smallest, the largest, their bytes."""

from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

import msgspec

# int also for dates (days since 1970) and timestamps (nanoseconds since 1970, UTC or local time as written).
Value: TypeAlias = int | float | Decimal | bytes


class FooterFigures(msgspec.Struct, frozen=True):
    """About one column in some rows. None is: not known.

    has_bounds  no value lies outside of `low` and `high`, NaN apart; they are None where there are no other values
    is_exact    `low` and `high` are values of the column themselves, not shortened ones
    byte_count  bytes of all strings or binaries (UTF-8)
    longest     bytes of the longest one; `longest_is_exact` says whether it is only known to have at least so many
    trues       how many booleans are true
    distinct    how many different values there are
    stored      bytes in the file, encoded and not compressed
    """

    rows: int
    nulls: int | None
    low: Value | None = None
    high: Value | None = None
    has_bounds: bool = False
    is_exact: bool = False
    byte_count: int | None = None
    longest: int | None = None
    longest_is_exact: bool = False
    trues: int | None = None
    distinct: int | None = None
    stored: int | None = None

    @property
    def values(self) -> int | None:
        """How many are not null."""
        return None if self.nulls is None else self.rows - self.nulls


def joined(parts: Iterable[FooterFigures]) -> FooterFigures:
    """Figures of all rows out of those of some; bounds are of one kind. At least one part."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    bounded = [part for part in found if part.low is not None and part.high is not None]
    return FooterFigures(
        rows=sum(part.rows for part in found),
        nulls=_sum(part.nulls for part in found),
        low=min((part.low for part in bounded if part.low is not None), default=None),
        high=max((part.high for part in bounded if part.high is not None), default=None),
        has_bounds=all(part.has_bounds for part in found),
        is_exact=all(part.is_exact for part in found),
        byte_count=_sum(part.byte_count for part in found),
        longest=_largest(part.longest for part in found),
        longest_is_exact=all(part.longest_is_exact for part in found),
        trues=_sum(part.trues for part in found),
        distinct=_of_one([part for part in found if part.rows != part.nulls]),
        stored=_sum(part.stored for part in found),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)


def _largest(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else max(number for number in known if number is not None)


def _of_one(with_values: list[FooterFigures]) -> int | None:
    """Different values of several parts may be the same."""
    if not with_values:
        return 0
    first = with_values[0]
    if len(with_values) == 1:
        return first.distinct
    is_one = all(part.distinct == 1 and part.low == part.high == first.low for part in with_values)
    return 1 if is_one and first.low is not None else None
