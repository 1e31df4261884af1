"""Thrift's SASL negotiation, mechanisms PLAIN and GSSAPI, and the frames that follow it.

A negotiation message is a status byte, four bytes of length and the payload. The client sends START with the name of
the mechanism, then its credentials or its ticket; the server answers OK as long as more is needed, then COMPLETE. From
then on everything travels in pieces with their length in front, in both directions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from hms_gateway.bridge.thrift.errors import Unspeakable
from hms_gateway.runtime.kerberos import KerberosError, SaslExchange, SaslTickets

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
    """The server's side. Bytes go in by `receive`, which gives what to send.

    The result is `credentials`, to be checked by who is called, or `proven_user`, whose ticket was accepted here.
    GSSAPI is offered with `tickets`.
    """

    def __init__(self, tickets: SaslTickets | None = None) -> None:
        self.credentials: Credentials | None = None
        self._tickets = tickets
        self._exchange: SaslExchange | None = None
        self._has_begun = False

    @property
    def is_done(self) -> bool:
        return self.credentials is not None or self.proven_user is not None

    @property
    def proven_user(self) -> str | None:
        return None if self._exchange is None else self._exchange.user

    def wrap(self, content: bytes) -> Iterable[bytes]:
        """The pieces in which `content` travels, without their lengths."""
        exchange = self._exchange
        return exchange.wrap(content) if exchange is not None and exchange.wraps else (content,)

    def unwrap(self, piece: bytes) -> bytes:
        """What is in a piece. Raises Unspeakable."""
        exchange = self._exchange
        if exchange is None or not exchange.wraps:
            return piece
        try:
            return exchange.unwrap(piece)
        except KerberosError as error:
            raise Unspeakable(f"a part of a message is not what the client has sent: {error}") from error

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
        if not self._has_begun:
            return self._start(status, payload)
        if self._exchange is not None:
            return self._go_on(status, payload, self._exchange)
        return self._finish(status, payload)

    def _start(self, status: int, payload: bytes) -> bytes:
        offered = [b"PLAIN"] if self._tickets is None else [b"PLAIN", b"GSSAPI"]
        if status != Status.START or payload not in offered:
            name = payload[:40].decode("ascii", "replace")
            text = f"SASL mechanism {name!r} is not offered here, only {b' and '.join(offered).decode()}"
            raise _refusal(Status.BAD, text)
        self._has_begun = True
        if payload == b"GSSAPI" and self._tickets is not None:
            self._exchange = self._tickets.begin()
        return b""

    def _go_on(self, status: int, payload: bytes, exchange: SaslExchange) -> bytes:
        if status not in (Status.OK, Status.COMPLETE):
            raise _refusal(Status.BAD, "the client has ended the SASL negotiation")
        try:
            answer = exchange.answer(payload)
        except KerberosError as error:
            raise _refusal(Status.BAD, f"the Kerberos ticket is not accepted: {error}") from error
        return negotiation_message(Status.OK if exchange.user is None else Status.COMPLETE, answer)

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
