"""Holders that are stopped in the middle of their writing until somebody else has what they had, and then go on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import LeaseObject
from tests.linearizability.playing import OTHERS_OF_THE_WHOLE
from tests.support.catalog import new_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, trusting
from tests.support.warm_program import WarmModule

pytestmark = pytest.mark.slow

REFUSALS = 10


@pytest.fixture(params=OTHERS_OF_THE_WHOLE)
def gateways(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[GatewayServer, GatewayServer]]:
    """Where holders write, and where their successors do: two replicas, or the same one."""
    if request.param == "sqlite":
        with GatewayServer(tmp_path / "only") as only:
            yield only, only
        return
    url = request.getfixturevalue(f"migrated_{request.param}_database")
    with (
        GatewayServer(tmp_path / "first", database=url) as first,
        GatewayServer(tmp_path / "second", database=url) as other,
    ):
        yield first, other


def test_late_writes_are_all_refused(gateways: tuple[GatewayServer, GatewayServer]) -> None:
    first, other = gateways
    account = (other.url, (other.user, other.password), trusting())
    table = [LeaseObject("default", "t", None, "x")]
    with MetastoreClient(*account) as client:
        client.call("create_table", new_table("t"))
        stopped: list[tuple[int, WarmModule]] = []
        try:
            for presents in ("header", "context"):
                stopped.append(stopped_holder(first, presents))
            last_id = client.call("grab_lease", table, 60, 10)
            changed = client.call("get_table", "default", "t")
            changed.parameters["writer"] = "the last one"
            with MetastoreClient(*account, headers={"X-HMS-Lease-Id": str(last_id)}) as fenced:
                fenced.call("alter_table", "default", "t", changed)
            assert stopped[0][0] < stopped[1][0] < last_id
            for _, process in stopped:
                os.kill(process.pid, signal.SIGCONT)
            for lease_id, process in stopped:
                rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
                check_late_writes(lease_id, rest.splitlines())
        finally:
            for _, process in stopped:
                process.kill()
                process.wait()
        assert client.call("get_table", "default", "t").parameters["writer"] == "the last one"


def stopped_holder(gateway: GatewayServer, presents: str) -> tuple[int, WarmModule]:
    """One that has written under its lease of two seconds; it waits until its predecessor's is over."""
    account = [gateway.url, gateway.user, gateway.password]
    while True:
        process = WarmModule("tests.linearizability.holder", *account, presents, "2", str(REFUSALS))
        granted = process.stdout.readline().split()
        if granted and process.stdout.readline() == "written 1\n":
            os.kill(process.pid, signal.SIGSTOP)
            return int(granted[1]), process
        process.kill()
        process.communicate()


def check_late_writes(lease_id: int, lines: list[str]) -> None:
    """What was written was so before the others came: after the first refusal there is nothing but refusals."""
    refused = [line for line in lines if line.startswith("refused")]
    assert len(refused) == REFUSALS
    assert lines[-REFUSALS:] == refused
    assert all("InvalidOperationException" in line for line in refused)
    assert all(f"Refused: lease {lease_id} is not held any more" in line for line in refused)
