"""Random columns with everything that is hard about values, and what Arrow counts in them."""

import math
import random
from datetime import date
from decimal import Decimal

import pyarrow
import pyarrow.compute

from hms_gateway.pipeline.storage import Storage, files_of

TYPES = {
    "flag": pyarrow.bool_(),
    "tiny": pyarrow.int8(),
    "small": pyarrow.int16(),
    "whole": pyarrow.int32(),
    "big": pyarrow.int64(),
    "real": pyarrow.float32(),
    "wide": pyarrow.float64(),
    "money": pyarrow.decimal128(9, 2),
    "huge": pyarrow.decimal128(38, 10),
    "day": pyarrow.date32(),
    "moment": pyarrow.timestamp("us"),
    "exact": pyarrow.timestamp("ns"),
    "note": pyarrow.string(),
    "data": pyarrow.binary(),
}
HIVE = {
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "big": "bigint",
    "real": "float",
    "wide": "double",
    "money": "decimal(9,2)",
    "huge": "decimal(38,10)",
    "day": "date",
    "moment": "timestamp",
    "exact": "timestamp",
    "note": "string",
    "data": "binary",
}
TEXTS = ("", "a", "é", "\U0001f600", "z" * 90, "ü" * 70, "\0", " ", "\x7f", "long " * 30)


def random_table(random_source: random.Random, rows: int) -> pyarrow.Table:
    """Some columns are all null, constant or NaN."""
    return pyarrow.table(
        {name: pyarrow.array(_column(random_source, name, rows), type=of) for name, of in TYPES.items()}
    )


def _column(random_source, name, rows):
    shape = random_source.choice(("all", "all", "all", "some", "none", "one"))
    if shape == "none":
        return [None] * rows
    if shape == "one":
        return [_value(random_source, name)] * rows
    share = 0.0 if shape == "all" else random_source.random()
    return [None if random_source.random() < share else _value(random_source, name) for _ in range(rows)]


def _value(random_source, name):
    of = TYPES[name]
    if pyarrow.types.is_boolean(of):
        return random_source.random() < 0.5
    if pyarrow.types.is_integer(of):
        limit = 1 << (of.bit_width - 1)
        return random_source.choice((-limit, limit - 1, 0, random_source.randrange(-limit, limit)))
    if pyarrow.types.is_floating(of):
        large = 3.0e38 if of.bit_width == 32 else 1.7e308
        return random_source.choice(
            (0.0, -0.0, math.nan, math.inf, -math.inf, large, 1.5, random_source.uniform(-9, 9))
        )
    if pyarrow.types.is_decimal(of):
        limit = 10**of.precision - 1
        number = random_source.choice((-limit, limit, 0, -1, random_source.randrange(-limit, limit)))
        return Decimal(number).scaleb(-of.scale) if of.precision < 20 else _scaled(number, of.scale)
    if pyarrow.types.is_date(of):
        return random_source.choice((date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29)))
    if pyarrow.types.is_timestamp(of):
        return random_source.choice((-1, 0, 1, 10**15 + 1, -(10**15) - 1, random_source.randrange(-(2**55), 2**55)))
    text = random_source.choice(TEXTS)
    return text if pyarrow.types.is_string(of) else text.encode()


def _scaled(number, scale):
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def counted(column: pyarrow.ChunkedArray) -> dict:
    """Nulls, low, high and bytes, as Arrow finds them; NaN apart, and in the units of Figures."""
    of = column.type
    values = column.drop_null()
    if pyarrow.types.is_floating(of):
        values = values.filter(pyarrow.compute.invert(pyarrow.compute.is_nan(values)))
    found = {"nulls": column.null_count, "low": None, "high": None, "bytes": None}
    if pyarrow.types.is_string(of) or pyarrow.types.is_binary(of):
        as_binary = values.cast(pyarrow.binary())
        found["bytes"] = pyarrow.compute.sum(pyarrow.compute.binary_length(as_binary)).as_py() or 0
        found["longest"] = pyarrow.compute.max(pyarrow.compute.binary_length(as_binary)).as_py() or 0
        values = as_binary
    if pyarrow.types.is_date(of):
        values = values.cast(pyarrow.int32())
    factor = 1
    if pyarrow.types.is_timestamp(of):
        factor = {"us": 1_000, "ns": 1}[of.unit]
        values = values.cast(pyarrow.int64())
    if len(values):
        bounds = pyarrow.compute.min_max(values.cast(pyarrow.int8()) if pyarrow.types.is_boolean(of) else values)
        found["low"], found["high"] = bounds["min"].as_py(), bounds["max"].as_py()
        if factor != 1:
            found["low"], found["high"] = found["low"] * factor, found["high"] * factor
    return found


def reading(location):
    """Reads a file, wherever it lies."""
    files = files_of(location, Storage(roots=("file:/", "memory:///stats")))
    path = files.root(location)
    return lambda offset, length: files.read(path, offset, length)
