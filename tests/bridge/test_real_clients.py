"""Apache thrift's Python client over TCP, through the bridge as a process, to the gateway as a process, over TLS."""

import contextlib
import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TTransportException

from hms_gateway.rpc.structs import (
    METHODS,
    Database,
    FieldSchema,
    MetaException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.bridge.bridge_process import BridgeProcess, OldBinary, connected
from tests.support.apache import ApacheBinary, ApacheCompact
from tests.support.server import GatewayServer

DEMO = "hmshttptestdatabase"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("gateway"), demo=True) as running:
        yield running


@pytest.fixture(scope="module")
def bridge(gateway: GatewayServer) -> Iterator[BridgeProcess]:
    with BridgeProcess(gateway) as running:
        yield running


def descriptor() -> StorageDescriptor:
    columns = [FieldSchema(f"column_{number}", "string", "a comment") for number in range(8)]
    return StorageDescriptor(cols=columns, serdeInfo=SerDeInfo(serializationLib="org.example.Serde", parameters={}))


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
def test_reads_and_writes_in_every_framing(bridge, transport, protocol):
    with connected(bridge, transport, protocol) as client:
        assert client.set_ugi("alice", ["staff"]) == ["staff"]
        assert {"default", DEMO} <= set(client.get_all_databases())
        assert [column.name for column in client.get_table(DEMO, "test_table").sd.cols] == ["name", "age"]
        assert len(client.get_partitions(DEMO, "test_table", -1)) == 2
        name = f"{transport.__name__}_{protocol.__name__}".lower()
        client.create_database(Database(name, "ünïcode", None, {"control": "\x01\t"}))
        keys = [FieldSchema("ds", "string")]
        client.create_table(Table(tableName="t", dbName=name, sd=descriptor(), partitionKeys=keys))
        partitions = [
            Partition(values=[f"{number:05}"], dbName=name, tableName="t", sd=descriptor()) for number in range(1500)
        ]
        assert client.add_partitions(partitions) == 1500
        found = client.get_partitions(name, "t", -1)
        assert [partition.values for partition in found] == [partition.values for partition in partitions]
        with pytest.raises(NoSuchObjectException):
            client.get_database("nowhere")
        client.shutdown()
        client.drop_database(name, True, True)


def test_an_unknown_method_has_the_text_that_clients_match(bridge):
    with connected(bridge) as client, pytest.raises(TApplicationException) as refused:
        client.call("get_the_weather", method=METHODS["getName"])
    assert refused.value.message == "Invalid method name: 'get_the_weather'"
    assert refused.value.type == TApplicationException.UNKNOWN_METHOD


def test_many_clients_at_once(bridge, gateway):
    def work(number: int) -> int:
        with connected(bridge) as client:
            client.create_database(Database(f"many_{number}", None, None, {}))
            names = [client.get_database(f"many_{number}").name for _ in range(20)]
            client.drop_database(f"many_{number}", True, True)
            return names.count(f"many_{number}")

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(32))) == [20] * 32


def test_a_wrong_password_is_said_and_the_connection_stays(gateway):
    with BridgeProcess(gateway, password="not it") as bridge, connected(bridge) as client:
        for _ in range(2):
            with pytest.raises(MetaException, match="does not accept user admin: HTTP 401"):
                client.get_all_databases()
        assert bridge.stop() == 0
        assert '"outcome":"unauthorized"' in bridge.log_text()


def test_a_certificate_nobody_vouches_for_is_said(gateway):
    with (
        BridgeProcess(gateway, "--connections", "5") as bridge,
        connected(bridge) as client,
        pytest.raises(MetaException, match=r"certificate of 127\.0\.0\.1:\d+ is not accepted"),
    ):
        client.get_all_databases()


def test_a_gateway_that_is_killed_and_comes_back(tmp_path):
    gateway = GatewayServer(tmp_path / "gateway")
    with gateway, BridgeProcess(gateway) as bridge, connected(bridge) as client:
        client.create_database(Database("before", None, None, {}))
        os.kill(gateway.pid, signal.SIGKILL)
        gateway.stop()
        with ThreadPoolExecutor(1) as pool:
            created = pool.submit(client.create_database, Database("after", None, None, {}))
            gateway.start()
            created.result()
        assert set(client.get_all_databases()) == {"after", "before", "default"}


def test_a_gateway_that_does_not_come_back_closes_the_connection(tmp_path):
    gateway = GatewayServer(tmp_path / "gateway")
    with gateway, BridgeProcess(gateway, "-k", "--patience", "0") as bridge, connected(bridge) as client:
        client.get_all_databases()
        gateway.stop()
        with pytest.raises((TTransportException, EOFError)):
            client.get_all_databases()
        bridge.stop()
        assert '"outcome":"not_tried"' in bridge.log_text()


def open_files(bridge: BridgeProcess) -> int:
    return len(os.listdir(f"/proc/{bridge.pid}/fd"))


def test_five_hundred_connections_leave_no_open_file(bridge):
    with connected(bridge) as client:
        client.get_all_databases()
        before = open_files(bridge)
        with contextlib.ExitStack() as silent:
            for _ in range(500):
                silent.enter_context(socket.create_connection(("127.0.0.1", bridge.port)))
            client.get_all_databases()
        while open_files(bridge) > before:
            client.get_all_databases()


def test_it_stops_when_told_and_says_nothing_secret(gateway):
    with BridgeProcess(gateway) as bridge, connected(bridge) as client:
        client.get_all_databases()
        side = http.client.HTTPConnection("127.0.0.1", bridge.side_port)
        with contextlib.closing(side):
            side.request("GET", "/healthz")
            assert side.getresponse().read() == b"ok\n"
        assert bridge.stop() == 0
        ready, *lines = bridge.log_text().splitlines()
        assert f"thrift://127.0.0.1:{bridge.port}" in ready
        (record,) = [record for record in map(json.loads, lines) if record["event"] == "bridge call"]
        assert (record["method"], record["outcome"]) == ("get_all_databases", "ok")
        assert gateway.password not in bridge.log_text()
