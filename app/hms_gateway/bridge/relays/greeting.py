"""Asks the far side for its name: at start-up, to log what is wrong before any client connects, and for what a client
with a delegation token has shown.
"""

from hms_gateway.bridge.relays.relay import Relay, RelayedReply
from hms_gateway.bridge.thrift.errors import BridgeError
from hms_gateway.bridge.thrift.exchanges import LoginRefused
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.session import Session
from hms_gateway.rpc.wire import Codecs, MessageType
from hms_gateway.runtime.logins.delegation_token import Proof

METHOD = "getName"
_NO_ARGUMENTS = b"\0"


async def find_problem(relay: Relay, codecs: Codecs) -> BridgeError | None:
    """What keeps the far side from answering a call; None when it answers, whatever that is."""
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
