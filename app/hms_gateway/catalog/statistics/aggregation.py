"""Statistics of a transactional table, valid or not for a reader who says which write ids it sees; and their events.

Basic statistics are parameters of a table or partition, which keeps the write id under which they were written; column
statistics have their own. Their notification events are as 3.1 and later write them; earlier servers said nothing.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.parameters import COLUMN_STATS_ACCURATE, parse_accuracy, without_accuracy
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.rpc.structs import (
    BinaryColumnStatsData_v4,
    BooleanColumnStatsData_v4,
    ColumnStatisticsData_v4,
    ColumnStatisticsObj_v4,
    Date,
    Decimal,
    MetaException,
    Partition,
    StringColumnStatsData_v4,
    Table,
    Timestamp,
)
from hms_gateway.storage.catalog.statistics import ColumnFigures
from hms_gateway.txn.rules.write_ids import InvalidList, ValidIds, parse_valid_write_ids

Name = TypeVar("Name")

Verdict: TypeAlias = bool | None
"""None where the reader did not say what it sees."""


class Judged(msgspec.Struct, Generic[Name], frozen=True):
    """The statistics that hold, by partition or for the table, and whether those are all."""

    figures: Mapping[Name, Sequence[ColumnFigures]]
    all_hold: Verdict


def judged(
    table: Table,
    valid_write_ids: str | None,
    figures: Mapping[Name, Sequence[ColumnFigures]],
    parameters: Callable[[], Mapping[Name, Mapping[str, str]]],
) -> Judged[Name]:
    """Leave out what a reader with this list must not go by, as Hive 4 does. Raises MetaException for another text.

    `parameters` reads those of the table or the partitions, which say whether anything was written since.
    """
    if not valid_write_ids:
        return Judged(figures, None)
    if not is_transactional(table.parameters or {}):
        return Judged(figures, True)
    seen = seen_by(valid_write_ids)
    if not any(one.write_id for each in figures.values() for one in each):
        return Judged(figures, True)
    known = parameters()
    holding = {name: each for name, each in figures.items() if _hold(each, seen, known.get(name, {}))}
    return Judged(holding, len(holding) == len(figures))


def table_for(table: Table, valid_write_ids: str | None) -> Table:
    """A table as a reader with this list is to see it. Raises MetaException for another text.

    It says whether its basic statistics hold. Where they do not, it does not say that they are accurate. A partitioned
    table has none of its own (`partition_for`).
    """
    if not valid_write_ids or table.partitionKeys or not is_transactional(table.parameters or {}):
        return table
    holds = _basic_hold(table, seen_by(valid_write_ids))
    parameters = table.parameters if holds else without_accuracy(table.parameters or {})
    return msgspec.structs.replace(table, parameters=parameters, isStatsCompliant=holds)


def partition_for(table: Table, partition: Partition, valid_write_ids: str | None) -> Partition:
    """The same for a partition of a table."""
    if not valid_write_ids or not is_transactional(table.parameters or {}):
        return partition
    holds = _basic_hold(partition, seen_by(valid_write_ids))
    parameters = partition.parameters if holds else without_accuracy(partition.parameters or {})
    return msgspec.structs.replace(partition, parameters=parameters, isStatsCompliant=holds)


def deciding_write_id(table: Table) -> int | None:
    """The write id that readers have to see for the basic statistics to hold; None where all get the same answer."""
    parameters = table.parameters or {}
    if table.partitionKeys or not is_transactional(parameters) or not _are_accurate(parameters):
        return None
    return table.writeId


def after_concurrent_write(parameters: dict[str, str], before: int | None, seen: ValidIds) -> dict[str, str]:
    """The parameters that a writer leaves who sees these ids, where `before` is the write id of those it replaces.

    What it did not see is not in its figures, unless that was aborted; so they are not accurate then, as in Hive 4.
    """
    if not before or seen.is_valid(before) or seen.is_aborted(before):
        return parameters
    return without_accuracy(parameters)


def seen_by(valid_write_ids: str) -> ValidIds:
    """The ids of a list as it was sent. Raises MetaException for another text."""
    try:
        return parse_valid_write_ids(valid_write_ids).ids
    except InvalidList as error:
        raise MetaException(str(error)) from error


def _basic_hold(one: Table | Partition, seen: ValidIds) -> bool:
    if not one.writeId:
        return True
    return _are_accurate(one.parameters or {}) and seen.is_valid(one.writeId)


def _are_accurate(parameters: Mapping[str, str]) -> bool:
    return parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE)).basic


def _hold(figures: Iterable[ColumnFigures], seen: ValidIds, parameters: Mapping[str, str]) -> bool:
    """Statistics without a write id hold as far as is known: their writer knew none."""
    write_ids = {one.write_id for one in figures if one.write_id}
    if not write_ids:
        return True
    return _are_accurate(parameters) and all(seen.is_valid(write_id) for write_id in write_ids)


# One estimate out of statistics of many partitions, and new statistics beside stored ones (semantics §2.16).


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


class Aggregate(msgspec.Struct, frozen=True):
    columns: list[ColumnStatisticsObj_v4]
    partitions_found: int


# A partition's place among those asked for, and its statistics of one column.
_Row: TypeAlias = tuple[int, Any]


def aggregate(
    names: Sequence[str],
    columns: Sequence[str],
    found: Mapping[str, Sequence[ColumnFigures]],
) -> Aggregate:
    """Sum up `columns` over the partitions `names`; `found` is what is known, by partition.

    Where some partitions have no statistics of a column, the others' are extrapolated along the order of `names`.
    """
    positions = {name: position for position, name in enumerate(dict.fromkeys(names))}
    wanted = list(dict.fromkeys(columns))
    groups: dict[tuple[str, str], list[_Row]] = {}
    complete = 0
    for name, position in positions.items():
        known = [figures for figures in found.get(name, ()) if figures.column in wanted]
        complete += len({figures.column for figures in known}) == len(wanted)
        for figures in known:
            groups.setdefault((figures.column, figures.column_type), []).append((position, figures.data))
    objects = [
        ColumnStatisticsObj_v4(column, column_type, data)
        for (column, column_type), rows in sorted(groups.items(), key=lambda item: wanted.index(item[0][0]))
        if (data := _column(rows, len(positions), complete)) is not None
    ]
    return Aggregate(objects, complete)


def _column(rows: Sequence[_Row], count: int, complete: int) -> ColumnStatisticsData_v4 | None:
    first = member_of(rows[0][1])
    if first is None:
        return None
    kind, example = first
    values = [(position, value) for position, data in rows if (value := getattr(data, kind)) is not None]
    is_whole = complete == count or len(values) == count or len(values) < 2
    totals = _Totals(values, None if is_whole else count)
    return ColumnStatisticsData_v4(**{kind: _estimate(totals, example)})


class _Totals(msgspec.Struct, frozen=True):
    """Figures of one column over all partitions; `count` is their number if some have to be guessed."""

    rows: Sequence[_Row]
    count: int | None

    def sum_of(self, field: str) -> int:
        total = sum(getattr(value, field) or 0 for _, value in self.rows)
        return bounded(total if self.count is None else _whole_part(total, len(self.rows)) * self.count)

    def smallest(self, field: str) -> Any:
        return self._extreme(field, extrapolated_low, min)

    def largest(self, field: str) -> Any:
        return self._extreme(field, extrapolated_high, max)

    def _extreme(self, field: str, extrapolate: "_Extrapolation", choose: Callable[..., Any]) -> Any:
        known = [(position, found) for position, value in self.rows if (found := getattr(value, field)) is not None]
        if not known:
            return None
        if self.count is None:
            return choose((found for _, found in known), key=order)
        lowest = min(known, key=lambda row: (order(row[1]), row[0]))
        highest = max(known, key=lambda row: (order(row[1]), row[0]))
        if lowest[0] == highest[0]:
            return lowest[1]
        return _like(lowest[1], extrapolate(_point(lowest), _point(highest), self.count - 1))


_Point: TypeAlias = tuple[int, Any]
_Extrapolation: TypeAlias = Callable[[_Point, _Point, int], Any]


def extrapolated_high(lowest: _Point, highest: _Point, last: int) -> Any:
    """The largest value on the line through two points (place, value), as far as place 0 or `last` reaches.

    Integers are computed as integers.
    """
    (at_low, low), (at_high, high) = lowest, highest
    if at_low < at_high:
        return low + _divided((high - low) * (last - at_low), at_high - at_low)
    return low + _divided((high - low) * at_low, at_low - at_high)


def extrapolated_low(lowest: _Point, highest: _Point, last: int) -> Any:
    """The smallest value on that line."""
    (at_low, low), (at_high, high) = lowest, highest
    if at_low < at_high:
        return high - _divided((high - low) * at_high, at_high - at_low)
    return high - _divided((high - low) * (last - at_high), at_low - at_high)


def _estimate(totals: _Totals, example: Any) -> Any:
    match example:
        case BooleanColumnStatsData_v4():
            return BooleanColumnStatsData_v4(
                totals.sum_of("numTrues"), totals.sum_of("numFalses"), totals.sum_of("numNulls")
            )
        case StringColumnStatsData_v4():
            lengths = totals.largest("maxColLen"), totals.largest("avgColLen")
            return StringColumnStatsData_v4(*lengths, totals.sum_of("numNulls"), totals.largest("numDVs"))
        case BinaryColumnStatsData_v4():
            lengths = totals.largest("maxColLen"), totals.largest("avgColLen")
            return BinaryColumnStatsData_v4(*lengths, totals.sum_of("numNulls"))
        case _:
            low, high = totals.smallest("lowValue"), totals.largest("highValue")
            return type(example)(low, high, totals.sum_of("numNulls"), _distinct_values(totals, low, high))


def _distinct_values(totals: _Totals, low: Any, high: Any) -> int:
    """The largest of the partitions, as by Hive's defaults (hive.metastore.stats.ndv.tuner and densityfunction)."""
    estimate = totals.largest("numDVs") or 0
    if isinstance(low, int | Date | Timestamp) and high is not None:
        # A range has at most so many whole numbers.
        estimate = min(estimate, order(high) - order(low) + 1)
    return bounded(estimate)


def _point(row: _Row) -> _Point:
    """For reckoning: decimals go through floating point, as in Hive."""
    position, value = row
    return position, float(number(value)) if isinstance(value, Decimal) else order(value)


def _like(example: Any, value: Any) -> Any:
    """A reckoned number as a value of the kind it was made from."""
    match example:
        case Decimal():
            return _decimal(value) or example
        case Date():
            return Date(bounded(value))
        case Timestamp():
            return Timestamp(bounded(value))
        case float():
            return value
        case _:
            return bounded(value)


def _decimal(value: float) -> Decimal | None:
    if not math.isfinite(value):
        return None
    exact = Number(repr(value))
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int)
    unscaled = int(exact.scaleb(-exponent))
    return Decimal(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), -exponent)


def _divided(dividend: Any, divisor: int) -> Any:
    return _whole_part(dividend, divisor) if isinstance(dividend, int) else dividend / divisor


def _whole_part(dividend: int, divisor: int) -> int:
    """Division as Java and SQL do it: towards zero."""
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient
