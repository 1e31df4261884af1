"""Column types as text: the shallow check on create, and which changes of a column's type are allowed."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

_FIRST_WORD = re.compile(r"[A-Za-z0-9_]*")
_ANY_TYPE: Final = "<derived from deserializer>"
_TYPE_NESTING_MAX: Final = 64

_STRINGS: Final = frozenset({"string", "char", "varchar"})
_WIDENING: Final = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
_COMPLEX: Final = frozenset({"array", "map", "struct", "uniontype"})
_KNOWN: Final = (
    _STRINGS
    | _COMPLEX
    | frozenset(_WIDENING)
    | {"void", "boolean", "binary", "date", "datetime", "timestamp", "interval_year_month", "interval_day_time"}
)


class InvalidColumnType(ValueError):
    """A column's type is not one; the text is the one clients see."""


class MissingColumnType(ValueError):
    """A column's type is absent or empty, which Hive answers with a MetaException."""


def is_valid_type(text: str) -> bool:
    """Whether a type begins with a known lower-case name; what follows is not looked at (semantics §1.2)."""
    found = _FIRST_WORD.match(text)
    return text == _ANY_TYPE or (found is not None and found[0] in _KNOWN)


def check_types(types: Iterable[str | None], *, of_partition_keys: bool = False) -> None:
    """Raise InvalidColumnType or MissingColumnType for the first type that is not one (semantics §1.1)."""
    what = "partition column" if of_partition_keys else "column"
    for text in types:
        if not text:
            raise MissingColumnType(f"A {what} has no type")
        if not is_valid_type(text):
            raise InvalidColumnType(f"Invalid {what} type: {text}")


def check_type_changes(old_types: Sequence[str], new_columns: Sequence[tuple[str, str]]) -> None:
    """Raise InvalidColumnType when columns, compared by position, change type incompatibly (semantics §2.7 item 5).

    `new_columns` are (name, type); columns beyond the shorter list are free.
    """
    refused = [
        name for old, (name, new) in zip(old_types, new_columns, strict=False) if not is_compatible_change(old, new)
    ]
    if refused:
        raise InvalidColumnType(
            "The following columns have types incompatible with the existing columns in their respective positions :\n"
            + ",".join(refused)
        )


def is_compatible_change(old: str, new: str) -> bool:
    """Whether a column of type `old` may become one of type `new` (semantics §2.7 item 5)."""
    if old == new:
        return True
    old_type, new_type = parse_type(old), parse_type(new)
    if old_type is None or new_type is None:
        return False
    if old_type.name in _COMPLEX or new_type.name in _COMPLEX:
        return old_type == new_type
    return _is_compatible_primitive(old_type.name, new_type.name)


def _is_compatible_primitive(old: str, new: str) -> bool:
    if old == new or old == "void":
        return True
    if new in _STRINGS:
        return old in _STRINGS or old in ("date", "timestamp") or old in _WIDENING
    if old in _STRINGS:
        return new == "double"
    return old in _WIDENING and new in _WIDENING and _WIDENING.index(old) < _WIDENING.index(new)


class HiveType(msgspec.Struct, frozen=True):
    """A type taken apart, with what distinguishes it: length or precision and scale, elements, field names."""

    name: str
    parameters: tuple[str, ...] = ()
    field_names: tuple[str, ...] = ()
    elements: "tuple[HiveType, ...]" = ()


_TOKEN = re.compile(r"\s*(?:(?P<word>[^\s<>(),:]+(?:\ +with\ local\ time\ zone)?)|(?P<mark>[<>(),:]))\s*")
_DEFAULT_PARAMETERS: Final = {"decimal": ("10", "0")}


def parse_type(text: str) -> HiveType | None:
    """The parsed type, or None when the text is none."""
    parser = _TypeParser(text.lower())
    try:
        return parser.parse()
    except _NotAType:
        return None


class _NotAType(Exception):
    """The text is not a type."""


class _TypeParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parse(self) -> HiveType:
        parsed = self._type(_TYPE_NESTING_MAX)
        if self._at != len(self._text):
            raise _NotAType
        return parsed

    def _type(self, depth: int) -> HiveType:
        if depth == 0:
            raise _NotAType
        name = self._next("word")
        if name.partition(" ")[0] not in _KNOWN:
            raise _NotAType
        if name not in _COMPLEX:
            return HiveType(name, parameters=self._parameters(name))
        self._expect("<")
        fields = [self._field(name, depth)]
        while self._takes(","):
            fields.append(self._field(name, depth))
        self._expect(">")
        return HiveType(name, (), tuple(name for name, _ in fields), tuple(element for _, element in fields))

    def _field(self, name: str, depth: int) -> tuple[str, HiveType]:
        field_name = ""
        if name == "struct":
            field_name = self._next("word")
            self._expect(":")
        return field_name, self._type(depth - 1)

    def _parameters(self, name: str) -> tuple[str, ...]:
        defaults = _DEFAULT_PARAMETERS.get(name, ())
        if not self._takes("("):
            return defaults
        parameters = [self._next("word")]
        while self._takes(","):
            parameters.append(self._next("word"))
        self._expect(")")
        return (*parameters, *defaults[len(parameters) :])

    def _next(self, kind: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if not found or found.lastgroup != kind:
            raise _NotAType
        self._at = found.end()
        return found[kind]

    def _takes(self, mark: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if not found or found["mark"] != mark:
            return False
        self._at = found.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise _NotAType
