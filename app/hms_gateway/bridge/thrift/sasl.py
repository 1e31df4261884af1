"""Thrift's SASL negotiation, mechanisms PLAIN, GSSAPI and DIGEST-MD5, and the frames that follow it.

A negotiation message is a status byte, four bytes of length and the payload. The client sends START with the name of
the mechanism, then its credentials or its ticket; the server answers OK as long as more is needed, then COMPLETE. From
then on everything travels in pieces with their length in front, in both directions. What takes time or a question to
others is an `Asked`, which the connection awaits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from hms_gateway.bridge.thrift.errors import Unspeakable
from hms_gateway.bridge.thrift.exchanges import LoginExchange, LoginRefused, Mechanism
from hms_gateway.runtime.kerberos import KerberosError
from hms_gateway.runtime.logins.delegation_token import Proof

SaslPolicy = Literal["off", "allow", "require"]

NEGOTIATION_BYTES_MAX = 64 * 1024


class SaslStatus(IntEnum):
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


@dataclass(frozen=True, slots=True)
class Asked:
    """A client's message of a login, whose answer is not known at once."""

    exchange: LoginExchange
    message: bytes

    async def answer(self) -> bytes:
        """What to send. Raises Unspeakable, with the answer that ends the negotiation."""
        try:
            answer = await self.exchange.answer(self.message)
        except LoginRefused as error:
            raise _refusal(SaslStatus.BAD, str(error), error.reason) from error
        return negotiation_message(SaslStatus.OK if self.exchange.user is None else SaslStatus.COMPLETE, answer)


class SaslNegotiation:
    """The server's side. Bytes go in by `receive`, which gives what to send.

    The result is `credentials`, to be checked by who is called, or `proven_user`, whose ticket or token was accepted
    here; of a token there is the `proof`. `mechanisms` are offered beside PLAIN, by their names.
    """

    def __init__(self, mechanisms: Mapping[str, Mechanism], share_address: str | None = None) -> None:
        self.credentials: Credentials | None = None
        self._mechanisms = mechanisms
        self._share_address = share_address
        self._exchange: LoginExchange | None = None
        self._has_begun = False

    @property
    def is_done(self) -> bool:
        return self.credentials is not None or self.proven_user is not None

    @property
    def proven_user(self) -> str | None:
        return None if self._exchange is None else self._exchange.user

    @property
    def proof(self) -> Proof | None:
        return None if self._exchange is None else self._exchange.proof

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

    def receive(self, buffer: bytearray) -> bytes | Asked | None:
        """Take one message from the front of `buffer`, give the answer to it; None when more bytes are needed.

        After an Asked nothing more may be received before its answer is there.

        Raises Unspeakable, with the answer that ends the negotiation.
        """
        if len(buffer) < 5:
            return None
        status, length = buffer[0], int.from_bytes(buffer[1:5], "big")
        if length > NEGOTIATION_BYTES_MAX:
            raise _refusal(SaslStatus.ERROR, f"a SASL message of {length} bytes is over {NEGOTIATION_BYTES_MAX}")
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
        name = payload.decode("ascii", "replace")
        offered = ["PLAIN", *self._mechanisms]
        if status != SaslStatus.START or name not in offered:
            text = f"SASL mechanism {name[:40]!r} is not offered here, only {' and '.join(offered)}"
            raise _refusal(SaslStatus.BAD, text)
        self._has_begun = True
        if name in self._mechanisms:
            self._exchange = self._mechanisms[name].begin(self._share_address)
        return b""

    def _go_on(self, status: int, payload: bytes, exchange: LoginExchange) -> Asked:
        if status not in (SaslStatus.OK, SaslStatus.COMPLETE):
            raise _refusal(SaslStatus.BAD, "the client has ended the SASL negotiation")
        return Asked(exchange, payload)

    def _finish(self, status: int, payload: bytes) -> bytes:
        parts = payload.split(b"\0")
        if status not in (SaslStatus.OK, SaslStatus.COMPLETE) or len(parts) != 3 or not parts[1]:
            raise _refusal(SaslStatus.BAD, "the SASL PLAIN message has no user and password")
        try:
            self.credentials = Credentials(parts[1].decode(), parts[2].decode())
        except UnicodeDecodeError:
            raise _refusal(SaslStatus.BAD, "user or password of SASL PLAIN is not UTF-8") from None
        return negotiation_message(SaslStatus.COMPLETE, b"")


def negotiation_message(status: SaslStatus, payload: bytes) -> bytes:
    return bytes([status]) + len(payload).to_bytes(4, "big") + payload


def refuse(text: str) -> Unspeakable:
    """The end of a negotiation that is not wanted here."""
    return _refusal(SaslStatus.ERROR, text)


def _refusal(status: SaslStatus, text: str, reason: str = "not_thrift") -> Unspeakable:
    return Unspeakable(text, negotiation_message(status, text.encode()), reason)
