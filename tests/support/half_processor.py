"""Runs a command with half a processor: it is stopped half of the time, by a child that ends with it."""

import os
import signal
import sys
import time
from contextlib import suppress

PAUSE_SECONDS = 0.01


def slow_down(process: int) -> None:
    """Until the parent is another process."""
    while os.getppid() == process:
        for number in (signal.SIGSTOP, signal.SIGCONT):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(process, number)
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    command = os.getpid()
    if os.fork() == 0:
        slow_down(command)
    else:
        os.execvp(sys.argv[1], sys.argv[1:])
