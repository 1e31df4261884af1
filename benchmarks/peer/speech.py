"""How a side is spoken to: requests made beforehand, and where a reply ends without decoding it.

Encoding and decoding would cost the load generator more than some servers need for the whole call, so neither happens
while time is taken.
"""

import re
import struct
from collections.abc import Callable
from typing import Any, Final, Protocol

from hms_gateway.bridge.thrift.struct_scanner import BinaryScanner
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import MessageType, TApplicationException, make_codecs
from hms_gateway.runtime.limits import Limits

LIMITS: Final = Limits(
    body_bytes_max=1 << 32, container_elements_max=10_000_000, string_bytes_max=1 << 31, nesting_depth_max=64
)
CODECS: Final = make_codecs(LIMITS)
HEAD_BYTES: Final = 512
# Stands for an id that only an earlier reply tells.
ID: Final = 1_234_567_890_123_456_789

FillId = Callable[[int], bytes]


class CallFailed(Exception):
    """The reply is an exception or none at all; the text says which."""


class Reply(Protocol):
    """One reply while it arrives. `head` is its first bytes, without HTTP headers."""

    head: bytes
    size: int

    def feed(self, data: bytes) -> bool:
        """Whether the reply is complete now. Raises CallFailed when it is not the result of a call."""
        ...

    def whole(self) -> bytes:
        """The Thrift message. Only of a reply made with `keeps`."""
        ...


class Speech(Protocol):
    """Thrift in one protocol over one transport."""

    name: str

    def request(self, method: str, *arguments: Any) -> bytes: ...

    def request_with_id(self, method: str, *arguments: Any) -> FillId:
        """A request whose arguments contain `ID`, as a function of what belongs there."""
        ...

    def reply(self, size: int | None = None, *, keeps: bool = False) -> Reply:
        """`size` is what such a reply has been seen to have; where the transport tells the size it is not used."""
        ...

    def id_in(self, head: bytes) -> int:
        """The id that the reply to `lock` or to `open_txns` of one transaction tells."""
        ...

    def count_in(self, head: bytes) -> int:
        """How many values the result lists, 1 when it is no list. Decoding 100,000 partitions would take minutes."""
        ...

    def value(self, method: str, message: bytes) -> Any: ...


class Binary:
    """Unframed TBinaryProtocol, as Hive's own clients speak it over TCP."""

    name = "binary"

    def request(self, method: str, *arguments: Any) -> bytes:
        return _message(CODECS.binary, method, arguments)

    def request_with_id(self, method: str, *arguments: Any) -> FillId:
        before, after = self.request(method, *arguments).split(struct.pack(">q", ID))
        return lambda number: before + struct.pack(">q", number) + after

    def reply(self, size: int | None = None, *, keeps: bool = False) -> "BinaryReply":
        return BinaryReply(size, keeps)

    def id_in(self, head: bytes) -> int:
        """Both replies are a struct that begins with the id, in `open_txns` as the only one of a list."""
        position = _struct_begin(head) + 3
        is_list = head[position] == 15
        return int(struct.unpack_from(">q", head, position + (8 if is_list else 3))[0])

    def count_in(self, head: bytes) -> int:
        begin = _struct_begin(head)
        return int.from_bytes(head[begin + 4 : begin + 8], "big") if head[begin] == 15 else 1

    def value(self, method: str, message: bytes) -> Any:
        return _value(CODECS.binary, method, message)


class Tjson:
    """TJSON in an HTTP POST with a password."""

    name = "tjson"
    _id = re.compile(rb'"i64"(?::|,1,)(\d+)')
    _list = re.compile(rb'"0":\{"lst":\["\w+",(\d+)')

    def __init__(self, path: str, authorization: str) -> None:
        self._head = (
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {authorization}\r\n"
            "content-type: application/x-thrift\r\ncontent-length: "
        ).encode()

    def request(self, method: str, *arguments: Any) -> bytes:
        return self._post(_message(CODECS.tjson, method, arguments))

    def request_with_id(self, method: str, *arguments: Any) -> FillId:
        before, after = _message(CODECS.tjson, method, arguments).split(b"%d" % ID)
        return lambda number: self._post(b"%b%d%b" % (before, number, after))

    def reply(self, size: int | None = None, *, keeps: bool = False) -> "HttpReply":
        return HttpReply(keeps)

    def id_in(self, head: bytes) -> int:
        found = self._id.search(head)
        assert found is not None, head
        return int(found[1])

    def count_in(self, head: bytes) -> int:
        found = self._list.search(head)
        return 1 if found is None else int(found[1])

    def value(self, method: str, message: bytes) -> Any:
        return _value(CODECS.tjson, method, message)

    def _post(self, body: bytes) -> bytes:
        return b"%b%d\r\n\r\n%b" % (self._head, len(body), body)


class BinaryReply:
    """Counts bytes where the size is known, else looks for the end of the struct."""

    def __init__(self, size: int | None, keeps: bool) -> None:
        self.head = b""
        self.size = 0
        self._expected = size
        self._buffer = bytearray() if keeps or size is None else None
        self._scanner: BinaryScanner | None = None

    def feed(self, data: bytes) -> bool:
        self.size += len(data)
        if self._buffer is not None:
            self._buffer += data
        if len(self.head) < HEAD_BYTES:
            self.head += data[:HEAD_BYTES]
            if not self._is_good():
                return False
        if self._expected is not None:
            if self.size > self._expected:
                raise CallFailed(f"{self.size} bytes, not {self._expected}: {self.head[:200]!r}")
            return self.size == self._expected
        assert self._buffer is not None
        if self._scanner is None:
            self._scanner = BinaryScanner(_struct_begin(self.head), LIMITS)
        return self._scanner.scan(self._buffer)

    def whole(self) -> bytes:
        return bytes(self._buffer or b"")

    def _is_good(self) -> bool:
        """False when there is not enough to say."""
        begin = _struct_begin(self.head) if len(self.head) > 8 else HEAD_BYTES
        is_void = self.head[begin : begin + 1] == b"\0"
        if len(self.head) < begin + 3 and not is_void:
            return False
        is_result = is_void or self.head[begin + 1 : begin + 3] == b"\0\0"
        if self.head[:4] != b"\x80\x01\x00\x02" or not is_result:
            raise CallFailed(repr(self.head))
        return True


class HttpReply:
    """An answer with a length or in chunks."""

    _result = re.compile(rb'\[1,"\w+",2,-?\d+,\{(?:"0"|\})')

    def __init__(self, keeps: bool) -> None:
        self.head = b""
        self.size = 0
        self._keeps = keeps
        self._parts: list[bytes] = []
        self._begin: bytes | None = b""  # headers and sizes of chunks that have not all arrived
        self._missing = -1  # bytes of the body, or of a chunk and its line end; -1 before the headers
        self._is_chunked = False

    def feed(self, data: bytes) -> bool:
        self.size += len(data)
        if self._missing < 0:
            self._begin = (self._begin or b"") + data
            at = self._begin.find(b"\r\n\r\n")
            if at < 0:
                return False
            self._read_headers(self._begin[:at].lower())
            data, self._begin = self._begin[at + 4 :], b""
        if self._is_chunked:
            return self._feed_chunks(data)
        self._body(data)
        self._missing -= len(data)
        return self._missing == 0

    def whole(self) -> bytes:
        return b"".join(self._parts)

    def _read_headers(self, headers: bytes) -> None:
        if not headers.startswith(b"http/1.1 200"):
            raise CallFailed(repr(headers))
        at = headers.find(b"content-length: ")
        self._is_chunked = at < 0
        self._missing = 0 if at < 0 else int(headers[at + 16 :].partition(b"\r\n")[0])

    def _feed_chunks(self, data: bytes) -> bool:
        while data:
            if self._missing:
                self._body(data[: max(self._missing - 2, 0)])
                taken = min(self._missing, len(data))
                self._missing -= taken
                data = data[taken:]
                continue
            line = (self._begin or b"") + data
            at = line.find(b"\r\n")
            if at < 0:
                self._begin = line
                return False
            size = int(line[:at].partition(b";")[0], 16)
            data, self._begin = line[at + 2 :], b""
            if size == 0:
                return True  # the server sends the line end behind the last chunk along with it
            self._missing = size + 2
        return False

    def _body(self, data: bytes) -> None:
        if len(self.head) < HEAD_BYTES:
            self.head += data[:HEAD_BYTES]
            if len(self.head) > 64 and not self._result.match(self.head):
                raise CallFailed(repr(self.head))
        if self._keeps:
            self._parts.append(data)


def _message(codec: Any, method: str, arguments: tuple[Any, ...]) -> bytes:
    before, after = codec.envelope(method, MessageType.CALL, 1)
    payload = codec.encode(METHODS[method].arguments(*arguments))
    return bytes(before + (payload if isinstance(payload, bytes) else b"".join(payload)) + after)


def _value(codec: Any, method: str, message: bytes) -> Any:
    read = codec.read_message(message)
    if read.type is MessageType.EXCEPTION:
        raise CallFailed(f"{method}: {codec.decode(TApplicationException, read.payload).message}")
    result = codec.decode(METHODS[method].result, read.payload)
    for field in METHODS[method].definition.throws:
        if getattr(result, field.name) is not None:
            raise CallFailed(f"{method}: {getattr(result, field.name)!r}")
    return getattr(result, "success", None)


def _struct_begin(head: bytes) -> int:
    """Behind the version, the name and the sequence id."""
    return 8 + int.from_bytes(head[4:8], "big") + 4
