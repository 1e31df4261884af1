"""One line per call, like the gateway's, written in batches by a thread of its own."""

import datetime
from typing import IO, NamedTuple

from hms_gateway.runtime.line_writer import LineWriter
from hms_gateway.runtime.logging import render_json


class CallRecord(NamedTuple):
    """One call. `request_id` is the gateway's; `problem` is empty when the call was answered.

    `cached` is whether the reply cache of this process answered it, `about` are the call's objects, `groups` the
    caller's, `real_user` is who has logged in for it, and `partitions` is how many the call is paid for by; a bridge
    knows none of them. `tried_user` is whose password the client brought, as long as it has not been right.
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
    about: tuple[object, ...] = ()
    groups: frozenset[str] = frozenset()
    partitions: int = 0
    real_user: str = ""
    tried_user: str = ""


class CallLog(LineWriter):
    """Takes records at once, writes them soon. `close` writes what is left."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__("call log", stream)

    def write(self, record: CallRecord) -> None:
        self.write_line(_line(record))


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
