"""Structs as Java prints them: several of Hive's error texts end in one."""

from collections.abc import Mapping, Sequence
from typing import Final

from hms_gateway.structs import Struct

# Java's primitive fields cannot be absent.
_UNSET: Final = {"i8": "0", "i16": "0", "i32": "0", "i64": "0", "double": "0.0", "bool": "false"}


def java_text(value: object) -> str:
    """What `toString` of Thrift's Java classes gives: `Name(field:value, ...)`.

    Optional fields appear when they are set, the others always.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case Struct():
            return f"{value.definition.hive_name}({', '.join(_fields(value))})"
        case Mapping():
            return "{" + ", ".join(f"{java_text(key)}={java_text(item)}" for key, item in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(map(java_text, value)) + "]"
        case _:
            return str(value)


def _fields(struct: Struct) -> list[str]:
    shown = []
    for field in struct.definition.fields:
        value = getattr(struct, field.name)
        if value is None and field.requiredness != "optional":
            kind = field.type if isinstance(field.type, str) else ""
            shown.append(f"{field.name}:{_UNSET.get(kind, 'null')}")
        elif value is not None:
            shown.append(f"{field.name}:{java_text(value)}")
    return shown
