"""Number of units of work of a store, and the time that their callers waited for them."""

import threading

from hms_gateway.timing.spans import note_span


class WorkTimes:
    """Counted by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts = {"read": 0, "write": 0}
        self.seconds = {"read": 0.0, "write": 0.0}

    def note(self, kind: str, begin: float) -> None:
        """A unit of work that began at `begin`, by `time.perf_counter`, has ended; also a span of its call."""
        seconds = note_span(kind, begin) - begin
        with self._lock:
            self.counts[kind] += 1
            self.seconds[kind] += seconds
