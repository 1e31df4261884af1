"""The classes of the metastore IDL, made at import from `schema/hive_metastore.thrift` (design D1).

Structs, unions, exceptions and enums are attributes of this module under their IDL names; the module's `.pyi` lists
them and is written by `python -m tools stubs`.
"""

from hms_gateway.rpc.idl import parse_file
from hms_gateway.rpc.idl.parser import schema_file
from hms_gateway.rpc.structs.base import (
    Encoded,
    EncodedList,
    Method,
    Struct,
    StructClass,
    ThriftException,
    build_enums,
    build_methods,
    build_structs,
)

IDL = parse_file(schema_file("hive_metastore.thrift"))
STRUCTS: dict[str, StructClass] = build_structs(IDL)
ENUMS = build_enums(IDL)
METHODS: dict[str, Method] = {
    name: method
    for service in IDL.services
    if not any(other.extends == service for other in IDL.services.values())
    for name, method in build_methods(IDL, service, STRUCTS).items()
}

globals().update(STRUCTS, **ENUMS)

__all__ = ["ENUMS", "IDL", "METHODS", "STRUCTS", "Encoded", "EncodedList", "Method", "Struct", "ThriftException"]
