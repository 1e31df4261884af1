"""Bytes to messages and structs, and back: TJSON, binary and compact Thrift."""

from hms_gateway.rpc.wire.codecs import Codec, Codecs, make_codecs
from hms_gateway.rpc.wire.message import (
    ApplicationError,
    ApplicationErrorType,
    LimitExceeded,
    Message,
    MessageType,
    NotThrift,
    ProtocolError,
    TApplicationException,
)

__all__ = [
    "ApplicationError",
    "ApplicationErrorType",
    "Codec",
    "Codecs",
    "LimitExceeded",
    "Message",
    "MessageType",
    "NotThrift",
    "ProtocolError",
    "TApplicationException",
    "make_codecs",
]
