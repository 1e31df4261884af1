"""Logging of the whole program: structlog and the standard library's loggers end in the same lines on one stream."""

import logging
import sys
from typing import IO, TYPE_CHECKING, Any, Final, Literal

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
    # What these say at level info about starting, stopping and migrating is said by the program itself.
    for talkative in ("uvicorn", "alembic"):
        logging.getLogger(talkative).setLevel(max(root.level, logging.WARNING))


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
