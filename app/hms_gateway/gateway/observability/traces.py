"""Traces of calls: which calls are traced, and what is known of those that have ended until a thread exports it.

The event loop makes one value for each of them and never waits: what the exporter does not take in time is left out and
counted. `trace_export` makes spans of the values; it is loaded only where traces are exported.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

import structlog

from hms_gateway.runtime.call_record import CallRecord, Trace, TraceParent
from hms_gateway.runtime.settings import SettingsError

# Of calls that wait for the exporter; a span takes about 300 bytes.
SPANS_WAITING_MAX = 20_000
SPANS_AT_ONCE = 512
EXPORT_EVERY_SECONDS = 1.0
# How long a stopping process waits for a collector.
CLOSE_SECONDS_MAX = 5.0

_TRACE_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1

_log = structlog.get_logger("hms_gateway.traces")


Export = Callable[[Sequence[CallRecord]], bool]
"""Whether the collector has taken them. Called by one thread, for which it may take its time."""


def check_installed() -> None:
    """Raises SettingsError where what `trace_export` imports is missing."""
    from importlib.util import find_spec

    try:
        is_there = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise SettingsError("otel.endpoint needs packages that are missing: pip install 'hms-gateway[otel]'")


def parse_trace_parent(header: bytes) -> TraceParent | None:
    """The header `traceparent`; None for one that is broken."""
    found = _TRACE_PARENT.fullmatch(header)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more is not None):
        return None
    parent = TraceParent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return parent if parent.trace_id and parent.span_id else None


class Traces:
    """`begin` and `end` are for the event loop's thread. `share` of the calls without a parent are traced."""

    def __init__(self, export: Export, share: float, random: Random | None = None) -> None:
        self._export = export
        self._share = share
        self._random = random or Random()
        self._waiting: deque[CallRecord] = deque()
        # Each is counted by one thread only.
        self._given = self._left_out = 0
        self._taken = self._refused = 0
        self.exported = 0
        self._wake = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Spans that the collector has not got."""
        return self._left_out + self._refused

    def begin(self, parents: Sequence[bytes], states: Sequence[bytes]) -> Trace | None:
        """The values of a request's headers `traceparent` and `tracestate`; None for a call that is not traced."""
        parent = parse_trace_parent(parents[0]) if len(parents) == 1 else None
        if parent is None:
            return _WITHOUT_PARENT if self._random.random() < self._share else None
        return Trace(parent, b",".join(states).decode("latin-1")) if parent.is_sampled else None

    def end(self, record: CallRecord) -> None:
        """Have a call exported, if it is traced."""
        if record.trace is None:
            return
        # The thread of a call that was given up goes on.
        record.spans, record.notes = (*record.spans,), (*record.notes,)
        count = _span_count(record)
        if self._given - self._taken + count > SPANS_WAITING_MAX:
            self._left_out += count
            return
        self._given += count
        self._waiting.append(record)
        if self._given - self._taken > SPANS_AT_ONCE and not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Export what is left, if that does not take long."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            self._wake.wait(EXPORT_EVERY_SECONDS)
            self._wake.clear()
            is_closing = self._is_closing
            while self._waiting:
                self._export_some()

    def _export_some(self) -> None:
        calls: list[CallRecord] = []
        count = 0
        while self._waiting and count < SPANS_AT_ONCE:
            calls.append(self._waiting.popleft())
            count += _span_count(calls[-1])
        try:
            is_taken = self._export(calls)
        except Exception as error:
            _log.error("spans cannot be exported", problem=repr(error))
            is_taken = False
        if is_taken:
            self.exported += count
        else:
            self._refused += count
        # They count as waiting until now: what is being exported takes memory too.
        self._taken += count


def _span_count(record: CallRecord) -> int:
    return 1 + len(record.spans) + len(record.notes)


_WITHOUT_PARENT = Trace(None)
