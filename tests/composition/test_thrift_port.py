"""`serve --thrift-port` with real clients: Apache thrift's Python client in every framing, and its SASL transport."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TSaslClientTransport, TTransportException

from hms_gateway.rpc.structs import Database, LeaseObject, MetaException, NoSuchObjectException
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.bridge.bridge_process import ApacheClient, OldBinary, connected
from tests.bridge.thrift_bytes import call
from tests.support.apache import ApacheBinary, ApacheCompact
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import GatewayServer, ServerDidNotStart, free_port

DEMO = "hmshttptestdatabase"
CALL = b'[1,"get_all_databases",1,1,{}]'


@dataclass
class Served:
    """A gateway and where its Thrift port is; `connected` takes it for a bridge."""

    gateway: GatewayServer
    port: int

    def log_lines(self) -> list[dict[str, Any]]:
        lines = self.gateway.log_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def served(folder: Path, limits: dict[str, float] | None = None, **settings: object) -> Iterator[Served]:
    port = free_port()
    with GatewayServer(folder, demo=True, settings={"thrift_port": port, **settings}, limits=limits) as gateway:
        yield Served(gateway, port)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from served(tmp_path_factory.mktemp("open"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from served(tmp_path_factory.mktemp("guarded"), thrift_sasl="require", workers=2)


def with_password(place: Served, password: str) -> Any:
    return partial(
        TSaslClientTransport,
        host="127.0.0.1",
        service="hive",
        mechanism="PLAIN",
        username=place.gateway.user,
        password=password,
    )


def called_back(place: Served, client: ApacheClient, name: str) -> None:
    """Make a database by Thrift, see it by HTTPS, drop it."""
    client.create_database(Database(name, locationUri=None))
    try:
        assert name in client.get_all_databases()
        assert f'"{name}"'.encode() in place.gateway.post(CALL)[1]
    finally:
        client.drop_database(name, True, False)


@pytest.mark.parametrize(
    ("transport", "protocol"),
    [
        (TBufferedTransport, ApacheBinary),
        (TBufferedTransport, OldBinary),
        (TBufferedTransport, ApacheCompact),
        (TFramedTransport, ApacheBinary),
        (TFramedTransport, ApacheCompact),
    ],
)
def test_reads_and_writes_in_every_framing(here, transport, protocol):
    with connected(here, transport, protocol) as client:
        assert client.set_ugi("ann", ["staff"]) == ["staff"]
        called_back(here, client, "by_thrift")
        assert len(client.get_table(DEMO, "test_table").sd.cols) > 0
        with pytest.raises(NoSuchObjectException):
            client.get_database("nowhere")


def test_a_change_by_one_door_is_seen_at_once_by_the_other(here):
    with connected(here) as client:
        for number in range(20):
            assert client.get_database(DEMO).parameters.get("n") == (str(number - 1) if number else None)
            changed = client.get_database(DEMO)
            changed.parameters = {"n": str(number)}
            client.alter_database(DEMO, changed)
            status, body = here.gateway.post(f'[1,"get_database",1,1,{{"1":{{"str":"{DEMO}"}}}}]'.encode())
            assert (status, f'"n":"{number}"' in body.decode()) == (200, True)


def test_calls_are_counted_and_logged_with_the_others_and_wait_where_a_rate_is_used_up(tmp_path):
    rates = {"ann.calls_per_second": 100, "ann.burst_seconds": 0.01, "bob.calls_per_second": 0.001}
    for place in served(tmp_path, **{f"user_rates.{name}": value for name, value in rates.items()}):
        with connected(place) as client:
            client.set_ugi("ann", [])
            for _ in range(3):
                client.get_all_databases()
        with connected(place) as client:
            client.set_ugi("bob", [])
            client.getName()
            with pytest.raises(TApplicationException, match="user_rates"):
                client.getName()
        with place.gateway.connection() as connection:
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
        assert 'hms_gateway_calls_total{method="get_all_databases",outcome="ok"} 3.0' in metrics
        assert "hms_gateway_cache_hits_total 2.0" in metrics
        place.gateway.stop()
        lines = [line for line in place.log_lines() if line.get("method") == "get_all_databases"]
        assert [(line["user"], line["status"], line["cached"], line["outcome"]) for line in lines] == [
            ("ann", 0, False, "ok"),
            ("ann", 0, True, "ok"),
            ("ann", 0, True, "ok"),
        ]


def test_passwords_of_the_users_file_are_asked_for_by_sasl(guarded):
    with connected(guarded, with_password(guarded, guarded.gateway.password)) as client:
        called_back(guarded, client, "by_sasl")
    with (
        connected(guarded, with_password(guarded, "wrong")) as client,
        pytest.raises(MetaException, match="password"),
    ):
        client.get_all_databases()
    with connected(guarded) as client, pytest.raises((TTransportException, EOFError, OSError)):
        client.get_all_databases()


def test_a_user_who_logs_in_has_a_share_of_the_connections(tmp_path):
    for place in served(tmp_path, limits={"connections_max": 40, "share_per_user": 0.05}, thrift_sasl="require"):
        login = with_password(place, place.gateway.password)
        with connected(place, login) as first, connected(place, login) as second, connected(place, login) as third:
            for client in (first, second, first):
                assert DEMO in client.get_all_databases()
            # Nothing has happened; clients repeat a call on another connection.
            with pytest.raises(TTransportException):
                third.get_all_databases()
            assert DEMO in first.get_all_databases()
        assert "share_per_user of connections_max" in place.gateway.log_text()


def test_several_workers_share_the_port(guarded):
    """Each connection may come to another process; all of them answer."""
    for _ in range(20):
        with connected(guarded, with_password(guarded, guarded.gateway.password)) as client:
            assert DEMO in client.get_all_databases()


def test_stopping_finishes_the_connections_that_are_idle_and_frees_the_port(tmp_path):
    for place in served(tmp_path):
        with connected(place) as client:
            client.get_all_databases()
            assert place.gateway.stop() == 0
            with pytest.raises((TTransportException, EOFError, OSError)):
                client.get_all_databases()
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", place.port))


def test_a_waiting_lease_is_granted_when_it_is_free_and_forgotten_when_its_client_leaves(here):
    wanted = ([LeaseObject(db_name="d", lease_type="x")], 60, 30)
    with connected(here) as holder, ThreadPoolExecutor() as others:
        held = holder.grab_lease(*wanted)
        with socket.create_connection(("127.0.0.1", here.port)) as leaver:
            # A client that goes while it waits must not stand in the way of those that stay.
            leaver.sendall(call("grab_lease", *wanted))
            wait_until_waiting(here, 1)
        wait_until_waiting(here, 0)
        with connected(here) as waiter:
            granted = others.submit(grabbed, waiter, wanted)
            wait_until_waiting(here, 1)
            holder.drop_lease(held, [])
            lease_id = granted.result(PATIENCE_SECONDS)
            assert isinstance(lease_id, int)
            assert [lease.lease_id for lease in holder.list_lease([])] == [lease_id]
            waiter.drop_lease(lease_id, [])


def grabbed(client: ApacheClient, wanted: tuple[Any, ...]) -> int | Exception:
    try:
        return client.grab_lease(*wanted)  # type: ignore[no-any-return]
    except Exception as error:
        return error


def wait_until_waiting(place: Served, count: int) -> None:
    with place.gateway.connection() as connection:

        def is_so() -> bool:
            connection.request("GET", "/metrics")
            return f"hms_gateway_calls_waiting {count}.0" in connection.getresponse().read().decode()

        until(is_so, f"never {count} calls waiting")


def test_a_port_in_use_is_said_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerDidNotStart, match=f"cannot listen on thrift://127.0.0.1:{port}"):
            GatewayServer(tmp_path, settings={"thrift_port": port}).start()


@pytest.mark.parametrize("given", [{}, {"thrift_sasl": "allow"}])
def test_an_address_that_others_reach_needs_passwords(given):
    with pytest.raises(SettingsError, match="thrift_sasl"):
        load_settings(thrift_port=9083, thrift_host="0.0.0.0", **given)
    settings = load_settings(thrift_port=9083, thrift_host="0.0.0.0", thrift_sasl="require")
    assert isinstance(settings, Settings)
