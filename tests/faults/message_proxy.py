"""A proxy between gateway and database that cuts a connection before the message that the test says."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Self

RECEIVE_BYTES = 1 << 16


class Way(Enum):
    TO_DATABASE = "to the database"
    TO_GATEWAY = "to the gateway"


# How many bytes the first message of these has, 0 where they are not enough to say.
SizeOf = Callable[[bytes], int]


def postgres_size(data: bytes) -> int:
    """A letter, and a length that does not count it."""
    return 1 + int.from_bytes(data[1:5], "big") if len(data) >= 5 else 0


def postgres_startup_size(data: bytes) -> int:
    """What a client says first is a length only."""
    return int.from_bytes(data[:4], "big") if len(data) >= 4 else 0


def mysql_size(data: bytes) -> int:
    """Three bytes of length, and a number."""
    return 4 + int.from_bytes(data[:3], "little") if len(data) >= 4 else 0


class MessageProxy:
    """Listens on a Unix socket in front of another one. A context manager.

    `cut(way, count)` has the connection on which `count` more messages have gone that way cut before the next one.
    """

    def __init__(self, listens: Path, database: Path, *, is_postgres: bool) -> None:
        self._database = str(database)
        self._is_postgres = is_postgres
        self._lock = threading.Lock()
        self._way: Way | None = None
        self._left = 0
        self.cuts = 0
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(listens))
        self._server.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def cut(self, way: Way | None, count: int = 0) -> None:
        with self._lock:
            self._way, self._left = way, count

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                database = socket.socket(socket.AF_UNIX)
                try:
                    database.connect(self._database)
                except OSError:
                    client.close()
                    continue
                for way, source, target in (
                    (Way.TO_DATABASE, client, database),
                    (Way.TO_GATEWAY, database, client),
                ):
                    threading.Thread(target=self._pass_on, args=(way, source, target), daemon=True).start()

    def _pass_on(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for message in self._messages(way, source):
                if self._is_cut(way):
                    break
                target.sendall(message)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        target.close()

    def _is_cut(self, way: Way) -> bool:
        with self._lock:
            if self._way is not way:
                return False
            self._left -= 1
            if self._left >= 0:
                return False
            self._way = None
            self.cuts += 1
            return True

    def _messages(self, way: Way, source: socket.socket) -> Iterator[bytes]:
        first = postgres_startup_size if way is Way.TO_DATABASE else postgres_size
        size_of: SizeOf = first if self._is_postgres else mysql_size
        data = b""
        while received := source.recv(RECEIVE_BYTES):
            data += received
            while 0 < (size := size_of(data)) <= len(data):
                yield data[:size]
                data = data[size:]
                size_of = postgres_size if self._is_postgres else mysql_size
