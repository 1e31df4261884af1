"""Partition directories: `ds=2026-01-01/hr=7` to keys and values, and what the values say about the keys' types."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, make_name, unescape
from hms_gateway.metastore.vocabulary.typed_values import typed_value, value_class

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1
_RANGES: Final = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": _INT_MAX, "bigint": _BIGINT_MAX}


def split_component(name: str) -> tuple[str, str] | None:
    """Key and value of a directory's name, None where it is not `key=value`. As Hive and Spark do: at the first `=`."""
    key, equals, value = name.partition("=")
    return (unescape(key).lower(), unescape(value)) if equals and key else None


class Spelled(msgspec.Struct, frozen=True):
    """A partition as its directory says it.

    name  the partition's name in the metastore
    same  the name that all spellings of these values share: `d=1` for `d=01` where d is an int
    """

    values: list[str]
    name: str
    same: str


class NotAPartition(ValueError):
    """A directory is none of the table's partitions; the text says why."""


def spelled(keys: Sequence[tuple[str, str]], components: Sequence[str]) -> Spelled:
    """The partition of a directory, by the names and types of the table's keys. Raises NotAPartition."""
    if len(components) != len(keys):
        raise NotAPartition(f"has {len(components)} of the {len(keys)} keys {', '.join(name for name, _ in keys)}")
    values, same = [], []
    for (key, kind), component in zip(keys, components, strict=True):
        found = split_component(component)
        if found is None or found[0] != key:
            raise NotAPartition(f"is not a value of the key {key}: {component}")
        if not found[1]:
            raise NotAPartition(f"has an empty value of the key {key}")
        values.append(found[1])
        same.append(_canonical(key, kind, found[1]))
    names = [name for name, _ in keys]
    return Spelled(values, make_name(names, values), make_name(names, same))


def _canonical(key: str, kind: str, value: str) -> str:
    """Raises NotAPartition when the value is not of the key's type."""
    if kind == "string" or value == DEFAULT_PARTITION_NAME:
        return value
    whole = kind if kind in _RANGES else None
    if whole is not None and _WHOLE.fullmatch(value):
        if abs(int(value)) <= _RANGES[whole] or int(value) == -_RANGES[whole] - 1:
            return value
        raise NotAPartition(f"has the value {value} for the key {key}, which is beyond {kind}")
    if value_class(kind).value in ("text", "opaque"):
        return value
    typed = typed_value(kind, value)
    if typed is None:
        raise NotAPartition(f"has the value {value!r} for the key {key}, which is not a {kind}")
    if whole is not None and not -_RANGES[whole] - 1 <= int(typed) <= _RANGES[whole]:
        raise NotAPartition(f"has the value {value} for the key {key}, which is beyond {kind}")
    return str(typed)


class KeyShape(msgspec.Struct):
    """What the directories of a new table say together; shapes of parts of it are added up.

    kinds    for each key, the narrowest type of its values: 0 nothing but nulls, 1 int, 2 bigint, 3 date, 4 string
    """

    keys: tuple[str, ...]
    kinds: list[int]
    directories: int = 0

    def add(self, values: Iterable[str]) -> None:
        self.directories += 1
        for at, value in enumerate(values):
            if self.kinds[at] != _STRING:
                self.kinds[at] = _both(self.kinds[at], _kind(value))

    def merge(self, kinds: Sequence[int], directories: int) -> None:
        self.directories += directories
        self.kinds = [_both(one, other) for one, other in zip(self.kinds, kinds, strict=True)]

    def types(self) -> list[str]:
        return [_TYPES[kind] for kind in self.kinds]


_NOTHING, _INT, _BIGINT, _DAY, _STRING = range(5)
_TYPES: Final[Mapping[int, str]] = {
    _NOTHING: "string",
    _INT: "int",
    _BIGINT: "bigint",
    _DAY: "date",
    _STRING: "string",
}


def _kind(value: str) -> int:
    """A number with leading zeros is text: as `int` it would lose them."""
    if value == DEFAULT_PARTITION_NAME:
        return _NOTHING
    if _WHOLE.fullmatch(value):
        number = abs(int(value))
        return _INT if number <= _INT_MAX else _BIGINT if number <= _BIGINT_MAX else _STRING
    is_day = _DATE.fullmatch(value) and typed_value("date", value) == value
    return _DAY if is_day else _STRING


def _both(one: int, other: int) -> int:
    if one == other or other == _NOTHING:
        return one
    if one == _NOTHING:
        return other
    return _BIGINT if {one, other} == {_INT, _BIGINT} else _STRING
