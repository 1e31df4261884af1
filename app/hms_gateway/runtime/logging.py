"""Logging of the whole program: structlog and the standard library's loggers end in the same lines on one stream.

Logs with a line for each call have a thread of their own (`LineWriter`), so that no caller waits for a disk.
"""

import logging
import sys
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

LogFormat = Literal["json", "text"]

_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def format_for_stderr(chosen: LogFormat | None) -> LogFormat:
    """The chosen format; without a choice it is for whom standard error is for."""
    return chosen or ("text" if sys.stderr.isatty() else "json")


def configure_logging(level: str = "info", log_format: LogFormat = "json", stream: IO[str] | None = None) -> None:
    """Send everything logged to `stream` (standard error by default), one JSON object per line or text for people."""
    import structlog  # commands that log nothing start without it

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_renderers(log_format))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The program itself reports its start and stop.
    logging.getLogger("uvicorn").setLevel(max(root.level, logging.WARNING))


def render_json(_logger: "WrappedLogger | None", _name: str, event: "EventDict") -> str:
    """One line of JSON; values that JSON does not know appear as their repr."""
    return _encode(event).decode()


def on_one_line(_logger: "WrappedLogger", _name: str, event: "EventDict") -> "EventDict":
    """Texts of callers begin no line and move no cursor: what cannot be printed is escaped, as JSON does."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def printable(text: str, kept: str = "") -> str:
    """`text` with the escapes of JSON in place of line ends and of what else cannot be printed, but for `kept`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else _ESCAPES.get(one) or _escaped(one) for one in text)


def _escaped(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _renderers(log_format: LogFormat) -> "list[Processor]":
    import structlog

    remove: Any = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if log_format == "text":
        # The default shows the values of variables, passwords and tokens among them.
        plain = structlog.dev.plain_traceback
        return [remove, on_one_line, structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]
    return [remove, structlog.processors.format_exc_info, render_json]


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
