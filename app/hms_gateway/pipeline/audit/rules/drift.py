"""Columns of files against those of their table: what a reader of the table cannot read, or does not see."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from hms_gateway.pipeline.audit.rules.values import Kind, Severity
from hms_gateway.pipeline.footers import Column, Footer, fits
from hms_gateway.pipeline.footers.widening import NUMBERS

_NAMES_SHOWN: Final = 3
# What ORC files of old Hive versions have for names: their columns go by position.
_POSITION: Final = re.compile(r"_col([0-9]+)")

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
        if column.name in types and not _reads(footer.format, types[column.name], column.type)
    ]
    unfit += [f"{name} {reason}" for name, reason in footer.unread_without(keys) if name.lower() in types]
    if unfit:
        yield Kind.DRIFT, Severity.ERROR, f"column {_listed(unfit)}"
    unknown = [column.name for column in found if column.name not in types]
    if found and len(unknown) == len(found):
        yield Kind.DRIFT, Severity.ERROR, f"the file has none of the table's columns, but {_listed(unknown)}"
    elif unknown:
        yield Kind.DRIFT, Severity.WARNING, f"the table does not have the file's columns {_listed(unknown)}"


def _reads(format: str, table: str, file: str) -> bool:
    """True if readers give values of the table's type; those of ORC make a double of every number."""
    return fits(table, file) or (format == "orc" and table == "double" and file.partition("(")[0] in NUMBERS)


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
