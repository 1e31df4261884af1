"""One blocking connection to a side: calls with a decoded result, and prepared ones whose time is taken."""

import socket
import ssl
from time import perf_counter
from typing import Any, NamedTuple, Self

from benchmarks.peer.speech import Binary, Speech
from tests.support.server import trusting

RECEIVE_BYTES = 1 << 18
TIMEOUT_SECONDS = 900.0


class Prepared(NamedTuple):
    """A request as bytes, and how long the reply to it is where that has been seen."""

    sent: bytes
    reply_bytes: int | None = None


class Address(NamedTuple):
    port: int
    is_tls: bool

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return trusting().wrap_socket(connection) if self.is_tls else connection

    def context(self) -> ssl.SSLContext | None:
        return trusting() if self.is_tls else None


class Caller:
    """A context manager. Raises CallFailed for replies that are exceptions."""

    def __init__(self, address: Address, speech: Speech) -> None:
        self.speech = speech
        self._address = address
        self._connection = address.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def renew(self) -> None:
        """Connect again: servers close connections that say nothing while another side takes its turn."""
        self._connection.close()
        self._connection = self._address.connect()

    def call(self, method: str, *arguments: Any) -> Any:
        return self.speech.value(method, self._whole(self.speech.request(method, *arguments)))

    def prepare(self, method: str, *arguments: Any) -> Prepared:
        """Call once, so that the size of the reply is known."""
        return self.prepare_and_count(method, *arguments)[0]

    def prepare_and_count(self, method: str, *arguments: Any) -> tuple[Prepared, int]:
        """The same, and how many values the reply lists."""
        sent = self.speech.request(method, *arguments)
        size, head = self.seen(sent)
        return Prepared(sent, size if isinstance(self.speech, Binary) else None), self.speech.count_in(head)

    def timed(self, prepared: Prepared) -> float:
        """Seconds from the first byte sent to the last one received."""
        reply = self.speech.reply(prepared.reply_bytes)
        begin = perf_counter()
        self._connection.sendall(prepared.sent)
        while not reply.feed(self._received()):
            pass
        return perf_counter() - begin

    def seen(self, sent: bytes) -> tuple[int, bytes]:
        """Size and first bytes of a reply."""
        reply = self.speech.reply()
        self._connection.sendall(sent)
        while not reply.feed(self._received()):
            pass
        return reply.size, reply.head

    def _whole(self, sent: bytes) -> bytes:
        reply = self.speech.reply(keeps=True)
        self._connection.sendall(sent)
        while not reply.feed(self._received()):
            pass
        return reply.whole()

    def _received(self) -> bytes:
        data = self._connection.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data
