"""New column statistics beside those that are stored: which value counts (semantics §2.16)."""

from decimal import Decimal as Number
from typing import Any, Final

import msgspec

from hms_gateway.structs import ColumnStatisticsData_v4, Date, Decimal, Timestamp

MEMBERS: Final = tuple(field.name for field in ColumnStatisticsData_v4.definition.fields)
INT64_MAX: Final = (1 << 63) - 1

_BOUNDS: Final = ("lowValue", "highValue")
_SUMMED: Final = ("numNulls", "numTrues", "numFalses")
_LARGEST: Final = ("numDVs", "avgColLen", "maxColLen")
_SKETCHES: Final = ("bitVectors", "histogram")


class MixedStatistics(ValueError):
    """Statistics of two kinds cannot be merged."""


def member_of(data: ColumnStatisticsData_v4) -> tuple[str, Any] | None:
    """The name and value of the one that is set, None when none is."""
    for name in MEMBERS:
        value = getattr(data, name)
        if value is not None:
            return name, value
    return None


def updated(old: ColumnStatisticsData_v4, new: ColumnStatisticsData_v4) -> ColumnStatisticsData_v4:
    """`new` over `old`: what it leaves out stays, and so does the kind; of another kind only shared figures count."""
    old_name, old_value = _member(old)
    new_name, new_value = _member(new)
    names = [field.name for field in old_value.definition.fields if hasattr(new_value, field.name)]
    if old_name != new_name:
        names = [name for name in names if name not in (*_BOUNDS, *_SKETCHES)]
    given = {name: value for name in names if (value := getattr(new_value, name)) is not None}
    return ColumnStatisticsData_v4(**{old_name: msgspec.structs.replace(old_value, **given)})


def merged(old: ColumnStatisticsData_v4, new: ColumnStatisticsData_v4) -> ColumnStatisticsData_v4:
    """Both together, as of more rows: bounds widen, counts add up, the largest estimate is kept (needMerge).

    Sketches cannot be merged here and are left out. Raises MixedStatistics.
    """
    old_name, old_value = _member(old)
    new_name, new_value = _member(new)
    if old_name != new_name:
        raise MixedStatistics(f"{new_name} cannot be merged with {old_name}")
    fields: dict[str, Any] = {}
    for field in old_value.definition.fields:
        name = field.name
        given = [value for one in (old_value, new_value) if (value := getattr(one, name)) is not None]
        if not given or name in _SKETCHES:
            continue
        if name in _SUMMED:
            fields[name] = bounded(sum(given))
        elif name == "lowValue":
            fields[name] = min(given, key=order)
        else:
            assert name == "highValue" or name in _LARGEST
            fields[name] = max(given, key=order)
    return ColumnStatisticsData_v4(**{old_name: type(old_value)(**fields)})


def order(value: Any) -> Any:
    """By what bounds compare: decimals as numbers, dates and timestamps by their count; NaN below everything."""
    match value:
        case Decimal():
            return number(value)
        case Date():
            return value.daysSinceEpoch
        case Timestamp():
            return value.secondsSinceEpoch
        case float() if value != value:
            return float("-inf")
        case _:
            return value


def number(value: Decimal) -> Number:
    """A decimal as a number, exactly."""
    unscaled = Number(int.from_bytes(value.unscaled or b"", "big", signed=True))
    sign, digits, _ = unscaled.as_tuple()
    return Number((sign, digits, -(value.scale or 0)))


def bounded(value: int) -> int:
    """`value` within the range of an i64."""
    return max(-INT64_MAX - 1, min(INT64_MAX, value))


def _member(data: ColumnStatisticsData_v4) -> tuple[str, Any]:
    found = member_of(data)
    assert found is not None, "checked when it came in"
    return found
