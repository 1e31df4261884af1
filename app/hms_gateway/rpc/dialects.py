"""The few methods whose shape depends on the caller's generation (design D2, semantics §10.1)."""

from collections.abc import Mapping
from functools import cache

import msgspec

from hms_gateway.idl import Field, StructType, Type
from hms_gateway.rpc.call import Dialect
from hms_gateway.structs import IDL, METHODS, STRUCTS, Method
from hms_gateway.structs.build import build_method

# The same field id is another exception from Hive 3.1 on, or none.
_THROWS_4: dict[str, tuple[Field, ...]] = {
    "get_table_objects_by_name": (),
    "get_partition_names": (
        Field(1, "o1", StructType("NoSuchObjectException")),
        Field(2, "o2", StructType("MetaException")),
    ),
}


@cache
def methods_of(dialect: Dialect) -> Mapping[str, Method]:
    """Every method by name, as callers of `dialect` know it."""
    if dialect is Dialect.HIVE_2_3:
        return METHODS
    return {name: _newer(method) for name, method in METHODS.items()}


def _newer(method: Method) -> Method:
    definition = method.definition
    changed = msgspec.structs.replace(
        definition,
        returns=None if definition.returns is None else _newer_type(definition.returns),
        arguments=tuple(msgspec.structs.replace(field, type=_newer_type(field.type)) for field in definition.arguments),
        throws=_THROWS_4.get(method.name, definition.throws),
    )
    return method if changed == definition else build_method(changed, method.service, STRUCTS)


def _newer_type(kind: Type) -> Type:
    """`X_v4` where the schema declares it beside `X`."""
    newer = StructType(f"{kind.name}_v4") if isinstance(kind, StructType) else kind
    return newer if isinstance(newer, StructType) and newer.name in IDL.structs else kind
