"""Values of a reply that are already encoded, so that sending them costs a copy (design D5)."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from hms_gateway.structs.base import Struct


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
