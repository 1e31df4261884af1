"""A gateway whose clock is ahead."""

import time
from pathlib import Path

import pytest

from hms_gateway import MetastoreClient
from tests.support.catalog import new_table
from tests.support.gateway_command import CLOCK
from tests.support.server import GatewayServer, trusting

pytestmark = pytest.mark.slow

AHEAD_SECONDS = 1_000_000


def test_the_clock_jumps_while_it_runs_and_back(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    ahead = []
    with (
        GatewayServer(tmp_path / "gateway", environment={CLOCK: str(clock)}) as gateway,
        MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting()) as client,
    ):
        for name, seconds in (("before", 0), ("jumped", AHEAD_SECONDS), ("back", 0)):
            clock.write_text(str(seconds))
            client.call("create_table", new_table(name))
            ahead.append(client.call("get_table", "default", name).createTime - time.time() > AHEAD_SECONDS / 2)
    assert ahead == [False, True, False]
