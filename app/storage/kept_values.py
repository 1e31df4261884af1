"""The value of a unit of work as bytes, so that a repeated call can be answered from it (design D11).

Values are what Python's pickle can write, but reading builds nothing except plain values and the value classes of this
project: whoever can write to the database cannot have code run by that.
"""

import dataclasses
import io
import logging
import pickle
import zlib
from enum import Enum
from typing import Any, Final

from app.call_keys import KeptValue
from app.structs.base import Struct, ThriftException
from app.txn.errors import Refused

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
_COMPRESSED_FROM_BYTES: Final = 1024
_PLAIN, _COMPRESSED = b"p", b"z"

_log = logging.getLogger(__name__)


def packed_value(value: object) -> bytes | None:
    """None for a value that is too large to be kept."""
    written = pickle.dumps(value)
    return packed(written) if len(written) <= KEPT_BYTES_MAX else None


def unpacked_value(stored: bytes) -> KeptValue | None:
    """None for what this version cannot read, such as a value that another version wrote."""
    try:
        return KeptValue(_Reader(io.BytesIO(unpacked(stored))).load())
    except Exception:
        _log.warning("the kept value of an earlier call cannot be read", exc_info=True)
        return None


def packed(content: bytes) -> bytes:
    """`content`, compressed when that is worth it."""
    if len(content) < _COMPRESSED_FROM_BYTES:
        return _PLAIN + content
    return _COMPRESSED + zlib.compress(content, 1)


def unpacked(stored: bytes) -> bytes:
    """What `packed` was given."""
    return zlib.decompress(stored[1:]) if stored[:1] == _COMPRESSED else bytes(stored[1:])


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "app":
            found = super().find_class(module, name)
            if isinstance(found, type) and _is_value_class(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no class of values")


def _is_value_class(found: type) -> bool:
    return issubclass(found, (tuple, Enum, Struct, ThriftException, Refused)) or dataclasses.is_dataclass(found)
