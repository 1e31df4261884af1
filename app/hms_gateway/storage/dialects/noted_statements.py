"""Statements that SQLAlchemy runs, noted for the traces of calls; those past it note themselves."""

import time
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event

from hms_gateway.timing.spans import current_notes

_BEGIN: Final = "statement began at"


def system_of(url: URL) -> str:
    """The database's name in traces (`db.system` of OpenTelemetry)."""
    return url.get_backend_name()


def note_statements(engine: Engine) -> None:
    """From now on the statements of `engine` are noted."""

    @event.listens_for(engine, "before_cursor_execute")
    def _began(connection: Connection, *_: Any) -> None:
        connection.info[_BEGIN] = time.perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def _ended(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        notes = current_notes()
        if notes is not None:
            notes.add("sql", connection.info[_BEGIN], statement)
