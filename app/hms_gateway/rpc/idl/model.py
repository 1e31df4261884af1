"""The frozen model of a Thrift IDL: declarations with every type name resolved, and their text for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import msgspec


class BaseType(StrEnum):
    """A Thrift base type; the value is the IDL's own word (`byte` reads as `i8`)."""

    BOOL = "bool"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"


class EnumType(msgspec.Struct, frozen=True):
    """An enum by name; on the wire it is an i32."""

    name: str


class StructType(msgspec.Struct, frozen=True):
    """A struct, union or exception by name."""

    name: str


class ListType(msgspec.Struct, frozen=True):
    element: "Type"


class SetType(msgspec.Struct, frozen=True):
    element: "Type"


class MapType(msgspec.Struct, frozen=True):
    key: "Type"
    value: "Type"


Type: TypeAlias = BaseType | EnumType | StructType | ListType | SetType | MapType


class Requiredness(StrEnum):
    """`DEFAULT` is a field with neither word: written when set, not missed when absent."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DEFAULT = "default"


class StructKind(StrEnum):
    STRUCT = "struct"
    UNION = "union"
    EXCEPTION = "exception"


class Field(msgspec.Struct, frozen=True):
    """One field of a struct, argument of a method or entry of a throws clause.

    `default` is the declared constant as a Python value, None where there is none.
    """

    id: int
    name: str
    type: Type
    requiredness: Requiredness = Requiredness.DEFAULT
    default: object = None


class StructDef(msgspec.Struct, frozen=True):
    name: str
    kind: StructKind
    fields: tuple[Field, ...]

    @property
    def hive_name(self) -> str:
        """The name that clients know, `X` of `X_v4`."""
        return self.name.removesuffix("_v4")


class EnumDef(msgspec.Struct, frozen=True):
    name: str
    members: Mapping[str, int]


class MethodDef(msgspec.Struct, frozen=True):
    """A service method; `returns` is None for void."""

    name: str
    returns: Type | None
    arguments: tuple[Field, ...]
    throws: tuple[Field, ...]
    oneway: bool = False


class ServiceDef(msgspec.Struct, frozen=True):
    name: str
    extends: str | None
    methods: tuple[MethodDef, ...]


@dataclass(frozen=True)
class Idl:
    """Everything one document and its includes declare, each map in order of declaration."""

    structs: Mapping[str, StructDef] = field(default_factory=dict)
    enums: Mapping[str, EnumDef] = field(default_factory=dict)
    services: Mapping[str, ServiceDef] = field(default_factory=dict)

    def methods(self, service: str) -> Iterator[MethodDef]:
        """The methods of `service`, those it inherits last."""
        definition = self.services[service]
        yield from definition.methods
        if definition.extends is not None:
            yield from self.methods(definition.extends)


def signature(definition: MethodDef) -> str:
    """`list<string> get_partition_names(string db_name, string tbl_name, i16 max_parts = -1)`"""
    arguments = ", ".join(_argument(field) for field in definition.arguments)
    returns = "void" if definition.returns is None else type_text(definition.returns)
    return f"{'oneway ' if definition.oneway else ''}{returns} {definition.name}({arguments})"


def exception_names(definition: MethodDef) -> list[str]:
    """The declared exceptions by class name, in the order of their ids."""
    return [type_text(field.type) for field in definition.throws]


def type_text(kind: Type) -> str:
    """A type as the IDL writes it."""
    match kind:
        case ListType(element):
            return f"list<{type_text(element)}>"
        case SetType(element):
            return f"set<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case EnumType(name) | StructType(name):
            return name
        case _:
            return str(kind.value)


def _argument(field: Field) -> str:
    default = "" if field.default is None else f" = {field.default}"
    return f"{type_text(field.type)} {field.name}{default}"
