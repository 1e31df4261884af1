"""The body of a POST: the client's message as it came, or the same in TJSON (clients §13); and the outcome of a reply.

Binary does not distinguish text from bytes, so TJSON needs the IDL. Maps with lists as keys go out in the form that
Apache's own encoder gives them (clients A.5): the far side is a Java server that reads only this one.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from hms_gateway.bridge.thrift.messages import (
    CallFailed,
    Head,
    ThriftMessage,
    application_exception,
    codec_of,
    enclosed,
    read_head,
)
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import METHODS, SkewedInfo, Struct
from hms_gateway.rpc.wire import (
    ApplicationErrorType,
    Codecs,
    Message,
    MessageType,
    ProtocolError,
    TApplicationException,
)

_STRUCT = 12
_REPLIES = (MessageType.REPLY, MessageType.EXCEPTION)


def reply_outcome(method: str, beginning: bytes, *, is_compact: bool) -> str:
    """`ok`, the class of the declared exception, or `exception` for an application exception.

    `beginning` is a reply in strict binary or compact, or enough of it. Raises ValueError when it is neither.
    """
    head = _head(beginning, is_compact)
    if head.type is MessageType.EXCEPTION:
        return "exception"
    try:
        return _outcome(method, *_first_field(beginning, head.size, is_compact=is_compact))
    except IndexError:
        raise ValueError("a reply of too few bytes") from None


def payload_begin(reply: bytes, *, is_compact: bool) -> int:
    """The position of the struct in a reply, in strict binary or compact."""
    return _head(reply, is_compact).size


def _outcome(method: str, type_code: int, number: int) -> str:
    """The result struct has the value in field 0, a declared exception in another."""
    return _declared(method).get(number, "ok") if type_code == _STRUCT and number else "ok"


@cache
def _declared(method: str) -> dict[int, str]:
    known = METHODS.get(method)
    throws = () if known is None else known.definition.throws
    return {field.id: field.type.name for field in throws if isinstance(field.type, StructType)}


def _head(reply: bytes, is_compact: bool) -> Head:
    """Raises ValueError when it is not a reply in this protocol, or not all of the header is there."""
    try:
        head = read_head(reply, _REPLIES)
    except ProtocolError as error:
        raise ValueError(error.message) from None
    if head is None or (head.protocol == "compact") != is_compact:
        raise ValueError("not a Thrift reply")
    return head


def _first_field(reply: bytes, position: int, *, is_compact: bool) -> tuple[int, int]:
    """Type code and number; for compact, structs have the same code as in binary."""
    if is_compact:
        return reply[position] & 0x0F, reply[position] >> 4
    if reply[position] == 0:
        return 0, 0
    return reply[position], reply[position + 1] << 8 | reply[position + 2]


# Larger messages are transcoded in a thread: no other call waits for them.
IN_LOOP_BYTES_MAX = 64 * 1024
SHOWN_CHARACTERS_MAX = 200

_EMPTY_LOCATIONS = b'"3":{"map":["lst","str",0,{}]}'


class Unchanged:
    """The client's own bytes, for our gateway, which reads every encoding."""

    content_type = "application/x-thrift"
    # True if a reply can be handed on only when all of it is there.
    needs_whole = False

    async def request(self, message: ThriftMessage) -> bytes:
        """The body to post. Raises CallFailed when the message cannot be encoded."""
        return message.body

    async def reply(self, message: ThriftMessage, body: bytes, content_type: str) -> tuple[bytes, str]:
        """The reply as the client reads it, and the outcome. Raises CallFailed when `body` is not a reply."""
        return body, self.outcome(message, body, content_type)

    def outcome(self, message: ThriftMessage, beginning: bytes, content_type: str) -> str:
        """The outcome of a long reply, by its first bytes. Raises CallFailed when it is none."""
        try:
            return reply_outcome(message.name, beginning, is_compact=message.protocol == "compact")
        except ValueError:
            raise CallFailed(_not_thrift(beginning, content_type), "not_thrift") from None

    def problem(self, body: bytes) -> str | None:
        """The text of an application exception in the body of an answer that is not 200; None when there is none."""
        return None


class Tjson(Unchanged):
    """Transcodes by the IDL. A method the IDL does not know goes out without arguments: the far side refuses it."""

    content_type = "application/vnd.apache.thrift.json"
    needs_whole = True

    def __init__(self, codecs: Codecs) -> None:
        self._codecs = codecs

    async def request(self, message: ThriftMessage) -> bytes:
        if len(message.body) <= IN_LOOP_BYTES_MAX:
            return self._encode(message)
        return await asyncio.get_running_loop().run_in_executor(None, self._encode, message)

    async def reply(self, message: ThriftMessage, body: bytes, content_type: str) -> tuple[bytes, str]:
        if len(body) <= IN_LOOP_BYTES_MAX:
            return self._decode(message, body, content_type)
        return await asyncio.get_running_loop().run_in_executor(None, self._decode, message, body, content_type)

    def problem(self, body: bytes) -> str | None:
        try:
            reply = self._codecs.tjson.read_message(body)
            if reply.type is MessageType.EXCEPTION:
                return str(self._codecs.tjson.decode(TApplicationException, reply.payload).message or "")
        except ProtocolError:
            pass
        return None

    def _encode(self, message: ThriftMessage) -> bytes:
        method = METHODS.get(message.name)
        if method is None:
            payload = b"{}"
        else:
            try:
                codec = codec_of(self._codecs, message.protocol)
                arguments = codec.decode(method.arguments, message.body[message.payload_begin :])
                payload = with_locations(arguments, _whole(self._codecs.tjson.encode(arguments)))
            except ProtocolError as error:
                raise CallFailed(error.message, error.type.name) from error
        return enclosed(self._codecs.tjson, message.name, message.type, message.seqid, payload)

    def _decode(self, message: ThriftMessage, body: bytes, content_type: str) -> tuple[bytes, str]:
        try:
            reply = self._codecs.tjson.read_message(body)
        except ProtocolError as error:
            raise CallFailed(_not_thrift(body, content_type), "not_thrift") from error
        try:
            return self._reencoded(message, reply)
        except ProtocolError as error:
            raise CallFailed(f"the reply to {message.name} cannot be read: {error.message}", "unreadable") from error

    def _reencoded(self, message: ThriftMessage, reply: Message) -> tuple[bytes, str]:
        codec, tjson = codec_of(self._codecs, message.protocol), self._codecs.tjson
        method = METHODS.get(message.name)
        if reply.type is MessageType.EXCEPTION or method is None:
            said = tjson.decode(TApplicationException, reply.payload)
            text, number = said.message or "", said.type or 0
            known = number in ApplicationErrorType.__members__.values()
            type = ApplicationErrorType(number) if known else ApplicationErrorType.UNKNOWN
            return application_exception(codec, message.name, message.seqid, text, type), "exception"
        # Some servers answer with a seqid of their own; the client needs its own back.
        payload = codec.encode(tjson.decode(method.result, reply.payload))
        body = enclosed(codec, message.name, MessageType.REPLY, message.seqid, payload)
        return body, reply_outcome(message.name, body, is_compact=message.protocol == "compact")


def with_locations(value: Struct, text: bytes) -> bytes:
    """`text`, the TJSON of `value`, with the locations of skewed values that our writer leaves out for browsers' sake.

    Quotes inside strings are escaped, so the empty map is found nowhere else, and in the order of the structs.
    """
    maps = [skewed.skewedColValueLocationMaps for skewed in _skewed(value)]
    if not any(maps):
        return text
    parts = text.split(_EMPTY_LOCATIONS)
    assert len(parts) == len(maps) + 1
    return b"".join(part + written for part, written in zip(parts, [*map(_locations, maps), b""], strict=True))


def _locations(locations: dict[tuple[str, ...], str]) -> bytes:
    entries = [
        f'["str",{len(key)}{"".join("," + _quoted(text) for text in key)}]:{_quoted(location)}'
        for key, location in locations.items()
    ]
    return f'"3":{{"map":["lst","str",{len(entries)},{{{",".join(entries)}}}]}}'.encode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _skewed(value: Any) -> Iterator[Any]:
    """Every SkewedInfo with a map, in the order of writing."""
    if isinstance(value, SkewedInfo):
        if value.skewedColValueLocationMaps is not None:
            yield value
    elif isinstance(value, Struct):
        for field in sorted(value.definition.fields, key=lambda field: field.id):
            yield from _skewed(getattr(value, field.name))
    elif isinstance(value, list):
        for element in value:
            yield from _skewed(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from _skewed(element)


def _whole(payload: bytes | Iterator[bytes]) -> bytes:
    return payload if isinstance(payload, bytes) else b"".join(payload)


def _not_thrift(body: bytes, content_type: str) -> str:
    if not body:
        return "the far side answered nothing"
    shown = body[:SHOWN_CHARACTERS_MAX].decode("utf-8", "replace")
    return f"the far side answered with what is not a Thrift message but {content_type or 'something'}: {shown!r}"
