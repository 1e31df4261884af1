"""The contract between the TCP side and the relays that answer; calls that need no answer of the metastore.

Calls about the connection alone are answered here (clients §13). The far side is asked for its name at start-up, to log
problems before any client connects, and for the delegation token that a client has shown.
"""

from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import BridgeError, ThriftMessage, application_exception, codec_of, enclosed
from hms_gateway.bridge.thrift.sasl import LoginRefused
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import ApplicationErrorType, Codecs, MessageType, ProtocolError
from hms_gateway.runtime.call_record import Objects
from hms_gateway.runtime.logins.delegation_token import Proof


class RelayedReply(msgspec.Struct):
    """The answer to one call as a whole message: `body`, or `chunks` of a long one with its `length` if known.

    `outcome` and `request_id` are for the log; `request_id` is the far side's. `cached` replies came
    out of this process's cache. `about` are the objects of the call, or what the kept reply depends on. `groups` are
    the caller's, and `partitions` how many the call is paid for by; both are known where the processor is.
    `login_answer` is the far side's half of a digest.
    """

    body: bytes | None = None
    chunks: AsyncGenerator[bytes, None] | None = None
    length: int | None = None
    outcome: str = "ok"
    request_id: str = ""
    cached: bool = False
    about: Objects = ()
    groups: frozenset[str] = frozenset()
    partitions: int = 0
    login_answer: str = ""


class Relay(Protocol):
    """Answers messages. One serves all connections; each connection waits for its reply before the next call."""

    async def call(self, message: ThriftMessage, session: Session) -> RelayedReply | None:
        """The reply to `message`, None when nothing is to be answered (oneway).

        With `session.needs_length` a reply in chunks has a length. Chunks are iterated to their end or closed
        (`aclose`); iterating raises ReplyBroken. Raises NotTried, CallFailed.
        """

    async def close(self) -> None:
        """Give back connections and threads; no call is in flight any more."""


METHOD = "getName"
_NO_ARGUMENTS = b"\0"


async def find_problem(relay: Relay, codecs: Codecs) -> BridgeError | None:
    """The error that keeps the far side from answering a call; None for any answer."""
    try:
        await _ask(relay, codecs, Session())
    except BridgeError as error:
        return error
    return None


async def prove(relay: Relay, codecs: Codecs, proof: Proof, owner: str, share_address: str | None) -> str:
    """The far side's half of the digest, for a client that shows a token of the owner's. Raises LoginRefused."""
    session = Session(proven_user=owner, proof=proof, share_address=share_address)
    try:
        reply = await _ask(relay, codecs, session)
    except BridgeError as error:
        raise LoginRefused(str(error)) from error
    if reply is None or not reply.login_answer:
        raise LoginRefused(
            "the delegation token is not accepted: the far side of this bridge does not know such tokens"
        )
    return reply.login_answer


async def _ask(relay: Relay, codecs: Codecs, session: Session) -> RelayedReply | None:
    """Raises BridgeError."""
    before, after = codecs.binary.envelope(METHOD, MessageType.CALL, 0)
    message = ThriftMessage("binary", METHOD, MessageType.CALL, 0, before + _NO_ARGUMENTS + after, len(before))
    reply = await relay.call(message, session)
    if reply is not None and reply.chunks is not None:
        await reply.chunks.aclose()
    return reply


LOCAL_METHODS = frozenset({"set_ugi", "shutdown"})


def answer_locally(
    codecs: Codecs, message: ThriftMessage, session: Session, *, names_are_logins: bool = True
) -> RelayedReply | None:
    """The reply to one of LOCAL_METHODS.

    `set_ugi` gives back the groups it was given (semantics §3) and the session remembers who it named. Where the name
    is the login (`names_are_logins` in networks, without another one), a second one is refused, as Hive's
    TUGIBasedProcessor does. `shutdown` is
    how Hive's client says goodbye: never answered, never obeyed (clients §0 rule 9).
    """
    if message.name == "shutdown" or message.is_oneway:
        return None
    codec = codec_of(codecs, message.protocol)
    method = METHODS["set_ugi"]
    try:
        arguments = codec.decode(method.arguments, message.body[message.payload_begin :])
    except ProtocolError as error:
        body = application_exception(codec, message.name, message.seqid, error.message, error.type)
        return RelayedReply(body, outcome=error.type.name)
    user = getattr(arguments, "user_name", None) or ""
    has_login = session.credentials is not None or session.proven_user is not None
    if names_are_logins and session.is_in_network and not has_login and session.user not in ("", user):
        text = "This connection has a user already; open another one"
        kind = ApplicationErrorType.INTERNAL_ERROR
        return RelayedReply(application_exception(codec, message.name, message.seqid, text, kind), outcome=kind.name)
    session.user = user
    groups = getattr(arguments, "group_names", None) or []
    session.groups = tuple(groups)
    payload = codec.encode(method.result(success=groups))
    return RelayedReply(enclosed(codec, message.name, MessageType.REPLY, message.seqid, payload))
