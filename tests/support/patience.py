"""How long tests wait for what another thread or process does. Nothing waits so long when all is well."""

import time
from collections.abc import Callable

# Enough for a busy machine and a low priority, and less than pytest gives a test that hangs.
PATIENCE_SECONDS = 240.0
POLL_SECONDS = 0.002


def until(
    condition: Callable[[], object], missing: str = "did not happen", pause_seconds: float = POLL_SECONDS
) -> None:
    """Ask again and again until it is so. Fails with `missing` when patience ends."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, missing
        time.sleep(pause_seconds)
