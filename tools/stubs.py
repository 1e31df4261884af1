"""Writes the stub of `structs`, so that type checkers and editors know the classes made from the IDL."""

from collections.abc import Iterator
from pathlib import Path

import hms_gateway.rpc.structs
from hms_gateway.rpc.idl import (
    BaseType,
    EnumType,
    Idl,
    ListType,
    MapType,
    SetType,
    StructDef,
    StructKind,
    StructType,
    Type,
)

_HEADER = """\
# Written by `python -m tools stubs` from schema/hive_metastore.thrift; do not edit.
from enum import IntEnum

from hms_gateway.rpc.idl import Idl
from hms_gateway.rpc.structs.base import Encoded as Encoded
from hms_gateway.rpc.structs.base import EncodedList as EncodedList
from hms_gateway.rpc.structs.base import Method as Method
from hms_gateway.rpc.structs.base import Struct as Struct
from hms_gateway.rpc.structs.base import StructClass
from hms_gateway.rpc.structs.base import ThriftException as ThriftException

IDL: Idl
STRUCTS: dict[str, StructClass]
ENUMS: dict[str, type[IntEnum]]
METHODS: dict[str, Method]
"""
_BASE_TYPES = {
    BaseType.BOOL: "bool",
    BaseType.DOUBLE: "float",
    BaseType.STRING: "str",
    BaseType.BINARY: "bytes",
}


def stub_path() -> Path:
    """Where the stub lies: beside the package's `__init__.py`."""
    return Path(hms_gateway.rpc.structs.__file__).with_name("__init__.pyi")


def stub_text(idl: Idl) -> str:
    """The whole stub for `idl`."""
    return "\n".join(_lines(idl)) + "\n"


def _lines(idl: Idl) -> Iterator[str]:
    yield _HEADER.rstrip("\n")
    for name, enum in idl.enums.items():
        yield f"\nclass {name}(IntEnum):"
        yield from (f"    {member} = {value}" for member, value in enum.members.items())
    for struct in idl.structs.values():
        yield from _struct(struct)


def _struct(struct: StructDef) -> Iterator[str]:
    base = "ThriftException" if struct.kind is StructKind.EXCEPTION else "Struct"
    if not struct.fields:
        yield f"\nclass {struct.name}({base}): ..."
        return
    yield f"\nclass {struct.name}({base}):"
    own = [field for field in struct.fields if not (base == "ThriftException" and field.name == "message")]
    yield from (f"    {field.name}: {_annotation(field.type)} | None" for field in own)
    yield "    def __init__("
    yield "        self,"
    yield from (f"        {field.name}: {_argument(field.type)} | None = None," for field in struct.fields)
    yield "    ) -> None: ..."


def _argument(kind: Type) -> str:
    """A struct, or a list of them, may be given as something that is encoded already."""
    match kind:
        case StructType():
            return f"{_annotation(kind)} | Encoded"
        case ListType(StructType()):
            return f"{_annotation(kind)} | EncodedList"
        case _:
            return _annotation(kind)


def _annotation(kind: Type) -> str:
    match kind:
        case EnumType():
            return "int"
        case StructType(name):
            return name
        case ListType(element):
            return f"list[{_annotation(element)}]"
        case SetType(element):
            return f"set[{_annotation(element)}]"
        case MapType(key, value):
            hashable = f"tuple[{_annotation(key.element)}, ...]" if isinstance(key, ListType) else _annotation(key)
            return f"dict[{hashable}, {_annotation(value)}]"
        case BaseType():
            return _BASE_TYPES.get(kind, "int")
