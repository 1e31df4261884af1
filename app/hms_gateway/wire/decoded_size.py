"""How much memory a binary or compact message takes once it is decoded, found out before it is.

An empty struct is a byte in the message and 140 bytes of memory. So structs are counted: the message is decoded once
with a description in which every struct is the same object, which the C code makes of nothing. Lists inside lists are
estimated by the bytes that begin them.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from hms_gateway.structs import STRUCTS
from hms_gateway.structs.build import specs_of_structs_alone

# A struct with a few dozen fields, and a list of a few texts with its place in another list.
STRUCT_BYTES = 200
LIST_BYTES = 72
# In a compact message short lists of texts, and texts as fields, begin with such a byte.
_NO_COMPACT_LISTS = bytes(range(0x08, 0x100, 0x10))
_BINARY_LIST = b"\x0b\x00\x00\x00"

_counting = threading.Lock()


class TooManyStructs(Exception):
    """There are more of them than were allowed."""


class _Counted:
    """Takes the place of every struct. It has one instance; making another counts one more."""

    made = 0
    most = 0
    only: "_Counted"

    def __new__(cls, **fields: object) -> "_Counted":
        _Counted.made += 1
        if _Counted.made > _Counted.most:
            raise TooManyStructs
        return _Counted.only


_Counted.only = object.__new__(_Counted)


def structs_in(read: Callable[[Any, Any], object], struct_class: Any, most: int) -> int:
    """The structs inside of one, itself not counted. `read(class, spec)` decodes. Raises TooManyStructs."""
    with _counting:
        _Counted.made, _Counted.most = 0, most + 1
        read(_Counted, _counting_spec(struct_class))
        return _Counted.made - 1


def binary_lists(payload: bytes) -> int:
    """No fewer lists of texts than are in a binary message inside of others."""
    return payload.count(_BINARY_LIST)


def compact_lists(payload: bytes) -> int:
    """No fewer short lists of texts than are in a compact message; texts that are fields are among them."""
    return len(payload) - len(payload.translate(None, _NO_COMPACT_LISTS))


@cache
def _counting_specs() -> Callable[[Any], Any]:
    return specs_of_structs_alone(STRUCTS, _Counted)


@cache
def _counting_spec(struct_class: Any) -> Any:
    return _counting_specs()(struct_class.definition)
