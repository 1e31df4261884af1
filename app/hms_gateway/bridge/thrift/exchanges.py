"""SASL mechanisms of several messages: GSSAPI with Kerberos tickets, and DIGEST-MD5 with delegation tokens."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

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

# Says whether a client has the password of a token, by the answer that proves it to the client; raises LoginRefused.
Prove = Callable[[Proof, str, str | None], Awaitable[str]]


class LoginRefused(Exception):
    """The login is not accepted; the text is meant for who logs in. `reason` is its word in metrics."""

    def __init__(self, text: str, reason: str = "not_thrift") -> None:
        super().__init__(text)
        self.reason = reason


class LoginExchange(Protocol):
    """The server's side of one login: the client's messages in, ours out, until there is a `user`.

    `wraps` says whether what follows is wrapped. `proof` is what showed that the client has a token.
    """

    @property
    def user(self) -> str | None: ...

    @property
    def proof(self) -> Proof | None: ...

    @property
    def wraps(self) -> bool: ...

    async def answer(self, message: bytes) -> bytes:
        """Our answer to the client's next message. Raises LoginRefused."""

    def wrap(self, content: bytes) -> Iterable[bytes]: ...

    def unwrap(self, content: bytes) -> bytes: ...


class Mechanism(Protocol):
    """A way to log in that clients name in their first message."""

    def begin(self, share_address: str | None) -> LoginExchange:
        """A new login, of a client whose share of an address is this one."""


class Tickets:
    """GSSAPI. Tickets are looked at in threads, whose work is shared out."""

    def __init__(self, tickets: SaslTickets, checks: LoginChecks) -> None:
        self._tickets = tickets
        self._checks = checks

    def begin(self, share_address: str | None) -> "TicketExchange":
        return TicketExchange(self._tickets, self._checks, share_address)


class TicketExchange:
    def __init__(self, tickets: SaslTickets, checks: LoginChecks, share_address: str | None) -> None:
        self._tickets = tickets
        self._checks = checks
        self._share_address = share_address
        self._exchange: SaslExchange | None = None
        self.proof: Proof | None = None

    @property
    def user(self) -> str | None:
        return None if self._exchange is None else self._exchange.user

    @property
    def wraps(self) -> bool:
        return self._exchange is not None and self._exchange.wraps

    async def answer(self, message: bytes) -> bytes:
        """The next reply, as in `LoginExchange.answer`."""
        try:
            return await self._checks.run(self._step, message, address=self._share_address)
        except TooManyChecks as error:
            raise LoginRefused(str(error), error.bound.name) from None
        except KerberosError as error:
            raise LoginRefused(f"the Kerberos ticket is not accepted: {error}") from error

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


class TokenDigests:
    """DIGEST-MD5, with what `prove` says."""

    def __init__(self, prove: Prove) -> None:
        self._prove = prove

    def begin(self, share_address: str | None) -> "TokenExchange":
        return TokenExchange(self._prove, share_address)


class TokenExchange:
    """What follows is not wrapped: integrity and privacy of DIGEST-MD5 are those of MD5 and RC4."""

    wraps = False

    def __init__(self, prove: Prove, share_address: str | None) -> None:
        self._prove = prove
        self._share_address = share_address
        self._nonce: str | None = None
        self.user: str | None = None
        self.proof: Proof | None = None

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

    def wrap(self, content: bytes) -> Iterable[bytes]:
        return (content,)

    def unwrap(self, content: bytes) -> bytes:
        return content
