"""Replies the bridge makes itself when a call failed, in words and shapes that make no client repeat it.

Hive's client repeats a call when a MetaException's text matches the pattern below, and on most types of application
exceptions (clients §4.3).
"""

import re

from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import METHODS, MetaException
from hms_gateway.rpc.wire import ApplicationErrorType, Codec, Codecs, MessageType, TApplicationException

_REPEATED = re.compile(r"(JDO\w*|TProtocol|TTransport)Exception")
# Among the few types on which no generation of Hive's client repeats the call, the one closest to the truth.
NOT_REPEATED_TYPE = ApplicationErrorType.INVALID_PROTOCOL


def failure_reply(codecs: Codecs, message: ThriftMessage, text: str) -> bytes:
    """`text` as the method's MetaException where the IDL declares one, else as an application exception."""
    text = _REPEATED.sub(r"\1Error", text)
    codec = codec_of(codecs, message.protocol)
    slot = _meta_exception_slot(message.name)
    if slot is None:
        return application_exception(codec, message.name, message.seqid, text, NOT_REPEATED_TYPE)
    before, after = codec.envelope(message.name, MessageType.REPLY, message.seqid)
    payload = codec.encode(METHODS[message.name].result(**{slot: MetaException(text)}))
    assert isinstance(payload, bytes)
    return before + payload + after


def application_exception(codec: Codec, name: str, seqid: int, text: str, type: ApplicationErrorType) -> bytes:
    """An EXCEPTION message."""
    before, after = codec.envelope(name, MessageType.EXCEPTION, seqid)
    payload = codec.encode(TApplicationException(text, int(type)))
    assert isinstance(payload, bytes)
    return before + payload + after


def codec_of(codecs: Codecs, protocol: str) -> Codec:
    """The codec a message came in."""
    return codecs.compact if protocol == "compact" else codecs.binary


def _meta_exception_slot(name: str) -> str | None:
    method = METHODS.get(name)
    for field in () if method is None else method.definition.throws:
        if field.type == StructType("MetaException"):
            return field.name
    return None
