"""Reads the TJSON that is not JSON, and says what is wrong with the rest (clients appendix A.2).

The slow and exact reader behind `tjson_codec`: everything the JSON parser or the shapes of the fast path refuse comes
here, and whatever this module decides is the answer. It accepts white space, raw control characters, bare `NaN`,
leading zeros, quoted numbers, integral floats and containers as map keys.
"""

import binascii
import json.decoder
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from hms_gateway.rpc.idl import (
    BaseType,
    EnumType,
    Field,
    ListType,
    MapType,
    Requiredness,
    SetType,
    StructDef,
    StructType,
    Type,
)
from hms_gateway.rpc.structs import STRUCTS
from hms_gateway.rpc.wire.message import LimitExceeded, ProtocolError
from hms_gateway.runtime.limits import Limits

# The names TJSON gives to types, and the spellings of numbers JSON has no word for (clients appendix A).
_BASE_TAGS = {
    BaseType.BOOL: "tf",
    BaseType.I8: "i8",
    BaseType.I16: "i16",
    BaseType.I32: "i32",
    BaseType.I64: "i64",
    BaseType.DOUBLE: "dbl",
    BaseType.STRING: "str",
    BaseType.BINARY: "str",
}
# `uid` is in no IDL of ours, but a newer peer may send a field of that type, which is then skipped.
TAGS = frozenset({*_BASE_TAGS.values(), "rec", "lst", "set", "map", "uid"})

INTEGER_BITS = {BaseType.I8: 8, BaseType.I16: 16, BaseType.I32: 32, BaseType.I64: 64}

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
}


def tag_of(type: Type) -> str:
    """The tag before values of `type`."""
    match type:
        case StructType():
            return "rec"
        case ListType():
            return "lst"
        case SetType():
            return "set"
        case MapType():
            return "map"
        case EnumType():
            return "i32"
        case BaseType():
            return _BASE_TAGS[type]


def double_from_text(text: str) -> float | None:
    """The number in any spelling a Thrift peer uses, None for anything else."""
    if _NUMBER.fullmatch(text):
        return float(text)
    return _NOT_FINITE.get(text.lower())


def text_of_special_double(number: float) -> str:
    """`NaN`, `Infinity` or `-Infinity`: quoted, the one form every decoder takes."""
    if number != number:
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


_scan_string: Callable[..., tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\r\n]*+")
_WORD = re.compile(r"[-+.0-9A-Za-z_]++")
_INTEGER = re.compile(r"-?[0-9]+")
_INTEGRAL = re.compile(r"(-?[0-9]+)\.0*")
_FIELD_ID = re.compile(r"-?[0-9]{1,5}")
# Longer numbers cannot be in range, and Python refuses to convert really long ones; leading zeros are not counted.
_DIGITS_MAX = 20


def scan_struct(struct_class: Any, payload: bytes, limits: Limits) -> Any:
    """`payload` as an instance of `struct_class`; raises ProtocolError or LimitExceeded."""
    return _scan(payload, limits, struct_class.definition.name, lambda scanner: scanner.struct(struct_class))


def scan_value(type: Type, text: bytes, limits: Limits) -> Any:
    """`text` as a bare value of an IDL type; raises ProtocolError or LimitExceeded."""
    return _scan(text, limits, "value", lambda scanner: scanner.value(type))


def _scan(data: bytes, limits: Limits, where: str, read: Callable[["_Scanner"], Any]) -> Any:
    # Bytes that are not UTF-8 become lone surrogates, so that the string they are in can be named.
    scanner = _Scanner(data.decode("utf-8", "surrogateescape"), limits, where)
    try:
        value = read(scanner)
        scanner.end()
    except RecursionError:
        raise LimitExceeded("nesting_depth_max", limits.nesting_depth_max, scanner.place()) from None
    return value


class _Scanner:
    """A position in a text, and one reading method for each kind of value. Every method stops behind its value."""

    def __init__(self, text: str, limits: Limits, where: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        self._limits = limits
        self._where = [where]

    def place(self) -> str:
        return ".".join(self._where)

    def end(self) -> None:
        if self._peek():
            self._fail(f"unexpected text behind the end, {self._found()}")

    def value(self, type: Type, *, hashable: bool = False) -> Any:
        if type is BaseType.STRING:  # by far the most frequent
            return self._string()
        match type:
            case StructType(name):
                return self._unhashable(name) if hashable else self.struct(STRUCTS[name])
            case ListType(element):
                elements = self._elements(element, hashable=hashable)
                return tuple(elements) if hashable else elements
            case SetType(element):
                members = self._elements(element, hashable=True)
                return frozenset(members) if hashable else set(members)
            case MapType(key, value):
                return self._unhashable("map") if hashable else self._map(key, value)
            case EnumType():
                return self._integer(32)
            case BaseType.BOOL:
                return self._boolean()
            case BaseType.DOUBLE:
                return self._double()
            case BaseType.BINARY:
                return self._binary()
            case _:
                return self._integer(INTEGER_BITS[type])

    def struct(self, struct_class: Any) -> Any:
        definition: StructDef = struct_class.definition
        fields = _fields_by_id(struct_class)
        values: dict[str, Any] = {}
        self._open("{")
        if not self._accept("}"):
            while True:
                known = self._known_field(fields)
                self._expect(":")
                if known is None:
                    self._skip()
                else:
                    field, tag = known
                    self._where.append(field.name)
                    values[field.name] = self._boxed(field.type, tag)
                    self._where.pop()
                if not self._accept(","):
                    break
            self._expect("}")
        self._depth -= 1
        for field in definition.fields:
            if field.requiredness is Requiredness.REQUIRED and values.get(field.name) is None:
                raise ProtocolError(f"Required field '{field.name}' is unset! Struct:{definition.hive_name}")
        return struct_class(**values)

    def _known_field(self, fields: "_Fields") -> tuple[Field, str] | None:
        text = self._string()
        known = fields.get(text)
        if known is None:
            if not _FIELD_ID.fullmatch(text):
                self._fail(f"{text[:20]!r} is not a field id")
            known = fields.get(str(int(text)))
        return known

    def _boxed(self, type: Type, type_tag: str) -> Any:
        """The value in `{"<tag>":<value>}`; None when it is null or carries another type than the field's."""
        if self._accept_null():
            return None
        value = None
        self._open("{")
        if not self._accept("}"):
            while True:
                tag = self._tag()
                self._expect(":")
                if self._accept_null():
                    value = None
                elif tag == type_tag:
                    value = self.value(type)
                else:
                    self._skip()
                if not self._accept(","):
                    break
            self._expect("}")
        self._depth -= 1
        return value

    def _elements(self, element: Type, *, hashable: bool) -> list[Any]:
        self._open("[")
        tag = self._tag()
        count = self._count()
        self._check_tag(tag, element, count)
        values: list[Any] = []
        while self._accept(","):
            if len(values) == count:
                self._fail(f"more elements than the announced {count}")
            values.append(self.value(element, hashable=hashable))
        self._expect("]")
        self._depth -= 1
        if len(values) != count:
            self._fail(f"{len(values)} elements where {count} were announced")
        return values

    def _map(self, key: Type, value: Type) -> dict[Any, Any]:
        self._open("[")
        key_tag = self._tag()
        self._expect(",")
        value_tag = self._tag()
        count = self._count()
        self._check_tag(key_tag, key, count)
        self._check_tag(value_tag, value, count)
        self._expect(",")
        self._open("{")
        entries: dict[Any, Any] = {}
        seen = 0
        if not self._accept("}"):
            while True:
                name = self.value(key, hashable=True)
                self._expect(":")
                entries[name] = self.value(value)
                seen += 1
                if seen > count:
                    self._fail(f"more entries than the announced {count}")
                if not self._accept(","):
                    break
            self._expect("}")
        self._expect("]")
        self._depth -= 2
        if seen != count:
            self._fail(f"{seen} entries where {count} were announced")
        return entries

    def _check_tag(self, tag: str, type: Type, count: int) -> None:
        """Empty containers may be of anything: writers that do not know the type write what they like."""
        if count and tag != tag_of(type):
            self._fail(f'elements of type "{tag}" where "{tag_of(type)}" was expected')

    def _count(self) -> int:
        self._expect(",")
        count = self._integer(32)
        if count < 0:
            self._fail(f"negative element count {count}")
        if count > self._limits.container_elements_max:
            raise LimitExceeded("container_elements_max", self._limits.container_elements_max, self.place())
        return count

    def _tag(self) -> str:
        tag = self._string()
        if tag not in TAGS:
            self._fail(f"unknown type {tag[:20]!r}")
        return tag

    def _boolean(self) -> bool:
        text = self._scalar()
        if text in ("true", "false"):
            return text == "true"
        return self._to_integer(text, 8) != 0

    def _integer(self, bits: int) -> int:
        return self._to_integer(self._scalar(), bits)

    def _to_integer(self, text: str, bits: int) -> int:
        match = _INTEGRAL.fullmatch(text) or _INTEGER.fullmatch(text)
        if match:
            digits = match[match.lastindex or 0]
            sign = -1 if digits.startswith("-") else 1
            digits = digits.lstrip("-").lstrip("0")
            number = sign * int(digits or "0") if len(digits) < _DIGITS_MAX else None
        elif _NUMBER.fullmatch(text):
            rounded = float(text)
            number = int(rounded) if abs(rounded) < 2.0**64 else None
            if number is not None and number != rounded:
                self._fail(f"{text[:40]} is not an integer")
        else:
            self._fail(f"{text[:40]!r} is not a number")
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            self._fail(f"{text[:40]} is out of the range of an i{bits}")
        return number

    def _double(self) -> float:
        text = self._scalar()
        number = double_from_text(text)
        if number is None:
            self._fail(f"{text[:40]!r} is not a number")
        return number

    def _binary(self) -> bytes:
        text = self._string()
        try:
            return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
        except ValueError:
            self._fail("not valid base64")

    def _scalar(self) -> str:
        """A number or word, bare or quoted."""
        if self._peek() == '"':
            return self._string()
        match = _WORD.match(self._text, self._position)
        if match is None:
            self._fail(f"a value was expected, {self._found()}")
        self._position = match.end()
        return match[0]

    def _string(self) -> str:
        start = self._quoted()
        try:
            value, self._position = _scan_string(self._text, start, False)
        except json.JSONDecodeError as error:
            self._fail(f"bad string: {error.msg}")
        size = len(value)
        if not value.isascii():
            try:
                size = len(value.encode())
            except UnicodeEncodeError:
                self._fail_surrogate(self._text[start : self._position])
        if size > self._limits.string_bytes_max:
            raise LimitExceeded("string_bytes_max", self._limits.string_bytes_max, self.place())
        return value

    def _fail_surrogate(self, written: str) -> NoReturn:
        try:
            written.encode()
        except UnicodeEncodeError:
            self._fail("not valid UTF-8")
        self._fail("half of a surrogate pair in a string")

    def _quoted(self) -> int:
        if self._peek() != '"':
            self._fail(f"a string was expected, {self._found()}")
        return self._position + 1

    def _skip(self) -> None:
        """Over any value, of whatever type."""
        character = self._peek()
        if character == '"':
            self._string()
        elif character in ("{", "["):
            self._skip_container(character, "}" if character == "{" else "]")
        else:
            self._scalar()

    def _skip_container(self, opening: str, closing: str) -> None:
        self._open(opening)
        if not self._accept(closing):
            while True:
                self._skip()
                if opening == "{":
                    self._expect(":")
                    self._skip()
                if not self._accept(","):
                    break
            self._expect(closing)
        self._depth -= 1

    def _unhashable(self, what: str) -> NoReturn:
        # Python's structs and dicts can change and so cannot be keys; no type of the IDL needs them to.
        self._fail(f"a {what} cannot be a map key or a set member")

    def _accept_null(self) -> bool:
        if self._peek() == "n" and self._text.startswith("null", self._position):
            self._position += 4
            return True
        return False

    def _open(self, character: str) -> None:
        self._expect(character)
        self._depth += 1
        if self._depth > self._limits.nesting_depth_max:
            raise LimitExceeded("nesting_depth_max", self._limits.nesting_depth_max, self.place())

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            self._fail(f"{character!r} was expected, {self._found()}")

    def _accept(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._position += 1
        return True

    def _peek(self) -> str:
        """The next character behind white space, empty at the end."""
        character = self._text[self._position : self._position + 1]
        if character > " ":
            return character
        match = _SPACE.match(self._text, self._position)
        assert match is not None
        self._position = match.end()
        return self._text[self._position : self._position + 1]

    def _found(self) -> str:
        character = self._peek()
        return f"found {character!a} at character {self._position}" if character else "found the end"

    def _fail(self, reason: str) -> NoReturn:
        raise ProtocolError(f"{self.place()}: {reason}")


# The fields of a struct and their tags, by the text of their ids.
_Fields = dict[str, tuple[Field, str]]


@cache
def _fields_by_id(struct_class: Any) -> _Fields:
    return {str(field.id): (field, tag_of(field.type)) for field in struct_class.definition.fields}
