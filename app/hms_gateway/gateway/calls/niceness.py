"""Priorities of threads, and system calls that only save time: where the system refuses one, all goes on without it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

# For one thread beside a busy event loop that is a tenth of a processor at least.
NICENESS = 10

_log = structlog.get_logger("hms_gateway.processor")
_refused: set[str] = set()


def be_nice(niceness: int = NICENESS, thread_id: int = 0) -> None:
    """Give a thread, or the calling one, a lower priority, and never a higher one; only Linux has one for each."""
    if sys.platform == "linux":
        with unless_refused("setpriority"):
            if os.getpriority(os.PRIO_PROCESS, thread_id) < niceness:
                os.setpriority(os.PRIO_PROCESS, thread_id, niceness)


@contextmanager
def unless_refused(call: str) -> Iterator[None]:
    """Leave out the rest of the block where the system refuses the call, and say so once."""
    try:
        yield
    except ProcessLookupError:
        # Of another thread, which has ended.
        raise
    except OSError as error:
        if call not in _refused:
            _refused.add(call)
            _log.debug("the system refuses a priority that saves time", call=call, problem=str(error))
