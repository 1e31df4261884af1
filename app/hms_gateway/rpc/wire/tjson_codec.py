"""TJSON, the JSON encoding of Thrift messages (protocol §3.1.5, clients appendix A).

Model
    A message is `[1,"<name>",<type>,<seqid>,<struct>]`. A struct is `{"<field id>":{"<tag>":<value>},...}`, a list or
    set `["<tag>",<count>,<value>,...]`, a map `["<key tag>","<value tag>",<count>,{"<key>":<value>,...}]`. Booleans
    are 0 and 1, binary is base64, an enum is its i32. `read_message` looks at the head only and leaves the struct
    encoded, so that a known request can be answered without reading it.

Reading
    There are two readers. The fast one (`tjson_shapes`) fills classes compiled from the IDL with a JSON parser and
    covers exactly the plain form that writers produce. When the text has control characters, it gets a second
    chance with these escaped. Whatever it does not cover goes, from the start, to the scanner
    (`tjson_scan`), which knows all that peers really send and words every error. The fast path never decides that
    something is wrong, and it accepts nothing that the scanner would read as something else.

Rules of reading
    Unknown field: skipped. Known field with another type's tag: skipped. Null: unset. Required field missing: error.
    Counts must be exact, integers in range, strings valid Unicode. A key that comes twice: the last one wins. White
    space, a byte order mark, raw control characters and a missing last `]` are forgiven. Going over a limit is
    LimitExceeded, everything else that cannot be read ProtocolError, naming the field.

Limits
    The fast path's nesting depth is known when it is compiled, because fields through which a struct may contain itself
    are not in it. A body shorter than a limit cannot go over it; a longer one is read by the fast path only if it
    announces no container over the limit, and by the scanner if it is longer than a string may be.

Rules of writing (clients A.4)
    Compact, raw UTF-8, only `"`, `\\` and U+0000 to U+001F escaped; ascending field ids; unset fields left out; doubles
    in the shortest form, NaN and the infinities as quoted names; base64 padded. The text is acceptable to every Apache
    decoder. `Encoded` values are copied in, an `EncodedList` makes the result an iterator of chunks.

Known gaps
    Maps with lists as keys are written empty (clients A.5): SkewedInfo's locations are lost to TJSON readers. Integers
    are not checked for their range when written. Unknown fields are not kept. A double `-0` is read as 0. A body over
    `string_bytes_max` (100 MiB) is read at the scanner's speed, a thirtieth of the usual.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hms_gateway.rpc.idl import Type
from hms_gateway.rpc.wire.message import (
    ApplicationErrorType,
    Chunks,
    LimitExceeded,
    Message,
    MessageType,
    ProtocolError,
    close_all,
)
from hms_gateway.rpc.wire.tjson_scan import scan_struct, scan_value
from hms_gateway.rpc.wire.tjson_shapes import (
    STREAM_MARK,
    Fields,
    Mismatch,
    Shape,
    narrow_shape,
    shape_of_struct,
    shape_of_type,
)
from hms_gateway.runtime.limits import Limits

# What is made of a brace, on the average of structs with a few fields, and what more of an empty struct.
BRACE_BYTES, EMPTY_STRUCT_BYTES = 100, 180
NOT_PLAIN = (msgspec.MsgspecError, Mismatch, ValueError, TypeError, AttributeError, RecursionError)

_SPACE = b" \t\r\n"
_HEAD = re.compile(rb'\[1,"([^"\\\x00-\x1f\x7f-\xff]*)",([1-4]),(-?[0-9]{1,9}),')
# Making a member of an enumeration out of a number takes a fifth of reading a message.
_TYPES = {b"%d" % type: type for type in MessageType}
# The same with all that is forgiven, in steps: what was read before the fault names the message in the answer.
_HEAD_STEPS = (
    re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*"?(-?[0-9]{1,10}(?:\.0)?)"?[ \t\r\n]*,'),
    re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*+)"[ \t\r\n]*,', re.DOTALL),
    re.compile(rb"[ \t\r\n]*(-?[0-9]{1,20})[ \t\r\n]*,"),
    re.compile(rb"[ \t\r\n]*(-?[0-9]{1,20})[ \t\r\n]*,[ \t\r\n]*"),
)
# Raw control characters, which Python's and Node's clients send: nowhere allowed, so escaping them is safe, except
# where a backslash precedes one. White space is left alone, it may be between values.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_ESCAPED_CONTROL = re.compile(rb"\\[\x00-\x1f]")
_LARGE_COUNT = r'",[ \t\r\n]*[0-9]{%d}'


class TJsonCodec:
    """The codec `tjson`."""

    name = "tjson"
    content_type = "application/vnd.apache.thrift.json"

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        digits = len(str(limits.container_elements_max))
        self._large_count = re.compile((_LARGE_COUNT % digits).encode())

    def read_message(self, body: bytes) -> Message:
        """The message in `body`, its struct still encoded and not looked at.

        Raises ProtocolError, with the message's name and seqid as far as they are readable.
        """
        if len(body) > self._limits.body_bytes_max:
            raise LimitExceeded("body_bytes_max", self._limits.body_bytes_max)
        head = _HEAD.match(body)
        if head is None:
            name, type, seqid, start = _read_head(body)
        else:
            name, type, seqid = head[1].decode("ascii"), _TYPES[head[2]], int(head[3])
            start = head.end()
        payload = _without_tail(body, start)
        if not (payload.startswith(b"{") and payload.endswith(b"}")):
            raise ProtocolError("message: the arguments are not a complete struct", name=name, seqid=seqid)
        return Message(name, type, seqid, payload)

    def decode(self, struct_class: Any, payload: bytes) -> Any:
        """`payload` as an instance of `struct_class`; raises ProtocolError or LimitExceeded."""
        shape = shape_of_struct(struct_class)
        if self._is_within_limits(shape, payload):
            try:
                return shape.read(shape.parse(payload))
            except NOT_PLAIN:
                pass
            if _CONTROL.search(payload) and not _ESCAPED_CONTROL.search(payload):
                try:
                    return shape.read(shape.parse(_CONTROL.sub(_escape, payload)))
                except NOT_PLAIN:
                    pass
        return scan_struct(struct_class, payload, self._limits)

    def decode_narrow(self, struct_class: Any, payload: bytes, fields: Fields) -> Any:
        """As `decode`; of the structs that `fields` names only those fields are sure to be read."""
        shape = narrow_shape(struct_class, fields)
        if self._is_within_limits(shape, payload):
            try:
                return shape.read(shape.parse(payload))
            except NOT_PLAIN:
                pass
        return self.decode(struct_class, payload)

    def decoded_bytes(self, struct_class: Any, payload: bytes, bytes_max: int) -> int:
        """As `Codec.decoded_bytes`; by the braces, of which a struct and each of its fields have one."""
        return payload.count(b"{") * BRACE_BYTES + payload.count(b"{}") * EMPTY_STRUCT_BYTES

    def encode(self, value: Any) -> bytes | Iterator[bytes]:
        """A struct, declared exception or `Encoded` as TJSON; an iterator of chunks if there is an EncodedList inside.

        Raises TypeError or ValueError for values that are not of the IDL's types.
        """
        if hasattr(value, "tjson"):
            text: bytes = value.tjson()
            return text
        streams: list[Any] = []
        try:
            text = _encoder.encode(shape_of_struct(type(value)).write(value, streams))
        except BaseException:
            close_all(streams)
            raise
        return Chunks(_chunks(text.split(STREAM_MARK), streams), streams) if streams else text

    def envelope(self, name: str, type: MessageType, seqid: int) -> tuple[bytes, bytes]:
        """The bytes before and after a message's struct."""
        return b"[1,%b,%d,%d," % (_encoder.encode(name), type, seqid), b"]"

    def _is_within_limits(self, shape: Shape, payload: bytes) -> bool:
        """Whether no string, container or nesting the fast path would accept can be over a limit."""
        limits = self._limits
        if shape.depth > limits.nesting_depth_max or len(payload) > limits.string_bytes_max:
            return False
        # An element and its comma are two bytes.
        return len(payload) < 2 * limits.container_elements_max or self._large_count.search(payload) is None


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\u00%02x" % match[0][0]


def _read_head(body: bytes) -> tuple[str, MessageType, int, int]:
    """Name, type and seqid of a message in any form, and where its struct begins."""
    name: str | None = None
    found: list[bytes] = []
    position = 0
    for part, pattern in zip(("version", "name", "type", "seqid"), _HEAD_STEPS, strict=True):
        match = pattern.match(body, position)
        if match is None:
            raise ProtocolError(
                f"message: no {part} and comma at byte {position}; it is [1, name, type, seqid, {{arguments}}]",
                name=name,
            )
        found.append(match[1])
        position = match.end()
        if part == "name":
            name = _text_of_name(match[1])
    version, _, type_number, seqid_text = found
    seqid = int(seqid_text)
    if not -(1 << 31) <= seqid < 1 << 31:
        raise ProtocolError(f"message: seqid {seqid} is out of the range of an i32", name=name)
    if version.removesuffix(b".0") != b"1":
        raise ProtocolError(f"message: version {version.decode()} is not 1", name=name, seqid=seqid)
    try:
        message_type = MessageType(int(type_number))
    except ValueError:
        text = f"message: {int(type_number)} is not a message type"
        raise ProtocolError(text, ApplicationErrorType.INVALID_MESSAGE_TYPE, name=name, seqid=seqid) from None
    assert name is not None
    return name, message_type, seqid, position


def _text_of_name(quoted: bytes) -> str:
    try:
        return quoted.decode() if b"\\" not in quoted else str(msgspec.json.decode(b'"%b"' % quoted, type=str))
    except ValueError:
        raise ProtocolError("message: the name is not valid Unicode") from None


def _without_tail(body: bytes, start: int) -> bytes:
    """The bytes from `start` on without the message's last `]`, which may be missing (clients A.2)."""
    end = len(body)
    if body[end - 1 :] != b"]":
        end = len(body.rstrip(_SPACE))
    if body[end - 1 : end] == b"]":
        end -= 1
    payload = body[start:end]
    return payload if payload.endswith(b"}") else payload.rstrip(_SPACE)


def _chunks(texts: list[bytes], streams: list[Any]) -> Iterator[bytes]:
    """The texts between the streamed lists, and the chunks of the lists."""
    yield texts[0]
    for stream, text in zip(streams, texts[1:], strict=True):
        separator = b""
        for chunk in stream.tjson_chunks():
            yield separator + chunk
            separator = b","
        yield text


_encoder = msgspec.json.Encoder()


# Bare IDL values as TJSON, for storage: `{"a":"b"}` of type map<string,string> is `["str","str",1,{"a":"b"}]`.


# What is stored passed the limits of a request once, or was written by us.
_STORED_LIMITS = Limits()


def encode_value(type: Type, value: Any) -> bytes:
    """`value` of an IDL type as TJSON, without the tag that a field would put before it."""
    return _encoder.encode(shape_of_type(type).write(value, []))


def decode_value(type: Type, text: bytes) -> Any:
    """The inverse of `encode_value`; takes all the forms a request may have. Raises ProtocolError."""
    shape = shape_of_type(type)
    try:
        return shape.read(shape.parse(text))
    except NOT_PLAIN:
        return scan_value(type, text, _STORED_LIMITS)
