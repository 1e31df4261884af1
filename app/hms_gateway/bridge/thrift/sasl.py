"""Thrift's SASL negotiation, mechanisms PLAIN, GSSAPI and DIGEST-MD5, and the frames that follow it.

A negotiation message is a status byte, four bytes of length and the payload. The client sends START with the name of
the mechanism, then its credentials or its ticket; the server answers OK as long as more is needed, then COMPLETE. From
then on everything travels in pieces with their length in front, in both directions. A message that takes time or a
question to others is an `Asked`, which the connection awaits. GSSAPI takes Kerberos tickets, DIGEST-MD5 delegation
tokens.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from hms_gateway.bridge.thrift.messages import Unspeakable
from hms_gateway.runtime.kerberos import KerberosError, SaslExchange, SaslTickets
from hms_gateway.runtime.logins.delegation_token import (
    DigestError,
    Proof,
    TokenName,
    UnreadableToken,
    challenge,
    last_answer,
    new_nonce,
    read_response,
)
from hms_gateway.runtime.logins.login_tokens import LoginChecks, TooManyChecks

# Gives the answer that proves a token to its client; raises LoginRefused for a client without its password.
Prove = Callable[[Proof, str, str | None], Awaitable[str]]


class LoginRefused(Exception):
    """The login is not accepted; the text is meant for who logs in. `reason` is its word in metrics."""

    def __init__(self, text: str, reason: str = "not_thrift") -> None:
        super().__init__(text)
        self.reason = reason


class LoginExchange:
    """The server's side of one login: the client's messages in, ours out, until there is a `user`.

    With `wraps` the messages after it are wrapped. `proof` has shown that the client has a token.
    """

    user: str | None = None
    proof: Proof | None = None
    wraps: bool = False

    async def answer(self, message: bytes) -> bytes:
        """Our answer to the client's next message. Raises LoginRefused."""
        raise NotImplementedError

    def wrap(self, content: bytes) -> Iterable[bytes]:
        """The pieces in which content travels."""
        return (content,)

    def unwrap(self, content: bytes) -> bytes:
        """The content of a piece. Raises KerberosError."""
        return content


# Begins a login of a client whose share of an address is this one.
Mechanism = Callable[[str | None], LoginExchange]


class TicketExchange(LoginExchange):
    """A login by GSSAPI. Tickets are looked at in threads, whose work is shared out."""

    def __init__(self, tickets: SaslTickets, checks: LoginChecks, share_address: str | None) -> None:
        self._tickets = tickets
        self._checks = checks
        self._share_address = share_address
        self._exchange: SaslExchange | None = None

    async def answer(self, message: bytes) -> bytes:
        """The next reply, as in `LoginExchange.answer`."""
        try:
            answer = await self._checks.run(self._step, message, address=self._share_address)
        except TooManyChecks as error:
            raise LoginRefused(str(error), error.bound.name) from None
        except KerberosError as error:
            raise LoginRefused(f"the Kerberos ticket is not accepted: {error}") from error
        assert self._exchange is not None
        self.user, self.wraps = self._exchange.user, self._exchange.wraps
        return answer

    def wrap(self, content: bytes) -> Iterable[bytes]:
        assert self._exchange is not None
        return self._exchange.wrap(content)

    def unwrap(self, content: bytes) -> bytes:
        """Raises KerberosError."""
        assert self._exchange is not None
        return self._exchange.unwrap(content)

    def _step(self, message: bytes) -> bytes:
        if self._exchange is None:
            self._exchange = self._tickets.begin()
        return self._exchange.answer(message)


class TokenExchange(LoginExchange):
    """A login by a token. Nothing is wrapped after it: integrity and privacy of DIGEST-MD5 are those of MD5 and RC4."""

    def __init__(self, prove: Prove, share_address: str | None) -> None:
        self._prove = prove
        self._share_address = share_address
        self._nonce: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """The next reply, as in `LoginExchange.answer`."""
        if self._nonce is None:
            if message:
                raise LoginRefused("the client answers a challenge of DIGEST-MD5 that was not sent; send nothing first")
            self._nonce = new_nonce()
            return challenge(self._nonce)
        try:
            proof = read_response(message, self._nonce)
            owner = TokenName.decode(proof.token_name).owner
        except (DigestError, UnreadableToken) as error:
            raise LoginRefused(f"the delegation token is not accepted: {error}") from None
        proven = await self._prove(proof, owner, self._share_address)
        self.user, self.proof = owner, proof
        return last_answer(proven)


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
        """The bytes to send. Raises Unspeakable, with the answer that ends the negotiation."""
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
        """The content of a piece. Raises Unspeakable."""
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
            self._exchange = self._mechanisms[name](self._share_address)
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
