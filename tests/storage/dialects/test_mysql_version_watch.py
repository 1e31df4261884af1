"""What the connection that watches MariaDB relies on; what it does is in `test_version_watch`."""

import socket
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import make_url

from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.dialects.mysql_engines import open_mysql_watch
from hms_gateway.storage.writing.store import open_store
from tests.storage.dialects.test_version_watch import asked, change


def test_the_driver_is_of_the_version_whose_inner_methods_are_used() -> None:
    """With another one run the tests of the watch, those of rows and `tests/cache/test_never_stale.py`, then change the
    number.
    """
    assert version("PyMySQL") == "1.2.4"


def relay(source: socket.socket, target: socket.socket, bytes_at_once: int) -> None:
    with source, target:
        try:
            while data := source.recv(bytes_at_once):
                target.sendall(data)
        except OSError:
            pass


@pytest.fixture
def slow_url(migrated_mariadb_database: str, tmp_path: Path) -> Iterator[str]:
    """A database behind a socket that passes on what the server sends byte by byte."""
    url = make_url(migrated_mariadb_database)
    path = str(tmp_path / "slow")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(url.query["unix_socket"]))
            Thread(target=relay, args=(client, server, 4096), daemon=True).start()
            relay(server, client, 1)

        Thread(target=serve, daemon=True).start()
        yield url.update_query_dict({"unix_socket": path}).render_as_string(hide_password=False)


@pytest.mark.mariadb
def test_an_answer_may_come_in_pieces(migrated_mariadb_database: str, slow_url: str) -> None:
    store = open_store(migrated_mariadb_database, SystemClock(), Limits())
    watch = open_mysql_watch(store._reading, make_url(slow_url))
    assert asked(watch) == 0
    change(store)
    assert asked(watch) == asked(watch) == 1
    watch.close()
    store.close()
