"""Broken messages through every door: all are answered, none is a failure of the gateway, and little memory stays.

`python -m tests.attacks.fuzzer` sends as many as one wants.
"""

import asyncio
import time
from pathlib import Path

import pytest

from hms_gateway.composition.main import FREE_MEMORY_SECONDS
from tests.attacks.fuzzer import Fuzzer, attacked, resident_bytes
from tests.support.scale import SCALE

MESSAGES = 3_000 * SCALE
# The reply cache, compiled statements, pages of the program; 3,000 messages had left 30 MiB more each time.
GROWTH_BYTES_MAX = 48 << 20
# Free memory between blocks is given back so often; of a run it is up to 43 MiB, more when calls overlap more.
GIVEN_BACK_SECONDS_MAX = 2 * FREE_MEMORY_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "grants"), [(1, False), (2, True)])
def test_broken_messages_do_no_harm(seed: int, grants: bool, tmp_path: Path) -> None:
    with attacked(tmp_path, grants=grants) as gateway:
        server = gateway.server
        fuzzer = Fuzzer(gateway, seed)
        asyncio.run(fuzzer.run(MESSAGES // 10))
        asyncio.run(fuzzer.run(MESSAGES))
        seen = fuzzer.seen
        assert server.is_ready()
        before = seen.resident_bytes[0]
        grown = kept_bytes(server.pid, before + GROWTH_BYTES_MAX) - before
        assert not gateway.has_traceback()
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
