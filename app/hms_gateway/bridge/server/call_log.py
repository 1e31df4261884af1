"""One line per call, like the gateway's, written in batches by a thread of its own."""

import datetime
from typing import IO

from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.logging import LineWriter, render_json


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
