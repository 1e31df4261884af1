"""Posts messages to the gateway or another MS-HMSHTTP server, and decides what a failure means (clients §13).

A call that changes something carries a key, under which our gateway stores the outcome together with the change
(design D11): sent again with the same key, it is answered and not done again. The effect of a missing answer depends on
two questions: may the call have been sent, and may it be sent again?

    not sent                        tried again for a while, then the client's connection is closed: it may repeat
    sent, reading or keyed          tried again for a while
        then reading                the client's connection is closed: it may repeat
        then changing               an exception that clients do not repeat on
    sent, changing without a key    that exception at once
"""

import asyncio
import uuid
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec
import structlog

from hms_gateway.bridge.relays.held_answers import HeldAnswers, tag_of
from hms_gateway.bridge.relays.relay import RelayedReply
from hms_gateway.bridge.relays.transcoding import Unchanged
from hms_gateway.bridge.relays.upstream import Answer, TooSlow, UpstreamError, UpstreamNotTrusted, UpstreamPool
from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import CallFailed, NotTried, ReplyBroken, ThriftMessage
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.runtime.kerberos import KerberosError, ServiceTickets
from hms_gateway.runtime.logins.client_certificate import ClientCertificate
from hms_gateway.runtime.logins.delegation_token import PROOF_HEADER
from hms_gateway.runtime.logins.login_tokens import LoginToken, TokenError

# The tag of no answer.
ASKING_FOR_A_TAG: Final = b'"none"'
# Replies of changing methods are held up to this size, so that one that breaks off can be asked for again.
CHANGING_REPLY_BYTES_MAX = 64 * 1024 * 1024
ERROR_TEXT_BYTES_MAX = 64 * 1024
SHOWN_CHARACTERS_MAX = 300
PAUSE_SECONDS_FIRST = 0.05
PAUSE_SECONDS_MAX = 1.0
# What proxies and servers say when the request was not handled, or that is unknown.
NOBODY_ANSWERED = (502, 503, 504)
TOKEN_METHOD = "get_delegation_token"

_log = structlog.get_logger("hms_gateway.bridge")


class RelayOptions(msgspec.Struct, frozen=True):
    """`token`, Kerberos tickets where it `negotiates`, or the `certificate` of TLS log in without `credentials`.

    `keeps_keys` says that the far side answers a repeated key from memory; then changing calls are repeated too.
    `patience_seconds` is how long a far side that is away is waited for. `acts_for_users` sends the user of
    `set_ugi` as `doAs`.
    """

    url: str
    credentials: Credentials | None = None
    token: LoginToken | None = None
    negotiates: bool = False
    certificate: ClientCertificate | None = None
    keeps_keys: bool | None = None
    acts_for_users: bool = False
    call_seconds_max: float = 600.0
    patience_seconds: float = 5.0


class _Attempts(msgspec.Struct):
    """State of the attempts of one call. `give_up_at` is on the loop's clock, `held_tag` of an answer held."""

    key: str | None
    give_up_at: float
    held_tag: bytes | None = None
    may_have_happened: bool = False
    count: int = 0
    pause_seconds: float = PAUSE_SECONDS_FIRST


class HttpsRelay:
    """The relay of the bridge."""

    def __init__(
        self,
        pool: UpstreamPool,
        encoding: Unchanged,
        options: RelayOptions,
        reply_bytes_max: int,
        held: HeldAnswers | None = None,
    ) -> None:
        """`reply_bytes_max` bounds framed and transcoded replies, which have to be held whole; `held` is given for a
        gateway, whose tags are known.
        """
        self._held = held
        self._pool = pool
        self._encoding = encoding
        self._options = options
        self._reply_bytes_max = reply_bytes_max
        self._url = urlsplit(options.url)
        self._host = self._url.netloc.rpartition("@")[2]
        self._tickets = ServiceTickets(self._url.hostname or "") if options.negotiates else None
        self._loop = asyncio.get_running_loop()
        self._head = lru_cache(maxsize=1024)(self._make_head)
        self._own_login = _own_login(options)

    async def call(self, message: ThriftMessage, session: Session) -> RelayedReply | None:
        """See `Relay.call`."""
        if message.name == TOKEN_METHOD and session.credentials is None and session.proven_user is None:
            # It would be one of the bridge's own user, and open other doors, for longer.
            text = "a delegation token needs a login of the client's own; start the bridge with --sasl require"
            raise CallFailed(text, "unauthorized")
        is_changing = changes_something(message.name)
        attempts = _Attempts(
            key=uuid.uuid4().hex if is_changing else None, give_up_at=self._loop.time() + self._options.patience_seconds
        )
        body = await self._encoding.request(message)
        held = None if self._held is None or is_changing else self._held.find(message)
        if held is not None:
            attempts.held_tag = await tag_of(held)
        elif self._held is not None and self._held.was_asked(message):
            attempts.held_tag = ASKING_FOR_A_TAG
        while True:
            try:
                answer = await self._attempt(message, session, body, attempts)
                if answer.status == 304 and self._held is not None and held is not None:
                    return RelayedReply(self._held.reply(message, held), request_id=answer.request_id, cached=True)
                return await self._reply(answer, message, session)
            except UpstreamNotTrusted as error:
                raise CallFailed(str(error), "not_trusted") from error
            except TooSlow as error:
                raise CallFailed(f"{self._shown_url} gave {error}; the call may still happen", "too_slow") from error
            except UpstreamError as error:
                attempts.may_have_happened |= error.was_sent
                await self._pause_or_give_up(attempts, is_changing, error)

    @property
    def open_connections(self) -> int:
        """To the far side."""
        return self._pool.open_connections

    async def close(self) -> None:
        """See `Relay.close`."""
        self._pool.close()

    async def _attempt(self, message: ThriftMessage, session: Session, body: bytes, attempts: _Attempts) -> Answer:
        """One POST; its answer, as far as it has to be complete. Raises UpstreamError, CallFailed."""
        attempts.count += 1
        is_repeatable = attempts.key is None or self._options.keeps_keys
        credentials = session.credentials or self._options.credentials
        token = None if credentials is not None else await self._token()
        # Tickets and tokens end here: their user is called for under the bridge's own login, whatever `set_ugi` says.
        acts_for = session.proven_user or (session.user if self._options.acts_for_users else "")
        head = self._head(credentials, acts_for, token)
        if credentials is None and token is None and self._tickets is not None:
            head += await self._ticket(self._tickets)
        key = b"" if attempts.key is None else b"idempotency-key: %b\r\n" % attempts.key.encode()
        if session.proof is not None:
            key += b"%b: %b\r\n" % (PROOF_HEADER, session.proof.header)
        held = b"" if attempts.held_tag is None else b"if-none-match: %b\r\n" % attempts.held_tag
        head = b"%bcontent-length: %d\r\n%b%b\r\n" % (head, len(body), key, held)
        connection = await self._pool.acquire(must_be_fresh=not is_repeatable)
        answer = await connection.request(head, body, self._options.call_seconds_max)
        if answer.status == 401 and token is not None and await self._has_another(token):
            # Nothing has happened, and there is another token now.
            await answer.whole(ERROR_TEXT_BYTES_MAX)
            return await self._attempt(message, session, body, attempts)
        if answer.status in NOBODY_ANSWERED or (answer.status == 429 and answer.is_not_tried):
            text = await self._problem(answer)
            raise UpstreamError(text, was_sent=not answer.is_not_tried)
        if answer.status == 304 and attempts.held_tag is not None:
            return answer
        if answer.status != 200:
            raise self._refusal(answer.status, await self._problem(answer), credentials)
        if attempts.key is not None and answer.body is None:
            await answer.held(CHANGING_REPLY_BYTES_MAX)
        return answer

    async def _token(self) -> str | None:
        """The token to send, where the bridge logs in with one. Raises CallFailed."""
        source = self._options.token
        if source is None or (token := source.known()) is not None:
            return None if source is None else token
        try:
            return await self._loop.run_in_executor(None, source.read)
        except TokenError as error:
            raise CallFailed(f"the bridge has no token: {error}", "unauthorized") from error

    async def _has_another(self, refused: str) -> bool:
        """True if the source has another token than the one that was refused."""
        assert self._options.token is not None
        try:
            return await self._loop.run_in_executor(None, self._options.token.renewed, refused) is not None
        except TokenError as error:
            _log.warning("the token was refused, and no other one is available", problem=str(error))
            return False

    async def _ticket(self, tickets: ServiceTickets) -> bytes:
        """The header of one attempt. In a thread, since it may have to ask the KDC. Raises CallFailed."""
        try:
            authorization = await self._loop.run_in_executor(None, tickets.authorization)
        except KerberosError as error:
            raise CallFailed(f"the bridge has {error}", "unauthorized") from error
        return f"authorization: {authorization}\r\n".encode()

    async def _pause_or_give_up(self, attempts: _Attempts, is_changing: bool, error: UpstreamError) -> None:
        may_repeat = not attempts.may_have_happened or not is_changing or self._options.keeps_keys
        now = self._loop.time()
        # A kept connection that turns out to be dead says nothing about the server: once more, whatever the time is.
        if may_repeat and (attempts.count == 1 or now < attempts.give_up_at):
            _log.info("call tried again", problem=str(error), attempt=attempts.count)
            if attempts.count > 1 or not error.was_sent:
                await asyncio.sleep(min(attempts.pause_seconds, max(attempts.give_up_at - now, 0)))
                attempts.pause_seconds = min(attempts.pause_seconds * 2, PAUSE_SECONDS_MAX)
            return
        if attempts.may_have_happened and is_changing:
            text = f"{self._shown_url} did not answer ({error}). The call may have taken effect, or not"
            raise CallFailed(text, "unknown_outcome") from error
        raise NotTried(f"{self._shown_url} cannot be reached: {error}") from error

    async def _reply(self, answer: Answer, message: ThriftMessage, session: Session) -> RelayedReply | None:
        """Raises UpstreamError while nothing of the reply has been handed on, CallFailed."""
        if message.is_oneway:
            await answer.whole(ERROR_TEXT_BYTES_MAX)
            return None
        must_be_whole = self._encoding.needs_whole or (session.needs_length and answer.length is None)
        if must_be_whole and await answer.whole(self._reply_bytes_max) is None:
            raise CallFailed(f"the reply is over the limit of {self._reply_bytes_max} bytes", "too_large")
        if answer.body is not None:
            body, outcome = await self._encoding.reply(message, answer.body, answer.content_type)
            if self._held is not None and outcome == "ok" and self._held.wants(message, len(body)):
                self._held.keep(message, body, answer.tag)
            return RelayedReply(body, outcome=outcome, request_id=answer.request_id, login_answer=answer.login_answer)
        try:
            outcome = self._encoding.outcome(message, answer.beginning(), answer.content_type)
        except CallFailed:
            answer.abandon()
            raise
        chunks = _passed_on(answer)
        if self._held is not None and outcome == "ok" and self._held.wants(message, answer.length):
            chunks = self._held.kept(chunks, message, answer.tag)
        return RelayedReply(None, chunks, answer.length, outcome, answer.request_id)

    async def _problem(self, answer: Answer) -> str:
        """The text of an answer that is not a reply, in one line."""
        body = await answer.whole(ERROR_TEXT_BYTES_MAX) or b""
        said = self._encoding.problem(body)
        if said is None:
            said = "" if body.lstrip()[:1] == b"<" else body.decode("utf-8", "replace").strip()[:SHOWN_CHARACTERS_MAX]
        return f"HTTP {answer.status}{': ' if said else ''}{said}"

    def _refusal(self, status: int, text: str, credentials: Credentials | None) -> CallFailed:
        if status in (401, 403, 429):
            who = f"user {credentials.user}" if credentials else self._own_login
            return CallFailed(f"{self._shown_url} does not accept {who}: {text}", "unauthorized")
        return CallFailed(f"{self._shown_url} answers {text}", f"http_{status}")

    @property
    def _shown_url(self) -> str:
        """Without what may be secret in it."""
        return f"{self._url.scheme}://{self._host}{self._url.path}"

    def _make_head(self, credentials: Credentials | None, acts_for: str, bearer: str | None) -> bytes:
        """Request line and the headers that are the same for every call of one user."""
        target = self._url.path or "/"
        query = "&".join(part for part in (self._url.query, f"doAs={quote(acts_for, '')}" if acts_for else "") if part)
        target += f"?{query}" if query else ""
        lines = [
            f"POST {target} HTTP/1.1",
            f"host: {self._host}",
            f"content-type: {self._encoding.content_type}",
            "user-agent: hms-gateway-bridge",
        ]
        if credentials is not None:
            token = b64encode(f"{credentials.user}:{credentials.password}".encode()).decode()
            lines.append(f"authorization: Basic {token}")
        elif bearer is not None:
            lines.append(f"authorization: Bearer {bearer}")
        return ("\r\n".join(lines) + "\r\n").encode()


def _own_login(options: RelayOptions) -> str:
    """The bridge's login for clients without a password, for messages."""
    if options.token is not None:
        return "the bridge's token"
    if options.negotiates:
        return "the bridge's Kerberos ticket"
    return "the bridge's certificate" if options.certificate is not None else "a bridge without a password"


async def _passed_on(answer: Answer) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk
    except UpstreamError as error:
        raise ReplyBroken(str(error)) from error
