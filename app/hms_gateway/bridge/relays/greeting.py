"""Checks credentials, path and certificate at start-up and logs what is wrong, before any client connects."""

from hms_gateway.bridge.relays.relay import Relay
from hms_gateway.bridge.thrift.errors import BridgeError
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.session import Session
from hms_gateway.wire import Codecs, MessageType

METHOD = "getName"
_NO_ARGUMENTS = b"\0"


async def find_problem(relay: Relay, codecs: Codecs) -> str | None:
    """What keeps the far side from answering a call; None when it answers, whatever that is."""
    before, after = codecs.binary.envelope(METHOD, MessageType.CALL, 0)
    message = ThriftMessage("binary", METHOD, MessageType.CALL, 0, before + _NO_ARGUMENTS + after, len(before))
    try:
        reply = await relay.call(message, Session())
    except BridgeError as error:
        return str(error)
    if reply is not None and reply.chunks is not None:
        await reply.chunks.aclose()
    return None
