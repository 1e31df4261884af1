"""Lines of a log, written in batches by a thread of its own, so that no caller waits for a disk."""

import sys
import threading
from collections import deque
from typing import Protocol

from hms_gateway.runtime.logging import render_json

FLUSH_EVERY_SECONDS = 0.2
# What is not yet written when the disk or the reader of a pipe is slow; more is counted and left out.
WAITING_MAX = 100_000


class Stream(Protocol):
    """Destination of lines."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class LineWriter:
    """Takes lines at once and writes them soon. `name` is that of the log; `lost` counts those not written."""

    def __init__(self, name: str, stream: Stream | None = None) -> None:
        self._name = name
        self._stream = stream or sys.stderr
        self._waiting: deque[str] = deque()
        self._left_out = 0
        self.lost = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name.replace(" ", "-"), daemon=True)
        self._thread.start()

    def write_line(self, line: str) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(line)
        else:
            self._left_out += 1
            self.lost += 1

    def close(self) -> None:
        """Write what is left."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            is_closing = self._closing.wait(FLUSH_EVERY_SECONDS)
            self._flush()

    def _flush(self) -> None:
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        taken, left_out = len(lines), self._left_out
        if left_out:
            self._left_out = 0
            lines.append(
                render_json(None, "", {"event": f"{self._name} too slow", "level": "warning", "calls": left_out})
            )
        if not lines:
            return
        try:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # The reader of a pipe has gone. Serving goes on. The line about those before is no call.
            self._left_out += taken + left_out
            self.lost += taken
