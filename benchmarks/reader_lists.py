"""Cached reads of readers that say which write ids they see, beside the same reads without, on PostgreSQL and SQLite.

Over TLS, the load now on one and now on the other, so that noise hits all of them.
"""

import argparse
import contextlib
import statistics
import tempfile
from pathlib import Path

from benchmarks.load import Load, http_request, measure
from benchmarks.report import print_table
from hms_gateway import MetastoreClient
from hms_gateway.storage.migrations.revisions import migrate
from tests.support.catalog import columns, transactional_table
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import API_PATH, GatewayServer, basic, trusting

BODY = b'[1,"get_table",1,1,{"1":{"str":"default"},"2":{"str":"t"}}]'
CONNECTIONS = (1, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        postgres = PrivatePostgres()
        stack.callback(postgres.delete)
        postgres.start()
        migrate(postgres.url())
        gateways = {
            "PostgreSQL": stack.enter_context(GatewayServer(Path(folder) / "p", database=postgres.url())),
            "SQLite": stack.enter_context(GatewayServer(Path(folder) / "s")),
        }
        requests = {
            (name, kind): (gateway.port, request)
            for name, gateway in gateways.items()
            for kind, request in prepared(gateway).items()
        }
        rows = []
        for connections in CONNECTIONS:
            rows += compared(requests, connections, arguments.runs, arguments.seconds)
    print_table(
        "Cached get_table over TLS, one worker", ["connections", "", "calls/s", "p50", "p99", "of without a list"], rows
    )


def prepared(gateway: GatewayServer) -> dict[str, bytes]:
    """A request without a list, and one with."""
    with MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting()) as metastore:
        metastore.call("create_table", transactional_table(keys=columns("ds string")))
        with metastore.transaction() as txn:
            txn.allocate("default.t")
        with metastore.transaction() as txn:
            listed = txn.header("default.t")
    headers = (
        "Content-Type: application/x-thrift",
        *(f"{name}: {text}" for name, text in basic(gateway.user, gateway.password).items()),
    )
    return {
        "without a list": http_request(API_PATH, BODY, *headers),
        "with a list": http_request(API_PATH, BODY, *headers, f"x-hms-valid-write-ids: {listed}"),
    }


def compared(
    requests: dict[tuple[str, str], tuple[int, bytes]], connections: int, runs: int, seconds: float
) -> list[list[str]]:
    measured: dict[tuple[str, str], list[Load]] = {each: [] for each in requests}
    for _ in range(runs + 1):
        for each, (port, request) in requests.items():
            measured[each].append(measure(port, request, connections=connections, seconds=seconds, tls=True))
    rows = []
    for (database, kind), loads in measured.items():
        plain = measured[database, "without a list"]
        pairs = zip(loads[1:], plain[1:], strict=True)
        ratio = statistics.median(one.calls_per_second / other.calls_per_second for one, other in pairs)
        rows.append(
            [
                f"{connections}",
                f"{database}, {kind}",
                f"{statistics.median(load.calls_per_second for load in loads[1:]):,.0f}",
                f"{statistics.median(load.p50 for load in loads[1:]) * 1000:.3f} ms",
                f"{statistics.median(load.p99 for load in loads[1:]) * 1000:.3f} ms",
                f"{ratio:.2f} ×",
            ]
        )
    return rows
