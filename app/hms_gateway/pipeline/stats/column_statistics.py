"""Figures as the column statistics of Hive, and as Spark's."""

import math
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal as Number
from typing import Any, Final

from hms_gateway.pipeline.footers import FooterFigures
from hms_gateway.pipeline.stats.kinds import Kind, TableColumn, base_of, kind_of
from hms_gateway.rpc.structs import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
)

_NANOSECONDS: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Spark's size of a value of a type, which it takes for avgLen and maxLen.
_SPARK_SIZES: Final = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "integer": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "date": 4,
    "timestamp": 8,
}
_SHORT_DECIMAL_DIGITS: Final = 18


class NotKnown(ValueError):
    """The statistics of a column cannot be given; the text says what is missing."""


def column_statistics(column: TableColumn, figures: FooterFigures) -> ColumnStatisticsObj:
    """What a metastore keeps of a column. Raises NotKnown."""
    kind = kind_of(column.type)
    if kind is None:
        raise NotKnown(f"{column.type} has no statistics in Hive")
    if figures.nulls is None:
        raise NotKnown("the files do not say how many values are null")
    data = ColumnStatisticsData(**{_MEMBERS[kind]: _data(kind, figures, figures.nulls)})
    return ColumnStatisticsObj(colName=column.name, colType=column.type, statsData=data)


_MEMBERS: Final = {
    Kind.LONG: "longStats",
    # Hive 2.3 keeps seconds of timestamps as numbers.
    Kind.TIMESTAMP: "longStats",
    Kind.DOUBLE: "doubleStats",
    Kind.DECIMAL: "decimalStats",
    Kind.DATE: "dateStats",
    Kind.BOOLEAN: "booleanStats",
    Kind.STRING: "stringStats",
    Kind.BINARY: "binaryStats",
}


def _data(kind: Kind, figures: FooterFigures, nulls: int) -> Any:
    values = figures.rows - nulls
    if kind is Kind.BOOLEAN:
        if figures.trues is None:
            raise NotKnown("the files do not say how many values are true")
        return BooleanColumnStatsData(numTrues=figures.trues, numFalses=values - figures.trues, numNulls=nulls)
    if kind in (Kind.STRING, Kind.BINARY):
        average, longest = lengths(figures)
        if kind is Kind.BINARY:
            return BinaryColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls)
        distinct = distinct_values(kind, figures)
        return StringColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls, numDVs=distinct)
    if not figures.has_bounds:
        raise NotKnown("the files do not say which value is the smallest and which the largest")
    low, high = (None if bound is None else _bound(kind, bound) for bound in (figures.low, figures.high))
    return _DATA[kind](lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct_values(kind, figures))


_DATA: Final[dict[Kind, Any]] = {
    Kind.LONG: LongColumnStatsData,
    Kind.TIMESTAMP: LongColumnStatsData,
    Kind.DOUBLE: DoubleColumnStatsData,
    Kind.DECIMAL: DecimalColumnStatsData,
    Kind.DATE: DateColumnStatsData,
}


def _bound(kind: Kind, bound: Any) -> Any:
    match kind:
        case Kind.DATE:
            return Date(daysSinceEpoch=bound)
        case Kind.TIMESTAMP:
            return bound // _NANOSECONDS
        case Kind.DECIMAL:
            return hive_decimal(bound)
        case Kind.DOUBLE:
            # No database of a metastore but PostgreSQL and SQLite keeps an infinite number.
            return max(-sys.float_info.max, min(sys.float_info.max, bound))
        case _:
            return bound


def hive_decimal(value: Number) -> Decimal:
    """Hive's form of a decimal: two's complement in as few bytes as hold it, and the scale. Exact."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "decimals of files are finite"
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    if exponent > 0:
        number, exponent = number * 10**exponent, 0
    return Decimal(
        scale=-exponent, unscaled=number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
    )


def distinct_values(kind: Kind, figures: FooterFigures) -> int:
    """How many different values there are; where that is not known, how many there can be at most."""
    values = figures.values or 0
    if figures.distinct is not None:
        return min(values, figures.distinct)
    if kind in (Kind.LONG, Kind.DATE) and isinstance(figures.low, int) and isinstance(figures.high, int):
        return min(values, figures.high - figures.low + 1)
    return values


def lengths(figures: FooterFigures) -> tuple[float, int]:
    """The mean and the largest number of bytes of a value. Raises NotKnown.

    Where a file does not say how many bytes its values have, what they take in it is an estimate.
    """
    values = figures.values
    if not values:
        return 0.0, 0
    total = figures.stored if figures.byte_count is None else figures.byte_count
    if total is None:
        raise NotKnown("the files do not say how long the values are")
    average = total / values
    return average, max(figures.longest or 0, math.ceil(average) if figures.longest is None else 0)


def spark_statistics(column: TableColumn, figures: FooterFigures) -> dict[str, str]:
    """Spark's properties of a column, by what follows its name; only what is known. Raises NotKnown."""
    kind = kind_of(column.type)
    if kind is None or figures.nulls is None:
        raise NotKnown("its type has no statistics, or nulls are not known")
    found = {"version": "2", "nullCount": str(figures.nulls)}
    if figures.distinct is not None:
        found["distinctCount"] = str(min(figures.distinct, figures.rows - figures.nulls))
    if kind in (Kind.STRING, Kind.BINARY):
        average, longest = lengths(figures)
        return found | {"avgLen": str(math.ceil(average)), "maxLen": str(longest)}
    size = str(_spark_size(column.type))
    if kind is Kind.BOOLEAN:
        found |= _spark_booleans(figures)
    elif figures.has_bounds and figures.low is not None and figures.high is not None:
        with suppress(OverflowError):  # a time beyond the years 1 to 9999, which Spark's texts do not have
            found |= {"min": _spark_text(kind, figures.low), "max": _spark_text(kind, figures.high)}
    return found | {"avgLen": size, "maxLen": size}


def _spark_size(column_type: str) -> int:
    base = base_of(column_type)
    if base != "decimal":
        return _SPARK_SIZES[base]
    digits = int(column_type.partition("(")[2].partition(",")[0].strip(") ") or 10)
    return 8 if digits <= _SHORT_DECIMAL_DIGITS else 16


def _spark_booleans(figures: FooterFigures) -> dict[str, str]:
    values = figures.values
    if figures.trues is None or not values:
        return {}
    return {"min": str(figures.trues == values).lower(), "max": str(figures.trues > 0).lower()}


def _spark_text(kind: Kind, bound: Any) -> str:
    match kind:
        case Kind.DATE:
            return str((_EPOCH + timedelta(days=bound)).date())
        case Kind.TIMESTAMP:
            moment = _EPOCH + timedelta(microseconds=bound // 1_000)
            return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
        case Kind.DOUBLE if math.isinf(bound):
            return "Infinity" if bound > 0 else "-Infinity"
        case Kind.DECIMAL:
            return f"{bound:f}"
        case _:
            return str(bound)
