"""Keeps the threads that run Python on one processor while the process is busy.

Only one of them runs at a time, since they share the interpreter. When each runs on another processor, handing the
interpreter over means to wake a processor that is asleep or busy with something else, while its owner holds up the
others: 16 clients that change tables get half as many answers. What runs without the interpreter, such as hashing and
compressing in threads of their own, stays where it is.

Threads of calls have a lower priority there, else the kernel lets one that reads rows or waits for no interpreter go on
for milliseconds, while the event loop could answer small calls.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from hms_gateway.gateway.calls.niceness import be_nice, unless_refused

LOOK_SECONDS: Final = 1.0
BUSY_SECONDS: Final = 0.2  # of CPU in that time
# So long the event loop's thread may run anywhere.
CHOICE_SECONDS: Final = 0.1
OF_CALLS: Final = "call"
# The event loop's thread is another one.
TOGETHER: Final = (OF_CALLS, "store-writer")
# With 3 and 5 the slowest hundredth of small calls beside long lists took as long as without, with 8 a third.
NICENESS: Final = 8
NICENESS_MAX: Final = 19
# The place of the processor in /proc/thread-self/stat, behind the name.
_PROCESSOR: Final = 36


class OneProcessor:
    """Used from the thread of the event loop.

    Once a second that thread may run anywhere for a moment, so that the kernel chooses a processor that is free; the
    others follow. Does nothing where there is one processor only, or where threads cannot be kept, as on macOS.
    """

    def __init__(self, cpu_seconds: Callable[[], float] = time.process_time) -> None:
        self._everywhere: set[int] = set()
        if hasattr(os, "sched_setaffinity"):
            with unless_refused("sched_getaffinity"):
                self._everywhere = os.sched_getaffinity(0)
        self._cpu_seconds = cpu_seconds
        self._used = cpu_seconds()
        self.chosen: int | None = None

    async def run(self) -> None:
        """Look every second, as long as threads can be kept."""
        with unless_refused("sched_setaffinity"):
            while len(self._everywhere) > 1:
                await asyncio.sleep(LOOK_SECONDS)
                if self.look():
                    await asyncio.sleep(CHOICE_SECONDS)
                    self.follow()

    def look(self) -> bool:
        """Whether the process has been busy since the last look: then `follow` is next."""
        before, self._used = self._used, self._cpu_seconds()
        if self.chosen is not None and os.sched_getaffinity(0) != {self.chosen}:
            # An administrator has said where the process may run.
            self._everywhere, self.chosen = os.sched_getaffinity(0), None
        is_busy = self._used - before >= BUSY_SECONDS
        if is_busy:
            os.sched_setaffinity(0, self._everywhere)
        elif self.chosen is not None:
            self.chosen = None
            self._place(self._everywhere)
        return is_busy

    def follow(self) -> None:
        """All threads go where the kernel has put the calling one."""
        stat = Path("/proc/thread-self/stat").read_text()
        self.chosen = int(stat.rpartition(")")[2].split()[_PROCESSOR])
        self._place({self.chosen})

    def _place(self, together: set[int]) -> None:
        """A new thread begins where the one that started it runs, so the others are placed as well."""
        os.sched_setaffinity(0, together)
        lower = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, NICENESS_MAX)
        for thread_id, name in _other_threads():
            try:
                os.sched_setaffinity(thread_id, together if name in TOGETHER else self._everywhere)
                if name == OF_CALLS:
                    be_nice(lower, thread_id)
            except ProcessLookupError:
                continue  # it has ended


def _other_threads() -> Iterator[tuple[int, str]]:
    own = threading.get_ident()
    for thread in threading.enumerate():
        if thread.ident != own and thread.native_id is not None:
            yield thread.native_id, thread.name
