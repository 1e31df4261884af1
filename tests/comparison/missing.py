"""What a request leaves out, by the IDL."""

from collections.abc import Mapping
from typing import Any

from hms_gateway.rpc.idl import ListType, MapType, Requiredness, SetType, StructDef, StructType, Type
from hms_gateway.rpc.structs import IDL, METHODS


def lacks(method: str, arguments: Mapping[str, Any], struct: str, field: str) -> bool:
    """Whether there is a struct of that name in the arguments which has no such field."""

    def inside(definition: StructDef, value: Mapping[str, Any]) -> bool:
        return definition.name == struct and field not in value

    return _any_struct(METHODS[method].arguments.definition, arguments, inside)


def has_null(method: str, arguments: Mapping[str, Any]) -> bool:
    """Whether an argument is left out, or a field of a struct that need not be said to be optional."""

    def inside(definition: StructDef, value: Mapping[str, Any]) -> bool:
        return any(
            field.name not in value for field in definition.fields if field.requiredness is not Requiredness.OPTIONAL
        )

    return _any_struct(METHODS[method].arguments.definition, arguments, inside)


def _any_struct(definition: StructDef, value: Any, holds: Any) -> bool:
    if holds(definition, value):
        return True
    return any(_any_in(field.type, value[field.name], holds) for field in definition.fields if field.name in value)


def _any_in(type: Type, value: Any, holds: Any) -> bool:
    match type:
        case StructType(name):
            return _any_struct(IDL.structs[name], value, holds)
        case ListType(element) | SetType(element):
            return any(_any_in(element, one, holds) for one in value)
        case MapType(_, element):
            return any(_any_in(element, one, holds) for one in value.values())
    return False
