"""New statistics over old ones, and both together."""

import pytest

from hms_gateway.catalog.statistics.aggregation import MixedStatistics, member_of, merged, updated
from hms_gateway.rpc.structs import (
    BooleanColumnStatsData_v4,
    ColumnStatisticsData_v4,
    DateColumnStatsData_v4,
    Decimal,
    DecimalColumnStatsData_v4,
    DoubleColumnStatsData_v4,
    LongColumnStatsData_v4,
    StringColumnStatsData_v4,
)


def longs(*figures: int | None, **more: bytes) -> ColumnStatisticsData_v4:
    return ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(*figures, **more))


def strings(*figures: float) -> ColumnStatisticsData_v4:
    return ColumnStatisticsData_v4(stringStats=StringColumnStatsData_v4(*figures))


def test_the_member_that_is_set() -> None:
    assert member_of(ColumnStatisticsData_v4()) is None
    assert member_of(longs(1, 2, 3, 4)) == ("longStats", LongColumnStatsData_v4(1, 2, 3, 4))


def test_what_an_update_leaves_out_stays() -> None:
    assert updated(longs(1, 2, 3, 4, bitVectors=b"x"), longs(None, 9, 5, 6)) == longs(1, 9, 5, 6, bitVectors=b"x")


def test_an_update_of_another_kind_changes_the_shared_figures_only() -> None:
    doubles = ColumnStatisticsData_v4(doubleStats=DoubleColumnStatsData_v4(0.5, 1.5, 7, 8, b"sketch"))
    assert updated(longs(1, 2, 3, 4), doubles) == longs(1, 2, 7, 8)
    assert updated(strings(9, 1.5, 3, 4), longs(1, 2, 5, 6)) == strings(9, 1.5, 5, 6)


def test_merging_widens_and_adds_up() -> None:
    assert merged(longs(1, 5, 3, 4, bitVectors=b"x"), longs(0, 3, 1, 9)) == longs(0, 5, 4, 9)
    assert merged(longs(None, None, 3, 4), longs(7, 8, 1, 2)) == longs(7, 8, 4, 4)
    assert merged(strings(9, 1.5, 3, 4), strings(7, 2.5, 1, 9)) == strings(9, 2.5, 4, 9)
    one = ColumnStatisticsData_v4(booleanStats=BooleanColumnStatsData_v4(1, 2, 3))
    assert merged(one, one) == ColumnStatisticsData_v4(booleanStats=BooleanColumnStatsData_v4(2, 4, 6))


def test_decimals_merge_as_numbers() -> None:
    nine_and_a_half, ten = Decimal(b"\x5f", 1), Decimal(b"\x0a", 0)
    found = merged(
        ColumnStatisticsData_v4(decimalStats=DecimalColumnStatsData_v4(nine_and_a_half, nine_and_a_half, 0, 1)),
        ColumnStatisticsData_v4(decimalStats=DecimalColumnStatsData_v4(ten, ten, 0, 1)),
    )
    assert found.decimalStats == DecimalColumnStatsData_v4(nine_and_a_half, ten, 0, 1)


def test_sums_do_not_leave_the_range_of_numbers() -> None:
    found = merged(longs(1, 2, 2**63 - 1, 1), longs(1, 2, 5, 1))
    assert found == longs(1, 2, 2**63 - 1, 1)


def test_kinds_do_not_mix() -> None:
    dates = ColumnStatisticsData_v4(dateStats=DateColumnStatsData_v4(None, None, 1, 1))
    with pytest.raises(MixedStatistics, match="dateStats cannot be merged with longStats"):
        merged(longs(1, 2, 3, 4), dates)
