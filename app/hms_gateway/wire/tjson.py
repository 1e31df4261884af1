"""Bare IDL values as TJSON, for storage: `{"a":"b"}` of type map<string,string> is `["str","str",1,{"a":"b"}]`."""

from typing import Any

import msgspec

from hms_gateway.idl import Type
from hms_gateway.runtime.limits import Limits
from hms_gateway.wire.tjson_codec import NOT_PLAIN
from hms_gateway.wire.tjson_scan import scan_value
from hms_gateway.wire.tjson_shapes import shape_of_type

# What is stored passed the limits of a request once, or was written by us.
_LIMITS = Limits()


def encode_value(type: Type, value: Any) -> bytes:
    """`value` of an IDL type as TJSON, without the tag that a field would put before it."""
    return _encoder.encode(shape_of_type(type).write(value, []))


def decode_value(type: Type, text: bytes) -> Any:
    """The inverse of `encode_value`; takes all the forms a request may have. Raises ProtocolError."""
    shape = shape_of_type(type)
    try:
        return shape.read(shape.parse(text))
    except NOT_PLAIN:
        return scan_value(type, text, _LIMITS)


_encoder = msgspec.json.Encoder()
