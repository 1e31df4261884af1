"""Broken messages through both doors: every one is answered, none is a failure of the gateway, and little memory stays.

`python -m tests.attacks.fuzzer` sends as many as one wants.
"""

import asyncio
from pathlib import Path

import pytest

from tests.attacks.fuzzer import Fuzzer, attacked_gateway
from tests.support.server import free_port

MESSAGES = 3_000
# The reply cache, compiled statements and free memory between blocks; 3,000 messages had left 30 MiB more each time.
GROWTH_BYTES_MAX = 48 << 20


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
        assert "Traceback (most recent call last)" not in server.log_text()
    assert seen.internal_errors == {}
    assert seen.failed == []
    assert seen.silent == []
    assert seen.resident_bytes[-1] - seen.resident_bytes[0] < GROWTH_BYTES_MAX
