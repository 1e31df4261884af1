"""Broken messages through both doors: every one is answered, none is a failure of the gateway, and little memory stays.

`python -m tests.attacks.fuzzer` sends as many as one wants.
"""

import asyncio
import time
from pathlib import Path

import pytest

from hms_gateway.composition.main import FREE_MEMORY_SECONDS
from tests.attacks.fuzzer import Fuzzer, attacked_gateway, resident_bytes
from tests.support.server import free_port

MESSAGES = 3_000
# The reply cache, compiled statements, pages of the program; 3,000 messages had left 30 MiB more each time.
GROWTH_BYTES_MAX = 48 << 20
# Free memory between blocks is given back so often; of a run it is up to 43 MiB, more when calls overlap more.
GIVEN_BACK_SECONDS_MAX = 2 * FREE_MEMORY_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_broken_messages_do_no_harm(seed: int, tmp_path: Path) -> None:
    thrift_port = free_port()
    with attacked_gateway(tmp_path, thrift_port) as server:
        fuzzer = Fuzzer(server, thrift_port, seed)
        asyncio.run(fuzzer.run(MESSAGES // 10))
        asyncio.run(fuzzer.run(MESSAGES))
        seen = fuzzer.seen
        assert server.is_ready()
        before = seen.resident_bytes[0]
        grown = kept_bytes(server.pid, before + GROWTH_BYTES_MAX) - before
        assert "Traceback (most recent call last)" not in server.log_text()
    assert seen.internal_errors == {}
    assert seen.failed == []
    assert seen.silent == []
    assert grown < GROWTH_BYTES_MAX


def kept_bytes(pid: int, enough: int) -> int:
    """The resident memory, as soon as it is below `enough` or free memory has been given back."""
    end = time.monotonic() + GIVEN_BACK_SECONDS_MAX
    while (resident := resident_bytes(pid)) >= enough and time.monotonic() < end:
        time.sleep(0.5)
    return resident
