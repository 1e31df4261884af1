"""The calls that concern the connection and not the metastore: answered without asking the gateway (clients §13)."""

from hms_gateway.bridge.relays.relay import RelayedReply
from hms_gateway.bridge.thrift.exception_replies import application_exception, codec_of
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.session import Session
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import Codecs, MessageType, ProtocolError

LOCAL_METHODS = frozenset({"set_ugi", "shutdown"})


def answer_locally(codecs: Codecs, message: ThriftMessage, session: Session) -> RelayedReply | None:
    """The reply to one of LOCAL_METHODS.

    `set_ugi` gives back the groups it was given (semantics §3) and the session remembers who it named. `shutdown` is
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
    session.user = getattr(arguments, "user_name", None) or ""
    groups = getattr(arguments, "group_names", None) or []
    session.groups = tuple(groups)
    before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
    payload = codec.encode(method.result(success=groups))
    assert isinstance(payload, bytes)
    return RelayedReply(before + payload + after)
