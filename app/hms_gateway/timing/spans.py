"""Where the time of a call goes: its thread notes what it does, as a name and two moments of `time.perf_counter`.

Nothing is noted for threads that do not answer a call.
"""

import threading
import time
from collections.abc import Iterable
from typing import TypeAlias

Span: TypeAlias = tuple[str, float, float]

SPANS_MAX = 1_000


class _Here(threading.local):
    spans: list[Span] | None = None


_here = _Here()


def begin_spans() -> list[Span]:
    """From now on the calling thread notes its spans in the list that is returned, until `end_spans`."""
    spans: list[Span] = []
    _here.spans = spans
    return spans


def end_spans() -> None:
    _here.spans = None


def note_span(name: str, begin: float) -> float:
    """Something that the thread did for its call from `begin` to now has ended; now."""
    now = time.perf_counter()
    spans = _here.spans
    if spans is not None and len(spans) < SPANS_MAX:
        spans.append((name, begin, now))
    return now


def seconds_by_name(spans: Iterable[Span]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, begin, end in spans:
        sums[name] = sums.get(name, 0.0) + end - begin
    return sums
