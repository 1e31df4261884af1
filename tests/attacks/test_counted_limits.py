"""A message that is over a limit is counted and logged by the limit's name, whichever door it comes through."""

import json
import re
import socket
from pathlib import Path

import pytest

from hms_gateway.rpc.wire import Codec, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.attacks.test_decoded_messages import added
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port

CODECS = make_codecs(Limits())
PARTITIONS = 80_000
DEPTH = 100
LIMITS = {"decoded_bytes_per_message_max": 1_000_000, "nesting_depth_max": 64}


def nested(codec: Codec) -> bytes:
    """A call with structs in structs of a field that its method does not know."""
    before, after = codec.envelope("get_all_databases", MessageType.CALL, 1)
    begin, end = (b'{"9":{"rec":', b"}}") if codec.name == "tjson" else (b"\x0c\x00\x09", b"\x00")
    inside = b"{}" if codec.name == "tjson" else b"\x00"
    return before + begin * DEPTH + inside + end * DEPTH + after


@pytest.mark.parametrize(
    ("limit", "tjson", "binary"),
    [
        (
            "decoded_bytes_per_message_max",
            added(CODECS.tjson, PARTITIONS),
            added(CODECS.binary, PARTITIONS),
        ),
        ("nesting_depth_max", nested(CODECS.tjson), nested(CODECS.binary)),
    ],
    ids=["decoded", "nested"],
)
def test_it_is_counted_and_logged(limit: str, tjson: bytes, binary: bytes, tmp_path: Path) -> None:
    thrift_port = free_port()
    settings = {"thrift_port": thrift_port, "tls": False}
    with GatewayServer(tmp_path, settings=settings, limits=LIMITS) as gateway:
        assert limit.encode() in gateway.post(tjson)[1]
        assert limit.encode() in gateway.post(binary)[1]
        assert limit.encode() in through_thrift(thrift_port, binary)
        with gateway.connection() as connection:
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
        user = gateway.user
    counted = re.findall(r'^hms_gateway_limited_total\{limit="(\w+)"\} ([0-9.]+)', metrics, re.MULTILINE)
    assert counted == [(limit, "3.0")]
    lines = [json.loads(line) for line in gateway.log_text().splitlines() if "limit reached" in line]
    # The second within ten seconds has no line. A client of the Thrift port without SASL has no name that is proven.
    assert [(line["limit"], line["user"], line["address"]) for line in lines] == [
        (limit, user, "127.0.0.1"),
        (limit, "", "127.0.0.1"),
    ]


def through_thrift(port: int, message: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(message)
        connection.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)
