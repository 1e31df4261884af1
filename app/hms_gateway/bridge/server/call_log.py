"""One line per call, like the gateway's, written in batches by a thread of its own."""

import datetime
import sys
import threading
from collections import deque
from typing import IO, NamedTuple

from hms_gateway.runtime.logging import render_json

FLUSH_EVERY_SECONDS = 0.2
WAITING_MAX = 100_000


class CallRecord(NamedTuple):
    """One call. `request_id` is the gateway's; `problem` is empty when the call was answered.

    `cached` is whether the reply cache of this process answered it; a bridge has none.
    """

    time: float
    method: str
    user: str
    seconds: float
    bytes_in: int
    bytes_out: int
    outcome: str
    address: str
    request_id: str
    problem: str
    cached: bool = False


class CallLog:
    """Takes records at once, writes them soon. `close` writes what is left."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._waiting: deque[CallRecord] = deque()
        self._left_out = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="call-log", daemon=True)
        self._thread.start()

    def write(self, record: CallRecord) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(record)
        else:
            self._left_out += 1

    def close(self) -> None:
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
            lines.append(_line(self._waiting.popleft()))
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            lines.append(render_json(None, "", {"event": "call log too slow", "level": "warning", "calls": left_out}))
        if lines:
            try:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                # The reader of a pipe has gone. Serving goes on.
                self._left_out += len(lines)


def _line(record: CallRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.time, datetime.UTC)
    fields = {
        "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
        "level": "warning" if record.problem else "info",
        "event": "bridge call",
        "method": record.method,
        "user": record.user,
        "ms": round(record.seconds * 1000, 3),
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "outcome": record.outcome,
        "address": record.address,
        "request_id": record.request_id,
    }
    if record.problem:
        fields["problem"] = record.problem
    return render_json(None, "", fields)
