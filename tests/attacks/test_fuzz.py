"""Broken messages through every door: all are answered, none is a failure of the gateway, and little memory stays.

`python -m tests.attacks.fuzzer` sends as many as one wants.
"""

import asyncio
from pathlib import Path

import pytest

from tests.attacks.fuzzer import Fuzzer, attacked, resident_bytes
from tests.support.sample import sample

MESSAGES = sample(3_000, of=30_000)
# The reply cache, compiled statements, pages of the program; free memory between blocks, more where calls overlap more.
FIRST_GROWTH_BYTES_MAX = 48 << 20
# Where that was not enough, another run leaves less. A leak of 30 MiB, as there was, stays one.
GROWTH_BYTES_MAX = 16 << 20
RUNS_MAX = 4


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "grants"), [pytest.param(1, False, marks=pytest.mark.whole), (2, True)])
def test_broken_messages_do_no_harm(seed: int, grants: bool, tmp_path: Path) -> None:
    with attacked(tmp_path, grants=grants) as gateway:
        server = gateway.server
        fuzzer = Fuzzer(gateway, seed)
        asyncio.run(fuzzer.run(MESSAGES // 10))
        seen = fuzzer.seen
        kept, allowed = seen.resident_bytes[0], FIRST_GROWTH_BYTES_MAX
        for _ in range(RUNS_MAX):
            before = kept
            asyncio.run(fuzzer.run(MESSAGES))
            kept = resident_bytes(server.pid)
            if kept < before + allowed:
                break
            allowed = GROWTH_BYTES_MAX
        assert server.is_ready()
        assert not gateway.has_traceback()
    assert seen.internal_errors == {}
    assert seen.failed == []
    assert seen.silent == []
    assert kept < before + allowed
