"""How a message gets its reply: the contract between the TCP side and whatever answers."""

from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.session import Session
from hms_gateway.runtime.call_record import Objects


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
