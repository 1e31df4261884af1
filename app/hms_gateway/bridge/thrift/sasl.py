"""Thrift's SASL negotiation, mechanism PLAIN, and the frames that follow it.

A negotiation message is a status byte, four bytes of length and the payload. The client sends START with the name of
the mechanism, then its credentials; the server answers COMPLETE. From then on everything travels in pieces with their
length in front, in both directions.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from hms_gateway.bridge.thrift.errors import Unspeakable

SaslPolicy = Literal["off", "allow", "require"]

NEGOTIATION_BYTES_MAX = 64 * 1024


class Status(IntEnum):
    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """A user's name and password. Never shown."""

    user: str
    password: str


class SaslNegotiation:
    """The server's side. Bytes go in by `receive`; `answer` is what to send, `credentials` the result."""

    def __init__(self) -> None:
        self.credentials: Credentials | None = None
        self._mechanism: bytes | None = None

    def receive(self, buffer: bytearray) -> bytes | None:
        """Take one message from the front of `buffer`, give the answer to it; None when more bytes are needed.

        Raises Unspeakable, with the answer that ends the negotiation.
        """
        if len(buffer) < 5:
            return None
        status, length = buffer[0], int.from_bytes(buffer[1:5], "big")
        if length > NEGOTIATION_BYTES_MAX:
            raise _refusal(Status.ERROR, f"a SASL message of {length} bytes is over {NEGOTIATION_BYTES_MAX}")
        if len(buffer) < 5 + length:
            return None
        payload = bytes(buffer[5 : 5 + length])
        del buffer[: 5 + length]
        if self._mechanism is None:
            return self._start(status, payload)
        return self._finish(status, payload)

    def _start(self, status: int, payload: bytes) -> bytes:
        if status != Status.START or payload != b"PLAIN":
            name = payload[:40].decode("ascii", "replace")
            raise _refusal(Status.BAD, f"SASL mechanism {name!r} is not offered here, only PLAIN")
        self._mechanism = payload
        return b""

    def _finish(self, status: int, payload: bytes) -> bytes:
        parts = payload.split(b"\0")
        if status not in (Status.OK, Status.COMPLETE) or len(parts) != 3 or not parts[1]:
            raise _refusal(Status.BAD, "the SASL PLAIN message has no user and password")
        try:
            self.credentials = Credentials(parts[1].decode(), parts[2].decode())
        except UnicodeDecodeError:
            raise _refusal(Status.BAD, "user or password of SASL PLAIN is not UTF-8") from None
        return negotiation_message(Status.COMPLETE, b"")


def negotiation_message(status: Status, payload: bytes) -> bytes:
    return bytes([status]) + len(payload).to_bytes(4, "big") + payload


def refuse(text: str) -> Unspeakable:
    """The end of a negotiation that is not wanted here."""
    return _refusal(Status.ERROR, text)


def _refusal(status: Status, text: str) -> Unspeakable:
    return Unspeakable(text, negotiation_message(status, text.encode()))
