"""One line per call, written by a thread of its own: the event loop makes the line, 1 µs, and never waits for a disk.

Making the lines in that thread too would be no cheaper and stop the loop for milliseconds, as only one of them can run.
Lines look like structlog's in `runtime.logging` and go to the same stream, but skip its processors, which would cost a
cached call more than its answer. Credentials never come here: a record has no headers.
"""

import datetime
import time
from collections.abc import Callable
from functools import lru_cache
from typing import IO

import msgspec

from hms_gateway.runtime.line_writer import LineWriter
from hms_gateway.runtime.logging import LogFormat, printable
from hms_gateway.timing.call_record import CallRecord

NAME_CHARACTERS_MAX = 256

_encode = msgspec.json.Encoder().encode


class AccessLog(LineWriter):
    """Writes records to a stream in the background. `close` writes what is left."""

    def __init__(self, log_format: LogFormat = "json", stream: IO[str] | None = None) -> None:
        self._render: Callable[[CallRecord], str] = _json_line if log_format == "json" else _text_line
        super().__init__("access log", stream)

    def write(self, record: CallRecord) -> None:
        self.write_line(self._render(record))


class _Second(msgspec.Struct):
    """The text of the second that was formatted last; most lines fall into the same one."""

    number: int = -1
    text: str = ""


_second = _Second()


def _timestamp(moment: float) -> str:
    number = int(moment)
    if number != _second.number:
        _second.text = datetime.datetime.fromtimestamp(number, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second.number = number
    return f"{_second.text}.{int((moment - number) * 1e6):06d}Z"


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """A JSON string, truncated to 256 characters; cached, since names repeat."""
    return _encode(text[:NAME_CHARACTERS_MAX]).decode()


def _shown(text: str) -> str:
    """One word, in quotes where a caller's text would be several, or be taken for what is missing."""
    text = text[:NAME_CHARACTERS_MAX]
    if text == "-" or " " in text or '"' in text:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{printable(quoted)}"'
    return printable(text) or "-"


def _json_line(record: CallRecord) -> str:
    """A request id consists of letters, digits and a few signs that need no escaping."""
    return (
        f'{{"timestamp":"{_timestamp(record.time)}","level":"info","event":"call","request_id":"{record.request_id}",'
        f'"method":{_quoted(record.method)},"user":{_quoted(record.user)},"ms":{record.seconds * 1000:.3f},'
        f'"bytes_in":{record.bytes_in},"bytes_out":{record.bytes_out},"outcome":{_quoted(record.outcome)},'
        f'"status":{record.status},"address":{_quoted(record.address)},'
        f'"cached":{"true" if record.cached else "false"}}}'
    )


def _text_line(record: CallRecord) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(record.time))
    cached = " cached" if record.cached else ""
    user, method, outcome = map(_shown, (record.user, record.method, record.outcome))
    return (
        f"{clock} {record.address} {user} {method} {outcome} {record.status} "
        f"{record.seconds * 1000:.1f} ms {record.bytes_in}+{record.bytes_out} bytes{cached} {record.request_id}"
    )
