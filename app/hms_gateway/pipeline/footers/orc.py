"""What the tail of an ORC file says."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.footers.figures import FooterFigures
from hms_gateway.pipeline.footers.footer import Column, Footer
from hms_gateway.pipeline.footers.orc_messages import (
    Fields,
    NotAMessage,
    binary,
    double,
    int32,
    message,
    number,
    numbers,
    signed,
    text,
    unpacked,
)

FORMAT = "orc"
FOOTER_BYTES_MAX: Final = 256 * 1024 * 1024
NESTING_MAX: Final = 64

_SIMPLE: Final = {
    0: "boolean",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "bigint",
    5: "float",
    6: "double",
    7: "string",
    8: "binary",
    9: "timestamp",
    15: "date",
    18: "timestamp",
}
_LIST, _MAP, _STRUCT, _UNION, _DECIMAL, _VARCHAR, _CHAR = 10, 11, 12, 13, 14, 16, 17
_HAS_MARKS: Final = re.compile(r"[<>(),:`]").search
_NANOSECONDS_A_MILLISECOND: Final = 1_000_000


class _NotInHive(ValueError):
    """A column has a type that Hive does not have."""


class _Type(msgspec.Struct, frozen=True):
    kind: int
    children: Sequence[int]
    names: Sequence[str]
    length: int
    precision: int
    scale: int


def footer_length(postscript: bytes) -> int:
    """Bytes of the footer, which ends where the postscript begins. Raises NotAMessage."""
    length = number(message(postscript), 1)
    if length is None:
        raise NotAMessage("its postscript names no footer")
    return length


def orc_footer(data: bytes, postscript: bytes) -> Footer:
    """`data` is the footer as it is in the file. Raises NotAMessage."""
    compression = number(message(postscript), 2) or 0
    footer = message(unpacked(data, compression, FOOTER_BYTES_MAX))
    types = [_type_of(message(one)) for one in footer.get(4, ()) if isinstance(one, bytes)]
    if not types or types[0].kind != _STRUCT or len(types[0].children) != len(types[0].names):
        raise NotAMessage("its schema is not a struct")
    rows = number(footer, 6) or 0
    statistics = [one for one in footer.get(7, ()) if isinstance(one, bytes)]
    columns: list[Column] = []
    figures: dict[str, FooterFigures] = {}
    unread: list[tuple[str, str]] = []
    for name, place in zip(types[0].names, types[0].children, strict=True):
        try:
            column = Column(name.lower(), _hive_type(types, place, NESTING_MAX))
            if column.name in figures:
                raise _NotInHive("has the name of another column, but for upper and lower case")
        except _NotInHive as reason:
            unread.append((name, str(reason)))
            continue
        columns.append(column)
        said = message(statistics[place]) if place < len(statistics) else None
        figures[column.name] = FooterFigures(rows, None) if said is None else _figures(types[place], said, rows)
    return Footer(FORMAT, rows, tuple(columns), figures, tuple(unread))


def _type_of(fields: Fields) -> _Type:
    try:
        names = [one.decode() for one in fields.get(3, ()) if isinstance(one, bytes)]
    except UnicodeDecodeError as error:
        raise NotAMessage("a column's name is not UTF-8") from error
    kind = number(fields, 1)
    return _Type(
        # The first kind is 0, which some writers leave out.
        kind or 0,
        numbers(fields, 2),
        names,
        number(fields, 4) or 0,
        number(fields, 5) or 0,
        number(fields, 6) or 0,
    )


def _hive_type(types: Sequence[_Type], place: int, depth: int) -> str:
    """Raises _NotInHive, NotAMessage."""
    if place >= len(types) or depth == 0:
        raise NotAMessage("its schema names a type that is not there")
    found = types[place]
    if found.kind in _SIMPLE:
        return _SIMPLE[found.kind]
    if found.kind == _DECIMAL:
        # Old files do not say which.
        return f"decimal({found.precision or 38},{found.scale if found.precision else 18})"
    if found.kind in (_VARCHAR, _CHAR):
        return f"{'varchar' if found.kind == _VARCHAR else 'char'}({found.length})"
    children = [_hive_type(types, child, depth - 1) for child in found.children]
    if found.kind == _STRUCT and children and len(children) == len(found.names):
        for name in found.names:
            if not name or _HAS_MARKS(name):
                raise _NotInHive(f"has a field with the name {name!r}, which Hive's types cannot have")
        return f"struct<{','.join(f'{name.lower()}:{of}' for name, of in zip(found.names, children, strict=True))}>"
    wanted = {_LIST: ("array", 1), _MAP: ("map", 2), _UNION: ("uniontype", len(children) or 1)}.get(found.kind)
    if wanted is None or wanted[1] != len(children):
        raise _NotInHive(f"has a type of the kind {found.kind} that Hive does not have")
    return f"{wanted[0]}<{','.join(children)}>"


def _figures(of: _Type, said: Fields, rows: int) -> FooterFigures:
    values = number(said, 1)
    if values is None or not 0 <= values <= rows:
        return FooterFigures(rows, None)
    if of.kind in (_LIST, _MAP, _STRUCT, _UNION):
        return FooterFigures(rows, rows - values)
    if values == 0:
        return FooterFigures(rows, rows, None, None, True, True, 0, 0, True, 0, 0)
    low, high, is_exact = _bounds(of.kind, said)
    if low is not None and (high is None or low > high):
        low = high = None
    is_one = low is not None and is_exact and low == high and not isinstance(low, float)
    byte_count, trues = _byte_count(said), _trues(of.kind, said)
    known = [len(bound) for bound in (low, high) if isinstance(bound, bytes)]
    if byte_count is not None:
        known.append(-(-byte_count // values))
    return FooterFigures(
        rows=rows,
        nulls=rows - values,
        low=low,
        high=high,
        has_bounds=low is not None,
        is_exact=low is not None and is_exact,
        byte_count=byte_count,
        longest=max(known, default=None),
        longest_is_exact=is_one,
        trues=trues,
        distinct=1 if is_one or trues in (0, values) else 2 if trues is not None else None,
    )


def _bounds(kind: int, said: Fields) -> tuple[Any, Any, bool]:
    """Low, high, and whether they are values themselves; None for what is not there."""
    if (inner := _inner(said, 2)) is not None:
        return _both(signed(inner, 1), signed(inner, 2))
    if (inner := _inner(said, 3)) is not None:
        return _doubles(double(inner, 1), double(inner, 2))
    if (inner := _inner(said, 4)) is not None:
        return _strings(inner)
    if (inner := _inner(said, 6)) is not None:
        return _both(_decimal(text(inner, 1)), _decimal(text(inner, 2)))
    if (inner := _inner(said, 7)) is not None:
        return _both(signed(inner, 1), signed(inner, 2))
    if (inner := _inner(said, 9)) is not None:
        low, high, _ = _both(_instant(inner, 3, 5, 0), _instant(inner, 4, 6, _NANOSECONDS_A_MILLISECOND - 1))
        return low, high, low is not None and 6 in inner
    if kind == 0 and (trues := _trues(kind, said)) is not None:
        values = number(said, 1) or 0
        return int(trues == values), int(trues > 0), True
    return None, None, False


def _inner(said: Fields, field: int) -> Fields | None:
    found = binary(said, field)
    return None if found is None else message(found)


def _both(low: Any, high: Any) -> tuple[Any, Any, bool]:
    return (None, None, False) if low is None or high is None else (low, high, True)


def _doubles(low: float | None, high: float | None) -> tuple[Any, Any, bool]:
    if low is None or high is None or isnan(low) or isnan(high):
        return None, None, False
    return low + 0.0, high + 0.0, True


def _strings(inner: Fields) -> tuple[Any, Any, bool]:
    """Long ones are shortened; then they are in other fields."""
    low, high = binary(inner, 1), binary(inner, 2)
    if low is not None and high is not None:
        return low, high, True
    low = binary(inner, 4) if low is None else low
    high = binary(inner, 5) if high is None else high
    return (None, None, False) if low is None or high is None else (low, high, False)


def _decimal(said: str | None) -> Decimal | None:
    try:
        return None if said is None else Decimal(said)
    except InvalidOperation as error:
        raise NotAMessage(f"a bound is not a decimal: {said!r}") from error


def _instant(inner: Fields, field: int, nanoseconds_field: int, otherwise: int) -> int | None:
    """Milliseconds, and what is below them, which is kept with one added; older writers left it out.

    A largest value without it is only a bound. Statistics in the writer's time zone are of no use elsewhere.
    """
    milliseconds = signed(inner, field)
    if milliseconds is None:
        return None
    kept = int32(inner, nanoseconds_field)
    return milliseconds * _NANOSECONDS_A_MILLISECOND + (otherwise if kept is None else kept - 1)


def _byte_count(said: Fields) -> int | None:
    if (inner := _inner(said, 4)) is not None:
        return signed(inner, 3)
    inner = _inner(said, 8)
    return None if inner is None else signed(inner, 1)


def _trues(kind: int, said: Fields) -> int | None:
    inner = _inner(said, 5) if kind == 0 else None
    counts = [] if inner is None else numbers(inner, 1)
    return counts[0] if counts else None
