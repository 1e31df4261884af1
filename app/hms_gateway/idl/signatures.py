"""Methods and types as the IDL writes them, for people to read."""

from hms_gateway.idl.model import EnumType, Field, ListType, MapType, MethodDef, SetType, StructType, Type


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
