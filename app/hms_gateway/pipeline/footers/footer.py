"""A footer as values: columns, rows and figures of each column; types that columns of several files have together."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Self, TypeAlias

import msgspec

from hms_gateway.metastore.vocabulary.column_types import HiveType, parse_type

# Figures of the values of one column: nulls, the smallest, the largest, bytes.


# int also for dates (days since 1970) and timestamps (nanoseconds since 1970, UTC or local time as written).
Value: TypeAlias = int | float | Decimal | bytes


class FooterFigures(msgspec.Struct, frozen=True):
    """About one column in some rows. None is: not known.

    has_bounds  no value lies outside of `low` and `high`, NaN apart; they are None where there are no other values
    is_exact    `low` and `high` are values of the column themselves, not shortened ones
    byte_count  bytes of all strings or binaries (UTF-8)
    longest     bytes of the longest one; `longest_is_exact` says whether it is only known to have at least so many
    trues       how many booleans are true
    distinct    how many different values there are
    stored      bytes in the file, encoded and not compressed
    """

    rows: int
    nulls: int | None
    low: Value | None = None
    high: Value | None = None
    has_bounds: bool = False
    is_exact: bool = False
    byte_count: int | None = None
    longest: int | None = None
    longest_is_exact: bool = False
    trues: int | None = None
    distinct: int | None = None
    stored: int | None = None

    @classmethod
    def of_nulls(cls, rows: int, *, stored: int | None = None) -> Self:
        """Figures of rows without a value but null."""
        return cls(rows, rows, None, None, True, True, 0, 0, True, 0, 0, stored)

    @property
    def values(self) -> int | None:
        """The number of values that are not null."""
        return None if self.nulls is None else self.rows - self.nulls


def joined(parts: Iterable[FooterFigures]) -> FooterFigures:
    """Figures of all rows out of those of some; bounds are of one kind."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    bounded = [part for part in found if part.low is not None and part.high is not None]
    return FooterFigures(
        rows=sum(part.rows for part in found),
        nulls=_of_all(sum, (part.nulls for part in found)),
        low=min((part.low for part in bounded if part.low is not None), default=None),
        high=max((part.high for part in bounded if part.high is not None), default=None),
        has_bounds=all(part.has_bounds for part in found),
        is_exact=all(part.is_exact for part in found),
        byte_count=_of_all(sum, (part.byte_count for part in found)),
        longest=_of_all(max, (part.longest for part in found)),
        longest_is_exact=all(part.longest_is_exact for part in found),
        trues=_of_all(sum, (part.trues for part in found)),
        distinct=_of_one([part for part in found if part.rows != part.nulls]),
        stored=_of_all(sum, (part.stored for part in found)),
    )


def longest_known(low: Value | None, high: Value | None, byte_count: int | None, values: int | None) -> int | None:
    """A length that some value has at least; a shortened bound is not longer than the value it was made from."""
    known = [len(bound) for bound in (low, high) if isinstance(bound, bytes)]
    if byte_count is not None and values:
        known.append(-(-byte_count // values))
    return max(known, default=None)


def _of_all(function: Callable[[list[int]], int], numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else function([0, *(number for number in found if number is not None)])


def _of_one(with_values: list[FooterFigures]) -> int | None:
    """Different values of several parts may be the same."""
    if not with_values:
        return 0
    first = with_values[0]
    if len(with_values) == 1:
        return first.distinct
    is_one = all(part.distinct == 1 and part.low == part.high == first.low for part in with_values)
    return 1 if is_one and first.low is not None else None


class FooterProblem(Exception):
    """A footer cannot be used; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type["FooterProblem"], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class NotInHive(ValueError):
    """A column has a type that Hive does not have; the text says which."""


DECIMAL_DIGITS_MAX: Final = 38
_has_marks: Final = re.compile(r"[<>(),:`]").search


def check_field(name: str) -> None:
    """Raises NotInHive for the name of a struct's field that Hive's types cannot have."""
    if not name or _has_marks(name):
        raise NotInHive(f"has a field with the name {name!r}, which Hive's types cannot have")


class Column(msgspec.Struct, frozen=True):
    """A column as Hive names it: lower case, `type` in Hive's spelling."""

    name: str
    type: str


class Footer(msgspec.Struct, frozen=True):
    """One file. `figures` are by column; those of nested ones say little.

    `unread` are columns that Spark does not read, with the reason; `columns` lacks those that Hive cannot have either.
    Columns without names in the file (ORC files of old Hive versions) are `_col0`, `_col1` and so on.
    """

    format: str
    rows: int
    columns: tuple[Column, ...]
    figures: Mapping[str, FooterFigures]
    unread: tuple[tuple[str, str], ...] = ()

    def unread_without(self, keys: Collection[str]) -> tuple[tuple[str, str], ...]:
        """The ones of `unread` that are not partition keys, whose values come from names of directories."""
        return tuple((name, reason) for name, reason in self.unread if name.lower() not in keys)

    def columns_without(self, keys: Collection[str]) -> tuple[Column, ...]:
        """The columns without partition keys (`keys` in lower case), which some writers put into the files too."""
        return tuple(column for column in self.columns if column.name not in keys)


# The type of a column that has several types in several files: the narrowest as which Spark reads all of them.
#
# The rules are those of Parquet; Spark converts what ORC has, such as numbers to texts, and a clash stays a clash.


# With the digits that a decimal has before its point at least, to which Spark widens them.
_WHOLE: Final = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_IN_A_DOUBLE: Final = frozenset({"tinyint", "smallint", "int", "float", "double"})
_TEXT: Final = ("char", "varchar", "string")
_READ_AS_BYTES: Final = frozenset({"string", "char", "varchar", "binary"})
NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "decimal", "float", "double"})
_SHORT: Final = frozenset({"tinyint", "smallint"})
_TIMES: Final = frozenset({"timestamp", "timestamp with local time zone", "timestamp_ntz"})


class TypesConflict(ValueError):
    """Two types have none in common."""


def united(schemas: Iterable[tuple[str, Sequence[Column]]]) -> tuple[Column, ...]:
    """The columns of several files, each with its name; new ones are added at the end.

    Raises TypesConflict, which names the column and the files of both types.
    """
    found: dict[str, str] = {}
    # The column that has made the type what it is, with its file.
    by: dict[str, tuple[Column, str]] = {}
    for path, columns in schemas:
        for column in columns:
            before = found.setdefault(column.name, column.type)
            both = before if before == column.type else _of_both(before, column, path, by[column.name])
            if column.name not in by or both != before:
                found[column.name], by[column.name] = both, (column, path)
    return tuple(Column(name, type) for name, type in found.items())


def _of_both(before: str, column: Column, path: str, by: tuple[Column, str]) -> str:
    try:
        return widened(before, column.type)
    except TypesConflict as error:
        raise TypesConflict(
            f"column {column.name} is {by[0].type} in {by[1]} and {column.type} in {path};"
            " Spark reads no type from both, write one of the files again"
        ) from error


def widened(one: str, other: str) -> str:
    """The narrowest type as which Spark reads both. Raises TypesConflict."""
    if one == other:
        return one
    first, second = parse_type(one), parse_type(other)
    if first is None or second is None:
        raise TypesConflict(f"{one if first is None else other} is not a type of Hive")
    try:
        found = _widened(first, second)
    except ValueError as error:
        raise TypesConflict(f"{one} or {other} has a length that is not a number") from error
    if found is None:
        raise TypesConflict(f"Spark reads no type from both {one} and {other}")
    return rendered(found)


def rendered(of: HiveType) -> str:
    """A type as text."""
    if of.field_names and of.name == "struct":
        fields = zip(of.field_names, of.elements, strict=True)
        return f"struct<{','.join(f'{name}:{rendered(element)}' for name, element in fields)}>"
    if of.elements:
        return f"{of.name}<{','.join(map(rendered, of.elements))}>"
    return f"{of.name}({','.join(of.parameters)})" if of.parameters else of.name


def _widened(one: HiveType, other: HiveType) -> HiveType | None:
    if one == other or other.name == "void":
        return one
    if one.name == "void":
        return other
    if one.elements or other.elements:
        return _nested(one, other)
    names = {one.name, other.name}
    if names <= set(_WHOLE):
        return max(one, other, key=lambda each: list(_WHOLE).index(each.name))
    if names <= {*_WHOLE, "decimal"}:
        return _decimal(one, other)
    if names <= _IN_A_DOUBLE:
        return HiveType("double")
    return _text(one, other)


def _nested(one: HiveType, other: HiveType) -> HiveType | None:
    if one.name != other.name:
        return None
    if one.name == "struct":
        return _struct(one, other)
    if len(one.elements) != len(other.elements):
        return None
    elements = [_widened(first, second) for first, second in zip(one.elements, other.elements, strict=True)]
    found = tuple(element for element in elements if element is not None)
    return HiveType(one.name, (), one.field_names, found) if len(found) == len(elements) else None


def _struct(one: HiveType, other: HiveType) -> HiveType | None:
    """Fields by name, new ones at the end, as columns of a table."""
    fields = dict(zip(one.field_names, one.elements, strict=True))
    for name, element in zip(other.field_names, other.elements, strict=True):
        before = fields.get(name)
        found = element if before is None else _widened(before, element)
        if found is None:
            return None
        fields[name] = found
    return HiveType("struct", (), tuple(fields), tuple(fields.values()))


def _decimal(one: HiveType, other: HiveType) -> HiveType | None:
    """Enough digits before and behind the point."""
    parts = [
        (_WHOLE[each.name], 0) if each.name in _WHOLE else (int(each.parameters[0]), int(each.parameters[1]))
        for each in (one, other)
    ]
    scale = max(scale for _, scale in parts)
    digits = scale + max(precision - scale for precision, scale in parts)
    return HiveType("decimal", (str(digits), str(scale))) if digits <= DECIMAL_DIGITS_MAX else None


def _text(one: HiveType, other: HiveType) -> HiveType | None:
    names = {one.name, other.name}
    if not names <= set(_TEXT):
        return None
    if "string" in names:
        return HiveType("string")
    length = max(int(one.parameters[0]), int(other.parameters[0]))
    return HiveType("char" if names == {"char"} else "varchar", (str(length),))


def fits(table: str, file: str) -> bool:
    """True if a file's values of one type are read as those of a column of another type."""
    one, other = parse_type(table.lower()), parse_type(file.lower())
    if one is None or other is None:
        # What the file or the table has is beyond what is known here; nothing is claimed.
        return True
    return _fits(one, other)


def _fits(table: HiveType, file: HiveType) -> bool:
    if table == file or "void" in (table.name, file.name):
        return True
    if table.elements or file.elements:
        return _fits_nested(table, file)
    if {table.name, file.name} <= _READ_AS_BYTES or {table.name, file.name} <= _TIMES:
        return True
    if table.name in _SHORT and file.name == "int":
        # Some writers of Parquet have no shorter number.
        return True
    return {table.name, file.name} <= NUMBERS and _holds(table, file)


def _holds(table: HiveType, file: HiveType) -> bool:
    try:
        return widened(rendered(table), rendered(file)) == rendered(table)
    except TypesConflict:
        return False


def _fits_nested(table: HiveType, file: HiveType) -> bool:
    if table.name != file.name:
        return False
    if table.name == "struct":
        fields = dict(zip(file.field_names, file.elements, strict=True))
        pairs = zip(table.field_names, table.elements, strict=True)
        return all(name not in fields or _fits(element, fields[name]) for name, element in pairs)
    return len(table.elements) == len(file.elements) and all(
        _fits(one, other) for one, other in zip(table.elements, file.elements, strict=True)
    )
