"""Columns of files against those of their table: what a reader of the table cannot read, or does not see."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from hms_gateway.metastore.vocabulary.column_types import HiveType, parse_type
from hms_gateway.pipeline.audit.rules.values import Kind, Severity
from hms_gateway.pipeline.footers import Column, Footer, TypesConflict, widened
from hms_gateway.pipeline.footers.widening import rendered

_NAMES_SHOWN: Final = 3
# What ORC files of old Hive versions have for names: their columns go by position.
_POSITION: Final = re.compile(r"_col([0-9]+)")
_TEXTS: Final = frozenset({"string", "char", "varchar", "binary"})
_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "decimal", "float", "double"})
_SHORT: Final = frozenset({"tinyint", "smallint"})
_TIMES: Final = frozenset({"timestamp", "timestamp with local time zone", "timestamp_ntz"})

Problem = tuple[Kind, Severity, str]


def drift(footer: Footer, columns: Sequence[Column], keys: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a file of a table that has these columns; `keys` are its partition keys, in lower case.

    A column that the file does not have is null for its rows: that is how columns are added.
    """
    types = {column.name: column.type for column in columns}
    found = _named(footer.columns_without(keys), columns)
    unfit = [
        f"{column.name} is {column.type} in the file and {types[column.name]} in the table"
        for column in found
        if column.name in types and not fits(types[column.name], column.type)
    ]
    if unfit:
        yield Kind.DRIFT, Severity.ERROR, f"column {_listed(unfit)}"
    unknown = [column.name for column in found if column.name not in types]
    if found and len(unknown) == len(found):
        yield Kind.DRIFT, Severity.ERROR, f"the file has none of the table's columns, but {_listed(unknown)}"
    elif unknown:
        yield Kind.DRIFT, Severity.WARNING, f"the table does not have the file's columns {_listed(unknown)}"


def fits(table: str, file: str) -> bool:
    """Whether a file's values of one type are read as those of a column of another type."""
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
    if {table.name, file.name} <= _TEXTS or {table.name, file.name} <= _TIMES:
        return True
    if table.name in _SHORT and file.name == "int":
        # Some writers of Parquet have no shorter number.
        return True
    return {table.name, file.name} <= _NUMBERS and _holds(table, file)


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


def _named(found: Sequence[Column], columns: Sequence[Column]) -> Sequence[Column]:
    """With the table's names where the file has none."""
    places = [_POSITION.fullmatch(column.name) for column in found]
    if not all(places):
        return found
    names: Mapping[int, str] = {place: column.name for place, column in enumerate(columns)}
    return [
        Column(names.get(int(place[1]), column.name), column.type)
        for place, column in zip(places, found, strict=True)
        if place
    ]


def _listed(texts: Sequence[str]) -> str:
    shown = ", ".join(texts[:_NAMES_SHOWN])
    return shown if len(texts) <= _NAMES_SHOWN else f"{shown} and {len(texts) - _NAMES_SHOWN} more"
