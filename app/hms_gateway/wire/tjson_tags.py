"""The names TJSON gives to types, and the spellings of numbers JSON has no word for (clients appendix A)."""

import re

from hms_gateway.idl import BaseType, EnumType, ListType, MapType, SetType, StructType, Type

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
