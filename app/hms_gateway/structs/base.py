"""What every class made from the IDL has in common."""

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol, runtime_checkable

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


# Values of a reply that are already encoded, so that sending them costs a copy (design D5).


@runtime_checkable
class Encoded(Protocol):
    """Takes the place of a struct in a reply; the codec splices it or asks for the struct."""

    def tjson(self) -> bytes:
        """The struct as compact TJSON, `{"1":{"str":...},...}`."""

    def struct(self) -> Struct:
        """The same as an object, for the protocols that are not TJSON."""


@runtime_checkable
class EncodedList(Protocol):
    """Takes the place of a list of structs in a reply and is read while the reply is sent.

    It is iterated once, by one of the two methods, and closed by the code that iterates it or decides not to.
    Iterating may wait for the database, so it runs outside the event loop.
    """

    def __len__(self) -> int:
        """The exact number of elements; a list header is sent before the first element is read."""

    def tjson_chunks(self) -> Iterator[bytes]:
        """The elements as compact TJSON joined by commas, some hundred in each chunk, none of them empty."""

    def struct_chunks(self) -> Iterator[list[Struct]]:
        """The same as objects."""

    def close(self) -> None:
        """Give back what reading needs (a connection, a snapshot). Harmless when called again."""


@runtime_checkable
class EncodedTexts(Protocol):
    """Takes the place of a reply that is a list of strings, and is read while it is sent: an EncodedList of names."""

    def __len__(self) -> int:
        """The exact number of texts."""

    def tjson_chunks(self) -> Iterator[bytes]:
        """The texts as JSON strings joined by commas, none of the chunks empty."""

    def text_chunks(self) -> Iterator[list[str]]:
        """The same as they are."""

    def close(self) -> None:
        """Give back what reading needs. Harmless when called again."""
