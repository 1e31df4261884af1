"""Figures of columns as the column statistics of Hive and of Spark, by the types of columns."""

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal as Number
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.parameters import (
    COLUMN_STATS_ACCURATE,
    FILE_COUNT,
    RAW_BYTES,
    ROW_COUNT,
    SPARK,
    TOTAL_BYTES,
    StatisticsAccuracy,
    parse_accuracy,
    render_accuracy,
)
from hms_gateway.pipeline.footers.footer import Column, FooterFigures
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

# Columns of tables and what statistics Hive has for their types; figures of files as those of such a column.

_FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(FooterFigures))
_LOW, _HIGH = _FIELDS.index("low"), _FIELDS.index("high")
_INT64_MAX: Final = (1 << 63) - 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, list[Any]]).decode


class ValueKind(Enum):
    """Kinds of values of columns with statistics."""

    LONG = "long"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    STRING = "string"
    BINARY = "binary"


_KINDS: Final = {
    "tinyint": ValueKind.LONG,
    "smallint": ValueKind.LONG,
    "int": ValueKind.LONG,
    "integer": ValueKind.LONG,
    "bigint": ValueKind.LONG,
    "float": ValueKind.DOUBLE,
    "double": ValueKind.DOUBLE,
    "decimal": ValueKind.DECIMAL,
    "date": ValueKind.DATE,
    "timestamp": ValueKind.TIMESTAMP,
    "boolean": ValueKind.BOOLEAN,
    "string": ValueKind.STRING,
    "varchar": ValueKind.STRING,
    "char": ValueKind.STRING,
    "binary": ValueKind.BINARY,
}
# Bytes of one value, for rawDataSize, and for Spark's avgLen and maxLen.
_WIDTHS: Final = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "integer": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "decimal": 16,
    "date": 4,
    "timestamp": 8,
}
_BASE: Final = re.compile(r"[a-z_]*")
_NANOSECONDS_A_DAY: Final = 86_400 * 10**9


class OtherType(ValueError):
    """The files have a type that is not the column's; the text says so."""


@lru_cache(maxsize=4_096)
def base_of(column_type: str) -> str:
    """`decimal` of `decimal(9,2)`."""
    found = _BASE.match(column_type.lower())
    return found[0] if found else ""


@lru_cache(maxsize=4_096)
def kind_of(column_type: str) -> ValueKind | None:
    """None for nested types, of which Hive has no statistics."""
    return _KINDS.get(base_of(column_type))


def as_column(figures: FooterFigures, file_type: str, column_type: str) -> FooterFigures:
    """Figures of a file's column as those of the table's. Raises OtherType."""
    given, wanted = kind_of(file_type), kind_of(column_type)
    if given is wanted:
        return figures
    if (given is ValueKind.LONG and wanted is ValueKind.DOUBLE) or (
        given is ValueKind.DECIMAL and wanted is ValueKind.DOUBLE
    ):
        return _changed(figures, float)
    if given is ValueKind.LONG and wanted is ValueKind.DECIMAL:
        return _changed(figures, Number)
    if given is ValueKind.DATE and wanted is ValueKind.TIMESTAMP:
        return _changed(figures, lambda days: days * _NANOSECONDS_A_DAY)
    raise OtherType(f"is {file_type} in the files and {column_type} in the table")


def _changed(figures: FooterFigures, change: Any) -> FooterFigures:
    if figures.low is None or figures.high is None:
        return figures
    return msgspec.structs.replace(figures, low=change(figures.low), high=change(figures.high))


def missing(rows: int) -> FooterFigures:
    """Figures of a column that a file does not have: every value is null."""
    return FooterFigures(rows, rows, None, None, True, True, 0, 0, True, 0, 0, 0)


def raw_bytes(column_type: str, figures: FooterFigures) -> int | None:
    """Bytes of the values of a column, as rawDataSize counts them; None where they are not known."""
    width = _WIDTHS.get(base_of(column_type))
    if width is not None:
        return None if figures.values is None else figures.values * width
    return figures.stored if figures.byte_count is None else figures.byte_count


# Figures as the column statistics of Hive, and as Spark's.


_NANOSECONDS: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT_DECIMAL_DIGITS: Final = 18


class NotKnown(ValueError):
    """The statistics of a column cannot be given; the text says what is missing."""


def column_statistics(column: Column, figures: FooterFigures) -> ColumnStatisticsObj:
    """The statistics of a column in a metastore. Raises NotKnown."""
    kind = kind_of(column.type)
    if kind is None:
        raise NotKnown(f"{column.type} has no statistics in Hive")
    if figures.nulls is None:
        raise NotKnown("the files do not say how many values are null")
    data = ColumnStatisticsData(**{_MEMBERS[kind]: _data(kind, figures, figures.nulls)})
    return ColumnStatisticsObj(colName=column.name, colType=column.type, statsData=data)


_MEMBERS: Final = {
    ValueKind.LONG: "longStats",
    # Hive 2.3 keeps seconds of timestamps as numbers.
    ValueKind.TIMESTAMP: "longStats",
    ValueKind.DOUBLE: "doubleStats",
    ValueKind.DECIMAL: "decimalStats",
    ValueKind.DATE: "dateStats",
    ValueKind.BOOLEAN: "booleanStats",
    ValueKind.STRING: "stringStats",
    ValueKind.BINARY: "binaryStats",
}


def _data(kind: ValueKind, figures: FooterFigures, nulls: int) -> Any:
    values = figures.rows - nulls
    if kind is ValueKind.BOOLEAN:
        if figures.trues is None:
            raise NotKnown("the files do not say how many values are true")
        return BooleanColumnStatsData(numTrues=figures.trues, numFalses=values - figures.trues, numNulls=nulls)
    if kind in (ValueKind.STRING, ValueKind.BINARY):
        average, longest = lengths(figures)
        if kind is ValueKind.BINARY:
            return BinaryColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls)
        distinct = distinct_values(kind, figures)
        return StringColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls, numDVs=distinct)
    if not figures.has_bounds:
        raise NotKnown("the files do not say which value is the smallest and which the largest")
    low, high = (None if bound is None else _bound(kind, bound) for bound in (figures.low, figures.high))
    return _DATA[kind](lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct_values(kind, figures))


_DATA: Final[dict[ValueKind, Any]] = {
    ValueKind.LONG: LongColumnStatsData,
    ValueKind.TIMESTAMP: LongColumnStatsData,
    ValueKind.DOUBLE: DoubleColumnStatsData,
    ValueKind.DECIMAL: DecimalColumnStatsData,
    ValueKind.DATE: DateColumnStatsData,
}


def _bound(kind: ValueKind, bound: Any) -> Any:
    match kind:
        case ValueKind.DATE:
            return Date(daysSinceEpoch=bound)
        case ValueKind.TIMESTAMP:
            return bound // _NANOSECONDS
        case ValueKind.DECIMAL:
            return hive_decimal(bound)
        case ValueKind.DOUBLE:
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


def distinct_values(kind: ValueKind, figures: FooterFigures) -> int:
    """The number of different values; if it is not known, the largest possible one."""
    values = figures.values or 0
    if figures.distinct is not None:
        return min(values, figures.distinct)
    if kind in (ValueKind.LONG, ValueKind.DATE) and isinstance(figures.low, int) and isinstance(figures.high, int):
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


def spark_statistics(column: Column, figures: FooterFigures) -> dict[str, str]:
    """Spark's properties of a column, by what follows its name; only what is known. Raises NotKnown."""
    kind = kind_of(column.type)
    if kind is None or figures.nulls is None:
        raise NotKnown("its type has no statistics, or nulls are not known")
    found = {"version": "2", "nullCount": str(figures.nulls)}
    if figures.distinct is not None:
        found["distinctCount"] = str(min(figures.distinct, figures.rows - figures.nulls))
    if kind in (ValueKind.STRING, ValueKind.BINARY):
        average, longest = lengths(figures)
        return found | {"avgLen": str(math.ceil(average)), "maxLen": str(longest)}
    size = str(_spark_size(column.type))
    if kind is ValueKind.BOOLEAN:
        found |= _spark_booleans(figures)
    elif figures.has_bounds and figures.low is not None and figures.high is not None:
        with suppress(OverflowError):  # a time beyond the years 1 to 9999, which Spark's texts do not have
            found |= {"min": _spark_text(kind, figures.low), "max": _spark_text(kind, figures.high)}
    return found | {"avgLen": size, "maxLen": size}


def _spark_size(column_type: str) -> int:
    base = base_of(column_type)
    if base != "decimal":
        return _WIDTHS[base]
    digits = int(column_type.partition("(")[2].partition(",")[0].strip(") ") or 10)
    return 8 if digits <= _SHORT_DECIMAL_DIGITS else 16


def _spark_booleans(figures: FooterFigures) -> dict[str, str]:
    values = figures.values
    if figures.trues is None or not values:
        return {}
    return {"min": str(figures.trues == values).lower(), "max": str(figures.trues > 0).lower()}


def _spark_text(kind: ValueKind, bound: Any) -> str:
    match kind:
        case ValueKind.DATE:
            return str((_EPOCH + timedelta(days=bound)).date())
        case ValueKind.TIMESTAMP:
            moment = _EPOCH + timedelta(microseconds=bound // 1_000)
            return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
        case ValueKind.DOUBLE if math.isinf(bound):
            return "Infinity" if bound > 0 else "-Infinity"
        case ValueKind.DECIMAL:
            return f"{bound:f}"
        case _:
            return str(bound)


# The parameters of tables and partitions that say how much is in them, as Hive and as Spark know them.


# When statistics were taken, and of what: how, and a digest of files and columns.
TAKEN_AT: Final = "hms.stats.at"
TAKEN_OF: Final = "hms.stats.of"
SPARK_COLUMNS: Final = f"{SPARK}colStats."
_SPARK_SCHEMA: Final = "spark.sql.sources.schema"
_OURS: Final = (FILE_COUNT, TOTAL_BYTES, ROW_COUNT, RAW_BYTES, COLUMN_STATS_ACCURATE, TAKEN_AT, TAKEN_OF)


class Amounts(msgspec.Struct, frozen=True):
    """Amounts of files, bytes and rows; None is: not known."""

    files: int
    byte_count: int
    rows: int | None
    raw: int | None


def with_amounts(
    before: Mapping[str, str], amounts: Amounts, columns: Iterable[str], at_seconds: int, of: str
) -> dict[str, str]:
    """The parameters of a partition, or of a table without partitions, after its statistics were taken."""
    kept = {name: value for name, value in before.items() if name not in _OURS and not name.startswith(SPARK)}
    kept |= {FILE_COUNT: str(amounts.files), TOTAL_BYTES: str(amounts.byte_count)}
    if amounts.rows is not None:
        kept[ROW_COUNT] = str(amounts.rows)
    if amounts.raw is not None:
        kept[RAW_BYTES] = str(amounts.raw)
    accuracy = render_accuracy(StatisticsAccuracy(amounts.rows is not None, tuple(columns)))
    if accuracy is not None:
        kept[COLUMN_STATS_ACCURATE] = accuracy
    return kept | spark_amounts(amounts) | {TAKEN_AT: str(at_seconds), TAKEN_OF: of}


def spark_amounts(amounts: Amounts) -> dict[str, str]:
    """Spark's own, of a table or partition."""
    found = {f"{SPARK}totalSize": str(amounts.byte_count)}
    return found if amounts.rows is None else found | {f"{SPARK}numRows": str(amounts.rows)}


def spark_columns(columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Spark's properties of columns, by the names that Spark has for them."""
    return {f"{SPARK_COLUMNS}{name}.{key}": value for name, found in columns.items() for key, value in found.items()}


def without_spark(before: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in before.items() if not name.startswith(SPARK)}


def spark_names(parameters: Mapping[str, str]) -> dict[str, str]:
    """Spark's spelling of columns, which Hive has in lower case; empty where Spark did not make the table."""
    text = parameters.get(_SPARK_SCHEMA) or "".join(
        parameters.get(f"{_SPARK_SCHEMA}.part.{part}", "")
        for part in range(_whole(parameters.get(f"{_SPARK_SCHEMA}.numParts")))
    )
    try:
        fields = json.loads(text)["fields"] if text else []
        return {str(field["name"]).lower(): str(field["name"]) for field in fields}
    except (ValueError, TypeError, KeyError):
        return {}


def covered(parameters: Mapping[str, str], columns: Iterable[str]) -> tuple[bool, int]:
    """Tells whether the number of rows is known, and counts the columns whose statistics hold."""
    accurate = set(parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE)).columns)
    return parameters.get(ROW_COUNT, "-1").isdecimal(), sum(column in accurate for column in columns)


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 6 else 0


def packed(figures: Mapping[str, FooterFigures]) -> bytes:
    return _encode({name: _packed_row(each) for name, each in figures.items()})


def unpacked(data: bytes) -> dict[str, FooterFigures]:
    found = {}
    for name, row in _decode(data).items():
        row[_LOW], row[_HIGH] = _unpacked_value(row[_LOW]), _unpacked_value(row[_HIGH])
        found[name] = FooterFigures(*row)
    return found


def _packed_row(figures: FooterFigures) -> list[Any]:
    row = list(msgspec.structs.astuple(figures))
    row[_LOW], row[_HIGH] = _packable(row[_LOW]), _packable(row[_HIGH])
    return row


def _packable(value: Any) -> Any:
    """Turns values that MessagePack lacks into texts: decimals, and numbers beyond 64 bits."""
    if isinstance(value, Number):
        return f"d{value}"
    return f"i{value}" if isinstance(value, int) and abs(value) > _INT64_MAX else value


def _unpacked_value(plain: Any) -> Any:
    if not isinstance(plain, str):
        return plain
    return Number(plain[1:]) if plain[0] == "d" else int(plain[1:])
