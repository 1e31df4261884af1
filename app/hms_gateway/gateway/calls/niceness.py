"""Threads that only compute, and let everything else go first."""

import os
import sys
import threading

# For one thread beside a busy event loop that is a tenth of a processor at least.
NICENESS = 10


def be_nice() -> None:
    """Give the calling thread a lower priority; only Linux has one for each thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
