"""Aggregation of column statistics over partitions: golden cases of semantics §2.16.1."""

from typing import Any

import pytest

from hms_gateway.catalog.statistics.aggregation import (
    aggregate,
    extrapolated_high,
    extrapolated_low,
)
from hms_gateway.rpc.structs import (
    BinaryColumnStatsData_v4,
    BooleanColumnStatsData_v4,
    ColumnStatisticsData_v4,
    Date,
    DateColumnStatsData_v4,
    Decimal,
    DecimalColumnStatsData_v4,
    DoubleColumnStatsData_v4,
    LongColumnStatsData_v4,
    StringColumnStatsData_v4,
    Timestamp,
    TimestampColumnStatsData,
)
from hms_gateway.storage.catalog.statistics import ColumnFigures

NAMES = [f"p={number}" for number in range(5)]
_KINDS = {
    LongColumnStatsData_v4: ("longStats", "bigint"),
    DoubleColumnStatsData_v4: ("doubleStats", "double"),
    StringColumnStatsData_v4: ("stringStats", "string"),
    BinaryColumnStatsData_v4: ("binaryStats", "binary"),
    BooleanColumnStatsData_v4: ("booleanStats", "boolean"),
    DecimalColumnStatsData_v4: ("decimalStats", "decimal(10,2)"),
    DateColumnStatsData_v4: ("dateStats", "date"),
    TimestampColumnStatsData: ("timestampStats", "timestamp"),
}


def figures(value: Any, column: str = "c") -> ColumnFigures:
    kind, column_type = _KINDS[type(value)]
    return ColumnFigures(column, column_type, ColumnStatisticsData_v4(**{kind: value}), 1)


def summed(found: dict[int, Any], names: list[str] = NAMES) -> Any:
    """The aggregate of column `c`, whose statistics are given by the position of the partition."""
    known = {names[position]: [figures(value)] for position, value in found.items()}
    [column] = aggregate(names, ["c"], known).columns
    return next(value for kind, _ in _KINDS.values() if (value := getattr(column.statsData, kind)) is not None)


def decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), scale)


def test_nothing_known_is_nothing_found() -> None:
    found = aggregate(NAMES, ["c"], {})
    assert (found.columns, found.partitions_found) == ([], 0)


def test_partitions_count_when_they_have_every_column() -> None:
    one, other = LongColumnStatsData_v4(1, 2, 0, 2), LongColumnStatsData_v4(1, 2, 0, 2)
    known = {
        "p=0": [figures(one, "a"), figures(other, "b")],
        "p=1": [figures(one, "a")],
        "p=2": [figures(one, "a"), figures(other, "b"), figures(one, "ignored")],
    }
    found = aggregate(NAMES, ["b", "a", "b", "none"], known)
    assert [column.colName for column in found.columns] == ["b", "a"]
    assert found.partitions_found == 0
    assert aggregate(NAMES, ["b", "a"], known).partitions_found == 2


def test_all_partitions_known_is_a_plain_aggregate() -> None:
    found = summed({0: LongColumnStatsData_v4(5, 9, 1, 3), 1: LongColumnStatsData_v4(-2, 7, 4, 6)}, NAMES[:2])
    assert found == LongColumnStatsData_v4(-2, 9, 5, 6)


def test_one_known_partition_stands_for_itself() -> None:
    assert summed({3: LongColumnStatsData_v4(5, 9, 1, 3)}) == LongColumnStatsData_v4(5, 9, 1, 3)


def test_two_of_five_are_extrapolated_as_on_a_live_server() -> None:
    # The largest value grows by 20 a partition from 20 at the second; lows shrink to nothing at the first.
    found = summed({1: LongColumnStatsData_v4(10, 20, 1, 2), 2: LongColumnStatsData_v4(20, 40, 1, 4)})
    assert found == LongColumnStatsData_v4(0, 80, 5, 8)


def test_extrapolation_in_falling_order() -> None:
    found = summed({1: LongColumnStatsData_v4(30, 40, 3, 4), 3: LongColumnStatsData_v4(10, 20, 4, 2)})
    # Sums divide first, towards zero: (3 + 4) DIV 2 * 5.
    assert found == LongColumnStatsData_v4(0, 50, 15, 5)


@pytest.mark.parametrize(
    ("lowest", "highest", "high", "low"),
    [
        ((1, 10), (2, 20), 40, 0),
        ((2, 20), (1, 30), 40, 0),
        ((0, 1), (3, 2), 2, 1),
        ((0, 0.0), (3, 1.0), 4 / 3, 0.0),
        ((0, 5), (4, 5), 5, 5),
    ],
)
def test_extrapolation_formulas(lowest: Any, highest: Any, high: float, low: float) -> None:
    assert extrapolated_high(lowest, highest, 4) == pytest.approx(high)
    assert extrapolated_low(lowest, highest, 4) == pytest.approx(low)


def test_distinct_values_by_range() -> None:
    narrow = {0: LongColumnStatsData_v4(1, 3, 0, 10), 1: LongColumnStatsData_v4(1, 3, 0, 20)}
    assert summed(narrow, NAMES[:2]).numDVs == 3
    unbounded = {0: LongColumnStatsData_v4(None, None, 0, 10), 1: LongColumnStatsData_v4(None, None, 0, 20)}
    assert summed(unbounded, NAMES[:2]).numDVs == 20


def test_each_kind_of_statistics() -> None:
    two = NAMES[:2]
    assert summed(
        {0: DoubleColumnStatsData_v4(0.5, 1.5, 1, 9), 1: DoubleColumnStatsData_v4(-1.0, 1.0, 1, 3)}, two
    ) == DoubleColumnStatsData_v4(-1.0, 1.5, 2, 9)
    assert summed(
        {0: StringColumnStatsData_v4(7, 2.5, 1, 9), 1: StringColumnStatsData_v4(5, 3.5, 1, 3)}, two
    ) == StringColumnStatsData_v4(7, 3.5, 2, 9)
    assert summed(
        {0: BinaryColumnStatsData_v4(7, 2.5, 1), 1: BinaryColumnStatsData_v4(5, 3.5, 1)}, two
    ) == BinaryColumnStatsData_v4(7, 3.5, 2)
    assert summed(
        {0: BooleanColumnStatsData_v4(1, 2, 3), 1: BooleanColumnStatsData_v4(10, 20, 30)}, two
    ) == BooleanColumnStatsData_v4(11, 22, 33)
    assert summed(
        {0: DateColumnStatsData_v4(Date(1), Date(9), 1, 99), 1: DateColumnStatsData_v4(Date(3), Date(10), 1, 2)}, two
    ) == DateColumnStatsData_v4(Date(1), Date(10), 2, 10)
    assert summed(
        {
            1: TimestampColumnStatsData(Timestamp(10), Timestamp(20), 1, 2),
            2: TimestampColumnStatsData(Timestamp(20), Timestamp(40), 1, 4),
        }
    ) == TimestampColumnStatsData(Timestamp(0), Timestamp(80), 5, 8)


def test_decimals_compare_as_numbers() -> None:
    known = {
        0: DecimalColumnStatsData_v4(decimal(95, 1), decimal(100, 1), 0, 1),
        1: DecimalColumnStatsData_v4(decimal(900, 2), decimal(99, 0), 0, 2),
    }
    assert summed(known, NAMES[:2]) == DecimalColumnStatsData_v4(decimal(900, 2), decimal(99, 0), 0, 2)


def test_decimals_are_extrapolated_through_floating_point() -> None:
    known = {
        1: DecimalColumnStatsData_v4(decimal(105, 1), decimal(20, 0), 0, 1),
        2: DecimalColumnStatsData_v4(decimal(21, 0), decimal(40, 0), 0, 1),
    }
    assert summed(known) == DecimalColumnStatsData_v4(decimal(0, 1), decimal(800, 1), 0, 1)


@pytest.mark.parametrize(
    "extreme",
    [
        {1: LongColumnStatsData_v4(-(2**63), 2**63 - 1, 2**63 - 1, 2**63 - 1), 2: LongColumnStatsData_v4(0, 1, 1, 1)},
        {
            1: DoubleColumnStatsData_v4(float("nan"), float("inf"), 1, 1),
            2: DoubleColumnStatsData_v4(float("-inf"), float("nan"), 1, 1),
        },
        {
            1: DecimalColumnStatsData_v4(decimal(1, -32768), decimal(1, 32767), 1, 1),
            2: DecimalColumnStatsData_v4(decimal(-1, 0), decimal(9, -32768), 1, 1),
        },
    ],
)
def test_extreme_values_stay_within_what_can_be_sent(extreme: dict[int, Any]) -> None:
    found = summed(extreme)
    for name in ("lowValue", "highValue", "numNulls", "numDVs"):
        value = getattr(found, name)
        assert not isinstance(value, int) or -(2**63) <= value < 2**63
