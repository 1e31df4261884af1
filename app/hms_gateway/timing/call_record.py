"""The record of a call: one value, made when the call has ended, that logs, figures, costs, rates and traces read."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from hms_gateway.timing.spans import Span, TraceSpan

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
