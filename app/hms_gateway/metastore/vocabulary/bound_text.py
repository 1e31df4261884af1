"""Smallest and largest values of column statistics as text."""

import decimal
from datetime import date, timedelta
from typing import Any, Final

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
