"""Thrift IDL: text in, a frozen model of its structs, enums and services out."""

from hms_gateway.rpc.idl.model import (
    BaseType,
    EnumDef,
    EnumType,
    Field,
    Idl,
    ListType,
    MapType,
    MethodDef,
    Requiredness,
    ServiceDef,
    SetType,
    StructDef,
    StructKind,
    StructType,
    Type,
)
from hms_gateway.rpc.idl.parser import IdlError, parse_file

__all__ = [
    "BaseType",
    "EnumDef",
    "EnumType",
    "Field",
    "Idl",
    "IdlError",
    "ListType",
    "MapType",
    "MethodDef",
    "Requiredness",
    "ServiceDef",
    "SetType",
    "StructDef",
    "StructKind",
    "StructType",
    "Type",
    "parse_file",
]
