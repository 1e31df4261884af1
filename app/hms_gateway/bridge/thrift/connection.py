"""One TCP connection of a Thrift client, without I/O: bytes in, messages out, replies in the client's framing.

The first bytes show what the client speaks (clients §13): unframed binary (strict or old) or compact, the same in
frames with their length in front, or SASL around unframed messages.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

import msgspec

from hms_gateway.bridge.thrift.messages import Head, ThriftMessage, Unspeakable, read_head
from hms_gateway.bridge.thrift.sasl import Asked, Credentials, Mechanism, SaslNegotiation, SaslPolicy, refuse
from hms_gateway.bridge.thrift.struct_scanner import StructScanner
from hms_gateway.rpc.wire import LimitExceeded, ProtocolError
from hms_gateway.runtime.addresses import is_loopback, share_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import Proof
from hms_gateway.runtime.shares import Bound

_HTTP_VERBS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC")
_MECHANISM_BYTES_MAX = 255
_FRAME_BYTES = 4
# So many bytes distinguish a frame from an old header and both from garbage; every message has more.
_TELLING_BYTES = 6
# More than any header of a message.
_HEAD_BYTES_MAX = 2048
_NEEDS_TLS = "this port needs TLS, the client sent plain bytes; switch TLS on in the client (hive.metastore.use.SSL)"
_HAS_TO_LOG_IN = (
    "this port requires SASL, the client sent a bare message (sasl is require, or it is allow and the client "
    "runs under another account or outside of thrift_networks)"
)


class ThriftConnection:
    """Give it what arrives, ask it for the next message until there is none.

    `is_framed`, `credentials`, `proven_user` (of a Kerberos ticket or delegation token) and `proof` (of a token) are
    known once the first message is there. Where there is none, a login may be `asked` about: then `answer_login` has to
    be called before anything else. A
    ProtocolError carries name and seqid when the message can still be answered; after it, or Unspeakable, the
    connection is of no use. `sasl` may be changed until the first message is asked for. With `needs_tls` the client
    came without TLS, and whatever it says is refused in its own protocol.
    """

    def __init__(
        self, limits: Limits, sasl: SaslPolicy = "off", mechanisms: Mapping[str, Mechanism] | None = None
    ) -> None:
        self._limits = limits
        self._mechanisms = mechanisms or {}
        self.sasl = sasl
        self.needs_tls = False
        self.share_address: str | None = None
        self._received = bytearray()  # as it came
        self._messages = self._received  # the same without SASL's frames, another buffer when there are any
        self._negotiation: SaslNegotiation | None = None
        self._is_known = False
        self._to_send = b""
        self._head: Head | None = None
        self._scanner: StructScanner | None = None
        self.protocol = "binary"  # of the message read last
        self.is_framed = False
        self.credentials: Credentials | None = None
        self.proven_user: str | None = None
        self.proof: Proof | None = None
        self.asked: Asked | None = None

    @property
    def is_between_messages(self) -> bool:
        """True if nothing of a next message has arrived."""
        return not self._received and not self._messages

    @property
    def pending(self) -> Head | None:
        """The header of a message that has not all arrived; None before it is known, and in frames."""
        return self._head

    @property
    def buffered_bytes(self) -> int:
        return len(self._received) + (0 if self._messages is self._received else len(self._messages))

    def receive_data(self, data: bytes) -> None:
        """Take what the client sent."""
        self._received += data

    def data_to_send(self) -> bytes:
        """The bytes to send before any reply: answers of the SASL negotiation."""
        data, self._to_send = self._to_send, b""
        return data

    def answer_login(self, answer: bytes) -> None:
        """Take the answer to what was asked."""
        self.asked = None
        self._to_send += answer

    def next_message(self) -> ThriftMessage | None:
        """The next whole message, None when more bytes are needed.

        Raises ProtocolError (LimitExceeded among them), Unspeakable.
        """
        if not self._is_known:
            self._recognise()
        if self._negotiation is not None and not self._unwrap():
            return None
        if not self._is_known:
            return None
        return self._framed_message() if self.is_framed else self._unframed_message()

    def wrap(self, reply: bytes) -> bytes:
        """A whole reply as this client reads it."""
        return self.wrap_chunk((len(reply).to_bytes(_FRAME_BYTES, "big") + reply) if self.is_framed else reply)

    def wrap_head(self, length: int) -> bytes:
        """The bytes before the chunks of a reply of `length` bytes."""
        return self.wrap_chunk(length.to_bytes(_FRAME_BYTES, "big")) if self.is_framed else b""

    def wrap_chunk(self, chunk: bytes) -> bytes:
        """A piece of a reply whose length, where the client needs it, has been sent."""
        if self._negotiation is None:
            return chunk
        pieces = self._negotiation.wrap(chunk)
        return b"".join(len(piece).to_bytes(_FRAME_BYTES, "big") + piece for piece in pieces)

    def _recognise(self) -> None:
        """Find out what is spoken, by as few bytes as will do."""
        beginning = bytes(self._messages[:8])
        if not beginning:
            return
        if self._negotiation is None:
            self._refuse_others(beginning)
            if self.needs_tls:
                self._refuse_plain(beginning)
            if _is_sasl(beginning):
                self._begin_negotiation()
                return
            if self.sasl == "require" and (len(beginning) >= _TELLING_BYTES or beginning[0] in (0x80, 0x82)):
                raise Unspeakable(_HAS_TO_LOG_IN, reason="no_login")
        is_framed = _is_framed(beginning)
        if is_framed is not None:
            self.is_framed, self._is_known = is_framed, True

    def _refuse_others(self, beginning: bytes) -> None:
        if beginning[:4] in _HTTP_VERBS:
            text = "This port speaks Thrift over TCP, not HTTP. HTTP clients use the gateway's own port."
            raise Unspeakable("an HTTP request came to the Thrift port", _http_refusal(text))
        if beginning[0] == 0x16:
            words = b"This port speaks Thrift over TCP without TLS\n"
            text = "a TLS handshake came to the Thrift port, which speaks plain TCP; let the client connect without TLS"
            raise Unspeakable(f"{text}, or set thrift_tls (with the bridge --tls-certificate)", words)
        if beginning[0] in (0x80, 0x82) or len(beginning) < _TELLING_BYTES:
            return
        # A frame that says how enormous it is, or letters.
        if beginning[0] > 0x20 and not _begins_message(beginning[4:]):
            text = "the first bytes are not a Thrift message in binary or compact encoding"
            raise Unspeakable(f"{text}: {beginning!r}", text.encode() + b"\n")

    def _refuse_plain(self, beginning: bytes) -> NoReturn:
        """Raises Unspeakable for a client that would log in, otherwise ProtocolError."""
        if _is_sasl(beginning):
            raise refuse(_NEEDS_TLS)
        self.is_framed = bool(_is_framed(beginning))
        begin = _FRAME_BYTES if self.is_framed else 0
        try:
            head = self._read_head(self._messages[begin : begin + _HEAD_BYTES_MAX])
        except ProtocolError:
            head = None
        raise ProtocolError(_NEEDS_TLS, name=head and head.name, seqid=head and head.seqid)

    def _begin_negotiation(self) -> None:
        if self.sasl == "off":
            raise refuse("SASL is not switched on in this bridge; connect without it, or start the bridge with --sasl")
        self._negotiation = SaslNegotiation(self._mechanisms, self.share_address)
        self._messages = bytearray()

    def _unwrap(self) -> bool:
        """Negotiate, then take frames off; True if there may be a message."""
        negotiation = self._negotiation
        assert negotiation is not None
        while not negotiation.is_done:
            answer = negotiation.receive(self._received)
            if answer is None:
                return False
            if isinstance(answer, Asked):
                self.asked = answer
                return False
            self._to_send += answer
        self.credentials, self.proven_user = negotiation.credentials, negotiation.proven_user
        self.proof = negotiation.proof
        received = self._received
        while len(received) >= _FRAME_BYTES:
            size = int.from_bytes(received[:_FRAME_BYTES], "big")
            self._check_size(size)
            if len(received) < _FRAME_BYTES + size:
                break
            self._messages += negotiation.unwrap(bytes(received[_FRAME_BYTES : _FRAME_BYTES + size]))
            del received[: _FRAME_BYTES + size]
        if not self._is_known:
            self._recognise()
        return True

    def _unframed_message(self) -> ThriftMessage | None:
        buffer = self._messages
        if self._head is None:
            self._head = self._read_head(buffer)
            if self._head is None:
                return None
            self._scanner = self._head.scanner(self._limits)
        head, scanner = self._head, self._scanner
        assert scanner is not None
        try:
            if not scanner.scan(buffer):
                return None
        except ProtocolError as error:
            error.name, error.seqid = head.name, head.seqid
            raise
        self._head = self._scanner = None
        return self._taken(head, 0, scanner.position)

    def _framed_message(self) -> ThriftMessage | None:
        buffer = self._messages
        if len(buffer) < _FRAME_BYTES:
            return None
        size = int.from_bytes(buffer[:_FRAME_BYTES], "big")
        self._check_size(size)
        if len(buffer) < _FRAME_BYTES + size:
            return None
        head = self._read_head(buffer[_FRAME_BYTES : min(_FRAME_BYTES + size, _HEAD_BYTES_MAX)])
        if head is None:
            raise ProtocolError("the frame ends inside the message's header")
        return self._taken(head, _FRAME_BYTES, _FRAME_BYTES + size)

    def _read_head(self, buffer: bytearray) -> Head | None:
        if buffer:
            self.protocol = "compact" if buffer[0] == 0x82 else "binary"
        return read_head(buffer)

    def _taken(self, head: Head, begin: int, end: int) -> ThriftMessage:
        buffer = self._messages
        with memoryview(buffer) as view:
            body = bytes(view[begin:end])
        del buffer[:end]
        return ThriftMessage(head.protocol, head.name, head.type, head.seqid, body, head.size)

    def _check_size(self, size: int) -> None:
        if size > self._limits.body_bytes_max:
            raise LimitExceeded("body_bytes_max", self._limits.body_bytes_max, f"a frame of {size} bytes")


def _is_sasl(beginning: bytes) -> bool:
    """START and the length of a mechanism's name. A first frame of 16 MB would look alike only by its first byte."""
    if beginning[0] != 1:
        return False
    return len(beginning) < 5 or 0 < int.from_bytes(beginning[1:5], "big") <= _MECHANISM_BYTES_MAX


def _is_framed(beginning: bytes) -> bool | None:
    """True if a length comes before the message; None when that is not known yet."""
    if beginning[0] in (0x80, 0x82):
        return False
    if len(beginning) < _TELLING_BYTES:
        return None
    # Behind a frame's length comes a message of any kind, behind an old header's length the letters of a name.
    return beginning[4] in (0x80, 0x82, 0x00)


def _begins_message(beginning: bytes) -> bool:
    return beginning[:2] == b"\x80\x01" or beginning[:1] == b"\x82"


def _http_refusal(text: str) -> bytes:
    body = text.encode() + b"\n"
    head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


class Session(msgspec.Struct):
    """`user` and `groups` as `set_ugi` named them, unproven; `credentials` as SASL PLAIN brought them; `proven_user` is
    whose Kerberos ticket was accepted on this connection, or whose delegation token, of which there is a `proof`.
    `logged_in_as` is what the user of the credentials is called here, `real_user` who got the token for its owner.

    `share_address` is whose share of an address the client uses, None on the machine itself, which users share.
    `claim` counts the connection as that of the user whose password was right, and gives the bound in the way.
    `is_in_network`: the client may come without a login. `gone` is set when the client has closed its side of the
    connection, or it is lost.
    """

    address: str = ""
    share_address: str | None = None
    is_in_network: bool = False
    user: str = ""
    groups: tuple[str, ...] = ()
    credentials: Credentials | None = None
    proven_user: str | None = None
    proof: Proof | None = None
    logged_in_as: str = ""
    real_user: str = ""
    claim: Callable[[str], Bound | None] = lambda user: None
    needs_length: bool = False
    gone: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def until_gone(self) -> None:
        """Returns when the connection is lost."""
        await self.gone.wait()

    @property
    def shown_user(self) -> str:
        """The caller, for the log."""
        named = self.credentials.user if self.credentials is not None else self.proven_user or self.user
        return self.logged_in_as or named

    @property
    def tried_user(self) -> str:
        """The user whose password is not known to be right."""
        return self.credentials.user if self.credentials is not None and not self.logged_in_as else ""


def share_address(host: str) -> str | None:
    """The address whose share a client from `host` uses; all users of this machine have the same address."""
    return None if is_loopback(host) else share_of(host)
