"""Spans of a call, and its record: one value that logs, figures, costs, rates and traces read when it has ended."""

import threading
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

# Spans of a call: its thread records each part as a name and two moments of `time.perf_counter`.
#
# Nothing is noted for threads that do not answer a call. Calls that are traced have `TraceSpans` besides, with more.
# Units of work are counted by store as well (`WorkTimes`).


Span: TypeAlias = tuple[str, float, float]

SPANS_MAX = 1_000
NOTES_MAX = 500


class TraceSpan(NamedTuple):
    """Something that was done for a call; `text` is that of `statement_count` statements that were sent together."""

    name: str
    begin: float
    end: float
    text: str = ""
    statement_count: int = 1


class TraceSpans:
    """The spans of one call. Threads take turns at it."""

    def __init__(self) -> None:
        self.parts: list[TraceSpan] = []

    def add(self, name: str, begin: float, text: str = "", statement_count: int = 1) -> float:
        """Something that was done from `begin` to now; now."""
        end = time.perf_counter()
        self.keep(TraceSpan(name, begin, end, text, statement_count))
        return end

    def keep(self, note: TraceSpan) -> None:
        if len(self.parts) < NOTES_MAX:
            self.parts.append(note)


class SharedTraceSpans(TraceSpans):
    """About what is done for several calls at once: each of them gets every note."""

    def __init__(self, of_calls: Iterable[TraceSpans]) -> None:
        super().__init__()
        self._of_calls = list(of_calls)

    def keep(self, note: TraceSpan) -> None:
        for notes in self._of_calls:
            notes.keep(note)


class _Here(threading.local):
    spans: list[Span] | None = None
    notes: TraceSpans | None = None


_here = _Here()


def begin_spans(notes: TraceSpans | None = None) -> list[Span]:
    """From now on the calling thread notes its spans in the list that is returned, until `end_spans`."""
    spans: list[Span] = []
    _here.spans = spans
    _here.notes = notes
    return spans


def end_spans() -> None:
    _here.spans = _here.notes = None


def note_span(name: str, begin: float) -> float:
    """Something that the thread did for its call from `begin` to now has ended; now."""
    now = time.perf_counter()
    spans = _here.spans
    if spans is not None and len(spans) < SPANS_MAX:
        spans.append((name, begin, now))
    return now


def current_notes() -> TraceSpans | None:
    """Of the call, or of the calls, that the thread works for; None where none of them is traced."""
    return _here.notes


def set_notes(notes: TraceSpans | None) -> None:
    """What `current_notes` gives from now on."""
    _here.notes = notes


def shared_notes(of_calls: Iterable[TraceSpans | None]) -> TraceSpans | None:
    """Of all calls that are traced; None where none is."""
    traced = [notes for notes in of_calls if notes is not None]
    return SharedTraceSpans(traced) if traced else None


def seconds_by_name(spans: Iterable[Span]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, begin, end in spans:
        sums[name] = sums.get(name, 0.0) + end - begin
    return sums


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


# The record of a call: one value, made when the call has ended, that logs, figures, costs, rates and traces read.


Objects: TypeAlias = tuple[str | tuple[str, ...], ...]
"""The databases and tables of a call: their names, or the scopes of a kept reply."""


class TraceParent(NamedTuple):
    """The span of the client that a call belongs to (W3C Trace Context)."""

    trace_id: int
    span_id: int
    is_sampled: bool


class Trace(NamedTuple):
    """A call that is traced: what it belongs to, and `tracestate` as it came."""

    parent: TraceParent | None
    state: str = ""


class CallRecord(msgspec.Struct):
    """One call that was answered, or whose client has left.

    time        of the end, in seconds since 1970; `ended` is the same by `time.perf_counter`
    method      "" where no message was read
    user        "" before authentication; `groups` are those that the login proved
    outcome     `ok`, the class of a declared exception, or a word for what went wrong; `problem` is a text about it
    status      of HTTP, 0 for Thrift
    address     of the client, with its port at a Thrift port; `peer` is what is between client and gateway
    real_user   who has logged in, where that is another one
    tried_user  whose password was sent, as long as it was not found right
    objects     that the call is about
    partitions  how many the call is paid for by; `is_paid` for a message that was read, of a known user
    """

    time: float
    ended: float
    seconds: float
    request_id: str
    method: str
    user: str
    outcome: str
    status: int
    cached: bool
    address: str
    bytes_in: int
    bytes_out: int
    objects: Objects = ()
    peer: str = ""
    groups: frozenset[str] = frozenset()
    real_user: str = ""
    tried_user: str = ""
    problem: str = ""
    partitions: int = 0
    is_paid: bool = True
    spans: Sequence[Span] = ()
    notes: Sequence[TraceSpan] = ()
    trace: Trace | None = None

    @property
    def parts(self) -> list[TraceSpan]:
        """All that was done for the call."""
        return [*(TraceSpan(*span) for span in self.spans), *self.notes]


def object_names(objects: Objects) -> list[str]:
    """The objects of a call as `db` or `db.table`."""
    names = (one if isinstance(one, str) else ".".join(one[1:]) for one in objects)
    return [name for name in dict.fromkeys(names) if name]


def object_name(objects: Objects) -> str:
    """The one object that a call counts for, "" where there is none: several tables count for their database."""
    names = object_names(objects)
    if len(names) == 1:
        return names[0]
    return min((name.partition(".")[0] for name in names), default="")
