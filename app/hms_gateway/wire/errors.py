"""Errors that a peer gets when a message cannot be read or answered."""

from enum import IntEnum
from typing import Any

from thrift.Thrift import TType

from hms_gateway.idl import BaseType, Field, StructDef, StructKind
from hms_gateway.structs import ThriftException


class ApplicationErrorType(IntEnum):
    """The `type` of a TApplicationException, numbered as in Apache Thrift."""

    UNKNOWN = 0
    UNKNOWN_METHOD = 1
    INVALID_MESSAGE_TYPE = 2
    WRONG_METHOD_NAME = 3
    BAD_SEQUENCE_ID = 4
    MISSING_RESULT = 5
    INTERNAL_ERROR = 6
    PROTOCOL_ERROR = 7
    INVALID_TRANSFORM = 8
    INVALID_PROTOCOL = 9
    UNSUPPORTED_CLIENT_TYPE = 10


class TApplicationException(ThriftException):
    """The payload of an EXCEPTION message; `Codec.encode` and `decode` take it like any struct."""

    definition = StructDef(
        "TApplicationException",
        StructKind.EXCEPTION,
        (Field(1, "message", BaseType.STRING), Field(2, "type", BaseType.I32)),
    )
    thrift_spec = (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None))
    type: int | None

    def __init__(self, message: str | None = None, type: int | None = None, **fields: Any) -> None:
        super().__init__(message, type=type, **fields)


class ApplicationError(Exception):
    """A call that fails outside its method's declared exceptions: answered with an EXCEPTION message.

    `limit` is the field of `Limits` that the message went over, if that is why.
    """

    limit: str = ""

    def __init__(self, message: str, type: ApplicationErrorType = ApplicationErrorType.INTERNAL_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.type = type

    def payload(self) -> TApplicationException:
        """What to encode as the payload of the EXCEPTION message."""
        return TApplicationException(self.message, int(self.type))


class ProtocolError(ApplicationError):
    """Bytes that are not a message, or not arguments of this method. The text names the field and the reason.

    `name` and `seqid` are the message's as far as they could be read, so that the answer can carry them.
    """

    def __init__(
        self,
        message: str,
        type: ApplicationErrorType = ApplicationErrorType.PROTOCOL_ERROR,
        *,
        name: str | None = None,
        seqid: int | None = None,
    ) -> None:
        super().__init__(message, type)
        self.name = name
        self.seqid = seqid


class LimitExceeded(ProtocolError):
    """A message larger or deeper than we take (design D15)."""

    def __init__(self, limit: str, maximum: int, where: str = "") -> None:
        super().__init__(f"{where}{': ' if where else ''}over the limit {limit} = {maximum}")
        self.limit = limit
        self.maximum = maximum


class NotThrift(ProtocolError):
    """A body that is in none of the protocols we speak."""
