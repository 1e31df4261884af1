"""C3: any account of the machine could use the Thrift port, and with it the gateway's rights to files."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.rpc.structs import Database
from tests.bridge.bridge_process import BridgeProcess, connected
from tests.bridge.thrift_bytes import call
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port

# Becomes another account, which may not even be able to read Python, then sends and receives.
CLIENT = """
import encodings.idna, os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[4]))
os.setuid(int(sys.argv[3]))
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as server:
    try:
        server.sendall(bytes.fromhex(sys.argv[2]))
        print(server.recv(65536).hex())
    except ConnectionError:
        print("")
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another account")


class Place:
    """Where `connected` and other accounts find a Thrift port."""

    def __init__(self, gateway: GatewayServer, port: int) -> None:
        self.gateway, self.port = gateway, port

    def metrics(self) -> str:
        with self.gateway.connection() as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()


def served(folder: Path, **settings: object) -> Iterator[Place]:
    port = free_port()
    with GatewayServer(folder, settings={"thrift_port": port, **settings}) as gateway:
        yield Place(gateway, port)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from served(tmp_path_factory.mktemp("closed"))


def answer_to_another_account(port: int, message: bytes) -> bytes:
    account = pwd.getpwnam("nobody")
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(port), message.hex(), str(account.pw_uid), str(account.pw_gid)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return bytes.fromhex(done.stdout.strip())


@needs_root
def test_another_account_changes_nothing_and_is_logged(closed):
    made = call("create_database", Database("by_another_account"))
    assert answer_to_another_account(closed.port, made) == b""
    with connected(closed) as client:
        assert client.get_all_databases() == ["default"]
    assert 'hms_gateway_thrift_connections_refused_total{reason="other_account"} 1.0' in closed.metrics()
    [line] = [line for line in closed.gateway.log_text().splitlines() if "it comes from another account" in line]
    assert f'"account":{pwd.getpwnam("nobody").pw_uid}' in line
    assert "thrift_networks" in line


@needs_root
def test_another_account_drops_nothing(closed):
    with connected(closed) as client:
        client.create_database(Database("here"))
    answer_to_another_account(closed.port, call("drop_database", "here", True, True))
    with connected(closed) as client:
        assert "here" in client.get_all_databases()
        client.drop_database("here", True, True)


@needs_root
def test_an_open_port_says_so_and_lets_every_account_in(tmp_path):
    for place in served(tmp_path, thrift_networks=["127.0.0.1"]):
        assert b"default" in answer_to_another_account(place.port, call("get_all_databases"))
        assert "thrift_networks: clients of these networks call without a login" in place.gateway.log_text()


@needs_root
def test_with_sasl_allowed_another_account_has_to_log_in(tmp_path):
    for place in served(tmp_path, thrift_sasl="allow"):
        assert answer_to_another_account(place.port, call("get_all_databases")) == b""
        assert 'thrift_connections_refused_total{reason="no_login"} 1.0' in place.metrics()
        user, password = place.gateway.user.encode(), place.gateway.password.encode()
        login = b"\0" + user + b"\0" + password
        hello = b"\x01" + len(b"PLAIN").to_bytes(4, "big") + b"PLAIN"
        hello += b"\x02" + len(login).to_bytes(4, "big") + login
        assert answer_to_another_account(place.port, hello) == b"\x05\0\0\0\0"
        with connected(place) as client:
            assert "default" in client.get_all_databases()


@needs_root
def test_a_bridge_does_not_lend_its_password(closed):
    message = call("get_all_databases")
    with BridgeProcess(closed.gateway) as bridge:
        assert answer_to_another_account(bridge.port, message) == b""
        with connected(bridge) as client:
            assert client.get_all_databases() == ["default"]
        assert "it comes from another account" in bridge.log_text()
    certificate = str(closed.gateway.data_dir / "certificate.pem")
    with BridgeProcess(closed.gateway, "--cacert", certificate, "--open") as bridge:
        assert b"default" in answer_to_another_account(bridge.port, message)
        assert "--open: every account of this machine may call without a password" in bridge.log_text()


def test_the_account_of_the_gateway_gets_in(closed):
    with connected(closed) as client:
        assert client.get_all_databases() == ["default"]


def test_several_workers_keep_others_out_too(tmp_path):
    """Where another account cannot be had for the test, its own account at least is known in every worker."""
    for place in served(tmp_path, workers=2):
        for _ in range(10):
            with connected(place) as client:
                assert client.get_all_databases() == ["default"]
            if os.geteuid() == 0:
                assert answer_to_another_account(place.port, call("get_all_databases")) == b""
