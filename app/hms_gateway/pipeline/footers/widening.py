"""The type of a column that has several types in several files: the narrowest that holds all, as Hive widens types."""

from collections.abc import Iterable, Sequence
from typing import Final

from hms_gateway.metastore.vocabulary.column_types import HiveType, parse_type
from hms_gateway.pipeline.footers.footer import Column

_WHOLE: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_TEXT: Final = ("char", "varchar", "string")
_DIGITS_MAX: Final = 38


class TypesConflict(ValueError):
    """Two types have none in common."""


def united(schemas: Iterable[tuple[str, Sequence[Column]]]) -> tuple[Column, ...]:
    """The columns of several files, each with its name; new ones are added at the end.

    Raises TypesConflict, which names the column and the files of both types.
    """
    types: dict[str, tuple[str, str]] = {}
    for path, columns in schemas:
        for column in columns:
            before = types.get(column.name)
            if before is None:
                types[column.name] = column.type, path
            elif before[0] != column.type:
                types[column.name] = _of_both(column, path, before), path
    return tuple(Column(name, found) for name, (found, _) in types.items())


def _of_both(column: Column, path: str, before: tuple[str, str]) -> str:
    try:
        return widened(before[0], column.type)
    except TypesConflict as error:
        raise TypesConflict(
            f"column {column.name} is {before[0]} in {before[1]} and {column.type} in {path};"
            " no type of Hive holds both, write one of the files again"
        ) from error


def widened(one: str, other: str) -> str:
    """The narrowest type that holds the values of both. Raises TypesConflict."""
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
        raise TypesConflict(f"no type of Hive holds both {one} and {other}")
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
        return max(one, other, key=lambda each: _WHOLE[each.name])
    if names <= {*_WHOLE, "decimal"}:
        return _decimal(one, other)
    if names <= {*_WHOLE, "decimal", "float", "double"}:
        return HiveType("double")
    if names == {"date", "timestamp"}:
        return HiveType("timestamp")
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


def _decimal(one: HiveType, other: HiveType) -> HiveType:
    """Enough digits before and behind the point; what is beyond 38 goes to double, as in Hive's arithmetic."""
    parts = [
        (_WHOLE[each.name], 0) if each.name in _WHOLE else (int(each.parameters[0]), int(each.parameters[1]))
        for each in (one, other)
    ]
    scale = max(scale for _, scale in parts)
    digits = scale + max(precision - scale for precision, scale in parts)
    return HiveType("decimal", (str(digits), str(scale))) if digits <= _DIGITS_MAX else HiveType("double")


def _text(one: HiveType, other: HiveType) -> HiveType | None:
    """Everything that can be shown is a string in the end; a boolean and binaries are not turned into one."""
    names = {one.name, other.name}
    if not names & set(_TEXT) or names & {"boolean", "binary"}:
        return None
    if names <= {"char", "varchar"}:
        length = max(int(one.parameters[0]), int(other.parameters[0]))
        return HiveType("char" if names == {"char"} else "varchar", (str(length),))
    return HiveType("string")
