"""Answers of several megabytes, sent in pieces: every client reads them whole, and nobody else waits meanwhile."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest
from thrift.Thrift import TMessageType
from thrift.transport.THttpClient import THttpClient

from hms_gateway.rpc.structs import METHODS
from tests.interop.long_table import COLUMNS, LongTable
from tests.interop.raw import connected, read_answer, request_head
from tests.support.apache import ApacheBinary, ApacheCompact, ApacheTJson
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sample import sample
from tests.support.server import API_PATH, GatewayServer, basic, trusting

PIECE_BYTES = 16 * 1024


def values_in(message: list[Any]) -> list[str]:
    count, *partitions = message[4]["0"]["lst"][1:]
    assert count == len(partitions)
    return [partition["1"]["lst"][2] for partition in partitions]


@pytest.mark.curl
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl (command `curl`)")
@pytest.mark.parametrize("options", [["--http1.1"], ["--http1.0"], ["--compressed"]], ids=["1.1", "1.0", "compressed"])
def test_curl_reads_a_long_answer(server: GatewayServer, long_table: LongTable, options: Sequence[str]) -> None:
    command = [
        "curl",
        "--disable",
        "-sSk",
        "-u",
        f"{server.user}:{server.password}",
        "--data",
        "@-",
        *options,
        server.url,
    ]
    finished = subprocess.run(command, input=long_table.request.encode(), capture_output=True, timeout=PATIENCE_SECONDS)
    assert finished.returncode == 0, finished.stderr
    assert values_in(json.loads(finished.stdout)) == long_table.values


@pytest.mark.parametrize("protocol_class", sample([ApacheCompact], of=[ApacheTJson, ApacheBinary, ApacheCompact]))
def test_apache_thrift_reads_a_long_answer(server: GatewayServer, long_table: LongTable, protocol_class: Any) -> None:
    """Without generated code, so also where there is no Thrift compiler."""
    method = METHODS["get_partitions"]
    transport = THttpClient(server.url, ssl_context=trusting())
    transport.setCustomHeaders(basic(server.user, server.password))
    protocol = protocol_class(transport)
    protocol.writeMessageBegin(method.name, TMessageType.CALL, 5)
    arguments = method.arguments(db_name=long_table.database, tbl_name=long_table.table, max_parts=-1)
    protocol.writeStruct(arguments, method.arguments.thrift_spec)
    protocol.writeMessageEnd()
    transport.flush()
    assert protocol.readMessageBegin() == (method.name, TMessageType.REPLY, 5)
    result = method.result()
    protocol.readStruct(result, method.result.thrift_spec)
    protocol.readMessageEnd()
    transport.close()
    assert [partition.values for partition in result.success] == [[value] for value in long_table.values]
    assert {len(partition.sd.cols) for partition in result.success} == {len(COLUMNS)}


def test_client_that_leaves_in_the_middle_of_a_long_answer(server: GatewayServer, long_table: LongTable) -> None:
    for _ in range(10):
        with connected(server) as connection:
            connection.sendall(request(server, long_table))
            assert connection.recv(PIECE_BYTES)
    status, answer = server.post(long_table.request.encode())
    assert status == 200
    assert values_in(json.loads(answer)) == long_table.values


def test_slow_reader_keeps_nobody_waiting(server: GatewayServer, long_table: LongTable) -> None:
    with connected(server) as first, connected(server) as second:
        for connection in (first, second):
            connection.sendall(request(server, long_table))
        for _ in range(20):
            status, answer = server.post(b'[1,"get_databases",1,1,{"1":{"str":"default"}}]')
            assert (status, json.loads(answer)[2]) == (200, 2)
        # An answer that has begun shows the table as it was then.
        added = partition_call("append_partition", long_table, "zzz")
        assert "0" in json.loads(server.post(added)[1])[4]
        for connection in (first, second):
            assert values_in(read_answer(connection).message) == long_table.values
    removed = partition_call("drop_partition", long_table, "zzz")
    assert json.loads(server.post(removed)[1])[4] == {"0": {"tf": 1}}


def partition_call(method: str, table: LongTable, value: str) -> bytes:
    arguments = {"1": {"str": table.database}, "2": {"str": table.table}, "3": {"lst": ["str", 1, value]}}
    return json.dumps([1, method, 1, 1, arguments]).encode()


def request(server: GatewayServer, table: LongTable) -> bytes:
    body = table.request.encode()
    return request_head(server, f"Content-Length: {len(body)}", path=API_PATH) + body
