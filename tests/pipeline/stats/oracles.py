"""What others count in the files, as the metastore's structs."""

import sys
from decimal import Decimal as Number

import pyarrow

from tests.pipeline.footers.content import HIVE, counted

NAN_HIDES = ("real", "wide")


def member(data):
    [found] = [value for name in data.__struct_fields__ if (value := getattr(data, name)) is not None]
    return found


def number(decimal):
    """A decimal of Hive as a number."""
    return Number(int.from_bytes(decimal.unscaled, "big", signed=True)).scaleb(-decimal.scale) if decimal else None


def plain(column, data):
    """Bounds, nulls, lengths and trues of a statistics object, as plain values."""
    found = member(data)
    kind = HIVE[column].partition("(")[0]
    values = {"nulls": found.numNulls}
    if hasattr(found, "numTrues"):
        return values | {"trues": found.numTrues, "falses": found.numFalses}
    if hasattr(found, "maxColLen"):
        return values | {"longest": found.maxColLen, "average": found.avgColLen}
    low, high = found.lowValue, found.highValue
    if kind == "decimal":
        with_digits = [None if each is None else exact(each) for each in (low, high)]
        return values | {"low": with_digits[0], "high": with_digits[1]}
    if kind == "date":
        low, high = (None if each is None else each.daysSinceEpoch for each in (low, high))
    return values | {"low": low, "high": high}


def exact(decimal):
    unscaled = int.from_bytes(decimal.unscaled, "big", signed=True)
    return Number((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -decimal.scale))


def by_arrow(column, data: pyarrow.ChunkedArray):
    """The same of a column of the data, by Arrow."""
    found, kind = counted(data), HIVE[column].partition("(")[0]
    values = {"nulls": found["nulls"]}
    if kind == "boolean":
        listed = data.to_pylist()
        return values | {"trues": listed.count(True), "falses": listed.count(False)}
    if kind in ("string", "binary"):
        present = len(data) - data.null_count
        return values | {"longest": found["longest"], "average": found["bytes"] / present if present else 0.0}
    low, high = found["low"], found["high"]
    if kind == "timestamp":
        low, high = (None if each is None else each // 10**9 for each in (low, high))
    if kind in ("float", "double"):
        low, high = (None if each is None else finite(each) for each in (low, high))
    return values | {"low": low, "high": high}


def finite(value):
    return max(-sys.float_info.max, min(sys.float_info.max, value))
