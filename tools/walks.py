"""Traces the functions of the package that run for one call, in a gateway that serves in this process."""

import base64
import queue
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from hms_gateway.composition.main import build
from hms_gateway.gateway.auth.users import hash_password
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.settings_reading import load_settings

_PACKAGE: Final = Path(__file__).resolve().parent.parent / "app" / "hms_gateway"
_PATIENCE_SECONDS: Final = 120.0
# What runs now and then beside the calls is not in the walk of each of them.
_CALLS: Final = 5
_QUIET_LOOKS: Final = 20
_ADMIN, _ANN = "admin", "ann"
_COLUMNS = '{"1":{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]},"7":{"rec":{}}}'
NEW_TABLE = (
    '"create_table",1,1,{"1":{"rec":{"1":{"str":"%s"},"2":{"str":"default"},"7":{"rec":' + _COLUMNS + "},"
    '"8":{"lst":["rec",1,{"1":{"str":"p"},"2":{"str":"string"}}]}}}}'
)
_NEW_PARTITION = (
    '"add_partition",1,1,{"1":{"rec":{"1":{"lst":["str",1,"%s"]},"2":{"str":"default"},"3":{"str":"walks"},"6":{"rec":'
    + _COLUMNS
    + "}}}}"
)
GET_TABLE = '"get_table",1,1,{"1":{"str":"default"},"2":{"str":"%s"}}'
_GET_PARTITION = '"get_partition",1,1,{"1":{"str":"default"},"2":{"str":"%s"},"3":{"lst":["str",1,"0"]}}'
_LOCK = (
    '"lock",1,1,{"1":{"rec":{"1":{"lst":["rec",1,{"1":{"i32":3},"2":{"i32":2},"3":{"str":"default"},"4":{"str":"%s"}}]},'
    '"3":{"str":"ann"},"4":{"str":"host"}}}}'
)
_GRANT = (
    '"grant_privileges",1,1,{"1":{"rec":{"1":{"lst":["rec",1,{"1":{"rec":{"1":{"i32":1},"2":{"str":"default"}}},'
    '"2":{"str":"ann"},"3":{"i32":1},"4":{"rec":{"1":{"str":"SELECT"},"2":{"i32":0},"3":{"str":"admin"},"4":{"i32":1},'
    '"5":{"tf":0}}}}]}}}}'
)
# Another spelling is unknown to the cache.
_SPELLINGS: Final = ["WALKS", "Walks", "wAlks", "waLks", "walKs", "walkS"]
_NAMES: Final = [f"t{number}" for number in range(_CALLS + 1)]

# A file of the package and a function in it.
Step = tuple[str, str]


def walks() -> Iterator[tuple[str, frozenset[Step]]]:
    """The functions of each walk; the first call of its kind is not traced."""
    with tempfile.TemporaryDirectory() as folder, traced(Path(folder)) as calls:
        calls.answer(NEW_TABLE % "walks")
        calls.answer(_NEW_PARTITION % "0")
        yield "get_table_cached", calls.common([GET_TABLE % "walks"] * (_CALLS + 1))
        yield "get_table", calls.common([GET_TABLE % name for name in _SPELLINGS])
        yield "create_table", calls.common([NEW_TABLE % name for name in _NAMES])
        yield "add_partition", calls.common([_NEW_PARTITION % name for name in _NAMES])
        # The first one is acquired, and the others wait for it.
        yield "lock_waits", calls.common([_LOCK % "walks"] * (_CALLS + 1))
    with tempfile.TemporaryDirectory() as folder, traced(Path(folder), authorization="grants") as calls:
        for message in (NEW_TABLE % "walks", _NEW_PARTITION % "0", _GRANT):
            calls.answer(message)
        yield "get_partition_with_grants", calls.common([_GET_PARTITION % name for name in _SPELLINGS], user=_ANN)


class Traced:
    """Calls of a gateway, and the functions that run for them."""

    def __init__(self, connection: socket.socket, steps: list[Step]) -> None:
        self._connection = connection
        self._steps = steps

    def common(self, messages: list[str], user: str = _ADMIN) -> frozenset[Step]:
        """The functions that run for each of the calls but the first."""
        self.answer(messages[0], user)
        return frozenset.intersection(*(frozenset(self.steps(message, user)) for message in messages[1:]))

    def steps(self, message: str, user: str = _ADMIN) -> list[Step]:
        """The calls of functions for one message, in their order."""
        self._settle()
        self._steps.clear()
        self.answer(message, user)
        self._settle()
        return list(self._steps)

    def answer(self, message: str, user: str = _ADMIN) -> str:
        """The reply to a TJSON message without its version. Raises ValueError for a reply that says no."""
        login = base64.b64encode(f"{user}:secret".encode()).decode()
        body = f"[1,{message}]"
        head = f"POST /metastore HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\nContent-Length: "
        self._connection.sendall(f"{head}{len(body)}\r\n\r\n{body}".encode())
        reply = b""
        while not reply.endswith(b"}]"):
            piece = self._connection.recv(65_536)
            reply += piece
            if not piece or not reply.startswith(b"HTTP/1.1 200"):
                raise ValueError(f"{message} -> {reply!r}")
        return reply.decode().partition("\r\n\r\n")[2]

    def _settle(self) -> None:
        """Wait until no thread has moved for a while; one that is held up longer makes the walk shorter, not longer."""
        seen, quiet = None, 0
        while quiet < _QUIET_LOOKS:
            time.sleep(0.001)
            places = [(frame.f_code, frame.f_lasti) for frame in self._others()]
            now = (len(self._steps), places)
            seen, quiet = now, quiet + 1 if now == seen else 0

    @staticmethod
    def _others() -> Iterator[FrameType]:
        own = threading.get_ident()
        return (frame for thread, frame in sys._current_frames().items() if thread != own)


@contextmanager
def traced(folder: Path, **settings: str) -> Iterator[Traced]:
    """A gateway in this process that keeps its data in the folder."""
    (folder / "users").write_text("".join(f"{name}:{hash_password('secret')}\n" for name in (_ADMIN, _ANN)))
    options = load_settings(None, data_dir=folder, port=0, tls=False, **settings)
    steps: list[Step] = []
    before = threading.getprofile()
    threading.setprofile(_recorder(steps))
    try:
        gateway = build(options)
        listening: queue.SimpleQueue[int] = queue.SimpleQueue()
        server = Server(gateway, on_listening=lambda addresses: listening.put(addresses[0][1]))
        thread = threading.Thread(target=server.run, name="server", daemon=True)
        thread.start()
        try:
            address = ("127.0.0.1", listening.get(timeout=_PATIENCE_SECONDS))
            with socket.create_connection(address, _PATIENCE_SECONDS) as connection:
                yield Traced(connection, steps)
        finally:
            server.stop()
            thread.join(_PATIENCE_SECONDS)
    finally:
        threading.setprofile(before)


def _recorder(steps: list[Step]) -> Callable[[FrameType, str, object], None]:
    package = f"{_PACKAGE}/"

    def record(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            steps.append((code.co_filename.removeprefix(package), code.co_qualname))

    return record
