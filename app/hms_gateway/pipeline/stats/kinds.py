"""Columns of tables and what statistics Hive has for their types; figures of files as those of such a column."""

import re
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.footers import FooterFigures


class Kind(Enum):
    """What the statistics of a column are made of."""

    LONG = "long"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    STRING = "string"
    BINARY = "binary"


_KINDS: Final = {
    "tinyint": Kind.LONG,
    "smallint": Kind.LONG,
    "int": Kind.LONG,
    "integer": Kind.LONG,
    "bigint": Kind.LONG,
    "float": Kind.DOUBLE,
    "double": Kind.DOUBLE,
    "decimal": Kind.DECIMAL,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "boolean": Kind.BOOLEAN,
    "string": Kind.STRING,
    "varchar": Kind.STRING,
    "char": Kind.STRING,
    "binary": Kind.BINARY,
}
# Bytes of one value, for rawDataSize.
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


class TableColumn(msgspec.Struct, frozen=True):
    """A column of a table; `type` is Hive's."""

    name: str
    type: str


class OtherType(ValueError):
    """The files have a type that is not the column's; the text says so."""


@lru_cache(maxsize=4_096)
def base_of(column_type: str) -> str:
    """`decimal` of `decimal(9,2)`."""
    found = _BASE.match(column_type.lower())
    return found[0] if found else ""


@lru_cache(maxsize=4_096)
def kind_of(column_type: str) -> Kind | None:
    """None for nested types, of which Hive has no statistics."""
    return _KINDS.get(base_of(column_type))


def as_column(figures: FooterFigures, file_type: str, column_type: str) -> FooterFigures:
    """Figures of a file's column as those of the table's. Raises OtherType."""
    given, wanted = kind_of(file_type), kind_of(column_type)
    if given is wanted:
        return figures
    if (given is Kind.LONG and wanted is Kind.DOUBLE) or (given is Kind.DECIMAL and wanted is Kind.DOUBLE):
        return _changed(figures, float)
    if given is Kind.LONG and wanted is Kind.DECIMAL:
        return _changed(figures, Decimal)
    if given is Kind.DATE and wanted is Kind.TIMESTAMP:
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
