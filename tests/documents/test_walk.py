"""The walk of a request in docs/architecture.md is the way that a call takes."""

import base64
import queue
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from msgspec.structs import replace

from hms_gateway.composition.main import build
from hms_gateway.gateway.assembly import server_options
from hms_gateway.gateway.auth.users import hash_password
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.settings import load_settings
from tests.gateway.serving import post, read_response
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "app" / "hms_gateway"
NEW_TABLE = (
    '[1,"create_table",1,1,{"1":{"rec":{"1":{"str":"t"},"2":{"str":"default"},'
    '"7":{"rec":{"1":{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]},"7":{"rec":{}}}}}}}]'
)
GET_TABLE = '[1,"get_table",1,1,{"1":{"str":"default"},"2":{"str":"t"}}]'


def walk() -> list[tuple[str, str]]:
    """Files and functions as the document lists them."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (block,) = re.findall(r"test_walk.py` compares\):\n\n```text\n(.*?)```", text, re.DOTALL)
    return [(line.split()[0], line.split()[1]) for line in block.splitlines()]


@pytest.mark.slow
def test_a_call_goes_through_the_functions_of_the_document_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"admin:{hash_password('secret')}\n")
    called: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            called.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    before = threading.getprofile()
    threading.setprofile(note)
    try:
        with serving(tmp_path) as connection:
            assert answer(connection, NEW_TABLE).startswith(b'[1,"create_table",2')
            called.clear()
            assert answer(connection, GET_TABLE).startswith(b'[1,"get_table",2')
    finally:
        threading.setprofile(before)
    assert 20 < len(walk()) <= 30
    left = iter(called)
    for step in walk():
        assert step in left, f"{step} is not called, or not here"


@contextmanager
def serving(folder: Path) -> Iterator[socket.socket]:
    """A connection to a gateway in this process, so that its calls can be followed."""
    settings = replace(load_settings(None), data_dir=folder, port=0, tls=False)
    gateway = build(settings)
    listening: queue.SimpleQueue[int] = queue.SimpleQueue()
    server = Server(
        gateway,
        server_options(settings, gateway.certificate),
        settings.limits,
        on_listening=lambda addresses: listening.put(addresses[0][1]),
    )
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    try:
        with socket.create_connection(
            ("127.0.0.1", listening.get(timeout=PATIENCE_SECONDS)), PATIENCE_SECONDS
        ) as connection:
            yield connection
    finally:
        server.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def answer(connection: socket.socket, message: str) -> bytes:
    login = base64.b64encode(b"admin:secret").decode()
    connection.sendall(post(message.encode(), f"Authorization: Basic {login}"))
    return read_response(connection)[2]
