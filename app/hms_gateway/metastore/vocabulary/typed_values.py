"""Partition values as typed values, and as sort keys: one text column that orders and equals as the type does.

Partition values are text whatever the key's type. `sort_key` encodes a value so that comparing the ASCII (for text
types: Unicode) code points of two keys gives the answer of comparing the typed values. Storage keeps the key beside
the value, under binary collation, and every filter on every type becomes a comparison of that column on every database.

A number is written as sign and exponent and digits, after bringing it to the form 0.DIGITS * 10**EXPONENT without
leading or trailing zeros, so that `01`, `1` and `1.0` share one key:

    -Infinity  0                                  (double and float only, as is Infinity)
    negative   1 EXPONENT DIGITS ~                each digit as its nine's complement; `~` puts -0.12 after -0.123
    zero       2
    positive   3 EXPONENT DIGITS                  EXPONENT is four digits, 5000 added
    Infinity   4

A value that is not of its key's type has no key (None, NULL in SQL): it satisfies no comparison, `!=` included. That
covers the default partition name for every type but text (semantics §4.2).
"""

import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias

from hms_gateway.metastore.vocabulary.partition_names import canonical_value
from hms_gateway.metastore.vocabulary.texts import remembered

TypedValue: TypeAlias = int | Decimal | float | str

SIGNIFICANT_DIGITS_MAX: Final = 100
EXPONENT_MAX: Final = 4999
_EXPONENT_OFFSET: Final = 5000
_NINES_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")
_INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_DATE_AND_TIME = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?)?"
)
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_TYPE_NAME = re.compile(r"\s*([A-Za-z0-9_]*)")


class ValueClass(Enum):
    """How the values of a partition key compare."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    OPAQUE = "opaque"  # complex, binary and interval types: kept, never compared

    @property
    def is_numeric(self) -> bool:
        """Whether values compare as numbers."""
        return self in (ValueClass.INTEGER, ValueClass.DECIMAL, ValueClass.DOUBLE)


_CLASS_OF_TYPE: Final = {
    "string": ValueClass.TEXT,
    "varchar": ValueClass.TEXT,
    "char": ValueClass.TEXT,
    "tinyint": ValueClass.INTEGER,
    "smallint": ValueClass.INTEGER,
    "int": ValueClass.INTEGER,
    "integer": ValueClass.INTEGER,
    "bigint": ValueClass.INTEGER,
    "decimal": ValueClass.DECIMAL,
    "double": ValueClass.DOUBLE,
    "float": ValueClass.DOUBLE,
    "date": ValueClass.DATE,
    "timestamp": ValueClass.TIMESTAMP,
    "datetime": ValueClass.TIMESTAMP,
    "boolean": ValueClass.BOOLEAN,
}


@remembered(1_024, lambda type_name: len(type_name))
def value_class(type_name: str) -> ValueClass:
    """How values of a partition key of this type (`varchar(10)`, `int`, ...) compare."""
    found = _TYPE_NAME.match(type_name)
    return _CLASS_OF_TYPE.get(found[1].lower() if found else "", ValueClass.OPAQUE)


def sort_key(type_name: str, value: str) -> str | None:
    """The text that orders `value` among values of its type, or None when it is not a value of the type."""
    return class_sort_key(value_class(type_name), value)


def class_sort_key(kind: ValueClass, value: str) -> str | None:
    """`sort_key` where the class is already known."""
    return _SORT_KEYS[kind](value)


def typed_value(type_name: str, value: str) -> TypedValue | None:
    """`value` as the Python value of its type; dates, timestamps and booleans as canonical text; None if it is none.

    Integers and decimals are exact.
    """
    kind = value_class(type_name)
    if class_sort_key(kind, value) is None:
        return None
    return _TYPED_VALUES[kind](value)


def canonical_date(text: str) -> str | None:
    """`YYYY-MM-DD` out of a date as users write it (`2024-1-2`, or with a time behind it), or None."""
    if len(text) == 10 and text[4] == text[7] == "-":
        # The usual spelling, which is read in a tenth of the time.
        try:
            date.fromisoformat(text)
            return text
        except ValueError:
            pass
    timestamp = canonical_timestamp(text)
    return timestamp and timestamp[:10]


def canonical_timestamp(text: str) -> str | None:
    """`YYYY-MM-DD HH:MM:SS[.fraction]` without trailing zeros in the fraction, or None; a missing time is midnight."""
    found = _DATE_AND_TIME.fullmatch(text.strip(" "))
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    if not _is_calendar_date(year, month, day) or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (found[7] or "").rstrip("0")
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}" + (f".{fraction}" if fraction else "")


def canonical_boolean(text: str) -> str | None:
    """`true` or `false` in any case, or None."""
    lowered = text.strip(" ").lower()
    return lowered if lowered in ("true", "false") else None


def number_sort_key(text: str) -> str | None:
    """The sort key of a decimal number in ordinary or scientific notation, or None when it is none or is too large."""
    found = _NUMBER.fullmatch(text.strip(" "))
    if not found or not (found[2] or found[3]):
        return None
    return _number_sort_key(found[1], found[2], found[3] or "", int(found[4] or 0))


def _number_sort_key(sign: str, whole: str, fraction: str, power: int) -> str | None:
    significant = (whole + fraction).lstrip("0")
    digits = significant.rstrip("0")
    if not digits:
        return "2"
    exponent = len(significant) - len(fraction) + power
    if abs(exponent) > EXPONENT_MAX or len(digits) > SIGNIFICANT_DIGITS_MAX:
        return None
    magnitude = f"{exponent + _EXPONENT_OFFSET:04}{digits}"
    return f"1{magnitude.translate(_NINES_COMPLEMENT)}~" if sign == "-" else f"3{magnitude}"


def _is_calendar_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _integer_sort_key(text: str) -> str | None:
    if text.isdigit() and text.isascii():
        return _number_sort_key("", text, "", 0)
    return number_sort_key(text) if _INTEGER.fullmatch(text.strip(" ")) else None


def _double_sort_key(text: str) -> str | None:
    """A double compares as its nearest binary value, so `0.1` equals any other spelling of the same double."""
    number = _double(text)
    if number is None or math.isnan(number):
        return None
    if math.isinf(number):
        return "4" if number > 0 else "0"
    return number_sort_key(repr(number))


def _double(text: str) -> float | None:
    stripped = text.strip(" ")
    if _NOT_FINITE.fullmatch(stripped):
        return float(stripped)
    found = _NUMBER.fullmatch(stripped)
    return float(stripped) if found and (found[2] or found[3]) else None


_SORT_KEYS: Final[dict[ValueClass, Callable[[str], str | None]]] = {
    ValueClass.TEXT: canonical_value,
    ValueClass.INTEGER: _integer_sort_key,
    ValueClass.DECIMAL: number_sort_key,
    ValueClass.DOUBLE: _double_sort_key,
    ValueClass.DATE: canonical_date,
    ValueClass.TIMESTAMP: canonical_timestamp,
    ValueClass.BOOLEAN: canonical_boolean,
    ValueClass.OPAQUE: lambda value: None,
}

_TYPED_VALUES: Final[dict[ValueClass, Callable[[str], TypedValue | None]]] = {
    **_SORT_KEYS,
    ValueClass.INTEGER: lambda value: int(Decimal(value.strip(" "))),
    ValueClass.DECIMAL: lambda value: Decimal(value.strip(" ")),
    ValueClass.DOUBLE: _double,
}
