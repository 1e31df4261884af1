"""What every class made from the IDL has in common."""

from typing import Any, ClassVar

import msgspec

from hms_gateway.idl import StructDef


class Struct(msgspec.Struct, gc=False):
    """Base of the classes made from the IDL's structs and unions.

    An unset field is None: a default the IDL declares is for the reader of the field to apply, because "unset" and
    "set to the default" differ on the wire. Instances hold no reference cycles and stay out of the garbage
    collector's sight, whose walks would otherwise cost as much as decoding them (design D4).
    """

    definition: ClassVar[StructDef]
    thrift_spec: ClassVar[tuple[Any, ...]] = ()


class ThriftException(Exception):
    """Base of the classes made from the IDL's exceptions; the fields are attributes, None when unset."""

    definition: ClassVar[StructDef]
    thrift_spec: ClassVar[tuple[Any, ...]] = ()
    message: str | None = None

    def __init__(self, message: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        for field in self.definition.fields:
            setattr(self, field.name, fields.pop(field.name, None))
        if fields:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(fields)}")
        if message is not None:
            self.message = message

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = Exception.__hash__

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.definition.fields)
        return f"{type(self).__name__}({fields})"

    def __str__(self) -> str:
        """Java's `toString`: Hive quotes inner exceptions this way (semantics §0.1)."""
        return f"{type(self).__name__}(message:{self.message})"
