"""Figures as statistics of Hive and of Spark, and on their way through the tables of a run."""

import math
import random
import sys
from decimal import Decimal

import pytest

from hms_gateway.pipeline.footers.footer import Column, FooterFigures, joined
from hms_gateway.pipeline.stats.column_statistics import (
    NotKnown,
    OtherType,
    as_column,
    column_statistics,
    hive_decimal,
    missing,
    packed,
    raw_bytes,
    spark_statistics,
    unpacked,
)
from tests.pipeline.stats.oracles import exact, member


def known(low, high, **more):
    return FooterFigures(
        **{"rows": 10, "nulls": 1, "low": low, "high": high, "has_bounds": True, "is_exact": True} | more
    )


def data_of(column_type, figures):
    return member(column_statistics(Column("c", column_type), figures).statsData)


@pytest.mark.parametrize(
    ("text", "unscaled", "scale"),
    [
        ("0", b"\0", 0),
        ("-1", b"\xff", 0),
        ("1.27", b"\x7f", 2),
        ("1.28", b"\0\x80", 2),
        ("-1.28", b"\x80", 2),
        ("-1.29", b"\xff\x7f", 2),
        ("1E+2", b"d", 0),
        ("-9999999999999999999999999999.9999999999", None, 10),
    ],
)
def test_decimals_are_the_shortest_twos_complement(text, unscaled, scale):
    found = hive_decimal(Decimal(text))
    assert found.scale == scale
    assert unscaled is None or found.unscaled == unscaled
    assert exact(found) == Decimal(text)


def test_random_decimals_come_back():
    source = random.Random(4)
    for _ in range(500):
        digits = source.randrange(1, 39)
        value = Decimal(
            (source.randrange(2), tuple(source.randrange(10) for _ in range(digits)), -source.randrange(12))
        )
        assert exact(hive_decimal(value)) == value


def test_timestamps_are_seconds_rounded_down():
    found = data_of("timestamp", known(-1, 1_500_000_000))
    assert (found.lowValue, found.highValue) == (-1, 1)


def test_infinite_bounds_are_the_largest_finite_numbers():
    found = data_of("double", known(-math.inf, math.inf))
    assert (found.lowValue, found.highValue) == (-sys.float_info.max, sys.float_info.max)


@pytest.mark.parametrize(
    ("column_type", "figures", "distinct"),
    [
        ("int", known(1, 3), 3),
        ("int", known(1, 100), 9),
        ("int", known(5, 5, distinct=1), 1),
        ("date", known(0, 1), 2),
        ("double", known(0.0, 1.0), 9),
        ("bigint", missing(10), 0),
    ],
)
def test_distinct_values_are_a_bound_where_they_are_not_counted(column_type, figures, distinct):
    assert data_of(column_type, figures).numDVs == distinct


@pytest.mark.parametrize(
    ("column_type", "figures", "missing_words"),
    [
        ("int", FooterFigures(10, 1), "which value is the smallest"),
        ("int", FooterFigures(10, None), "how many values are null"),
        ("boolean", known(0, 1), "how many values are true"),
        ("string", FooterFigures(10, 1), "how long the values are"),
        ("array<int>", FooterFigures(10, 1), "has no statistics in Hive"),
    ],
)
def test_what_is_not_known_is_said(column_type, figures, missing_words):
    with pytest.raises(NotKnown, match=missing_words):
        data_of(column_type, figures)


def test_spark_gets_microseconds_and_what_is_known_only():
    moment = known(-1_000, 1_700_000_000_123_456_789)
    assert spark_statistics(Column("t", "timestamp"), moment) == {
        "version": "2",
        "nullCount": "1",
        "min": "1969-12-31 23:59:59.999999",
        "max": "2023-11-14 22:13:20.123456",
        "avgLen": "8",
        "maxLen": "8",
    }
    assert "min" not in spark_statistics(Column("n", "bigint"), FooterFigures(10, 1))


@pytest.mark.parametrize("days", [-(10**7), 10**8])
def test_times_that_a_calendar_does_not_have_are_left_out_for_spark(days):
    assert "max" not in spark_statistics(Column("d", "date"), known(days, days))
    nanoseconds = days * 86_400 * 10**9
    assert "max" not in spark_statistics(Column("t", "timestamp"), known(nanoseconds, nanoseconds))


def test_figures_of_a_narrower_type_are_those_of_the_column():
    assert as_column(known(1, 3), "int", "decimal(9,2)").high == Decimal(3)
    assert as_column(known(1, 3), "tinyint", "double").low == 1.0
    assert as_column(known(-1, 2), "date", "timestamp").low == -86_400 * 10**9
    with pytest.raises(OtherType, match=r"is int in the files and string in the table"):
        as_column(known(1, 3), "int", "string")


def test_raw_bytes_are_those_of_the_values():
    assert raw_bytes("int", known(1, 2)) == 36
    assert raw_bytes("string", known(b"a", b"b", byte_count=12)) == 12
    assert raw_bytes("array<int>", FooterFigures(10, None, stored=77)) == 77
    assert raw_bytes("int", FooterFigures(10, None)) is None


def test_figures_come_back_from_the_tables_of_a_run():
    figures = {
        "a": known(Decimal("-1.50"), Decimal(10**37), distinct=3),
        "b": known(-(10**25), 10**25),
        "c": known(b"\xff\0", b"\xff\xff", byte_count=9, longest=2),
        "d": known(-0.5, math.inf),
        "e": missing(0),
    }
    assert unpacked(packed(figures)) == figures


def test_parts_add_up_and_what_one_does_not_know_is_not_known():
    parts = [known(1, 5, distinct=3), known(-2, 3, distinct=2), missing(4)]
    both = joined(parts)
    assert (both.rows, both.nulls, both.low, both.high, both.has_bounds, both.distinct) == (24, 6, -2, 5, True, None)
    assert not joined([*parts, FooterFigures(3, 0)]).has_bounds
    assert joined([known(1, 5), FooterFigures(3, None)]).nulls is None
    assert joined([known(7, 7, distinct=1), known(7, 7, distinct=1)]).distinct == 1
    assert joined([known(7, 7, distinct=1), missing(4)]).distinct == 1
