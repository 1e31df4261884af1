"""Bytes to messages and structs, and back: TJSON, binary and compact Thrift."""

from app.wire import tjson
from app.wire.codecs import Codec, Codecs, make_codecs
from app.wire.errors import (
    ApplicationError,
    ApplicationErrorType,
    LimitExceeded,
    NotThrift,
    ProtocolError,
    TApplicationException,
)
from app.wire.message import Message, MessageType

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
    "tjson",
]
