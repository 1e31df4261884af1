"""The notification log, whose newest event id is the catalog's version (design D7), and announced directory moves."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from app.clock import Clock
from app.metastore.ports import Event, EventId, PendingMove, StoredEvent, TableId
from app.storage.errors import check_text
from app.storage.repository import Repository
from app.storage.schema import CATALOG, NOTIFICATIONS, PENDING_MOVES

_LAST_EVENT_ID = select(CATALOG.c.last_event_id)
_HEADERS = (
    NOTIFICATIONS.c.event_id,
    NOTIFICATIONS.c.event_time,
    NOTIFICATIONS.c.event_type,
    NOTIFICATIONS.c.db_name,
    NOTIFICATIONS.c.table_name,
    NOTIFICATIONS.c.renamed_from_db,
    NOTIFICATIONS.c.renamed_from_table,
)


class EventReads(Repository):
    def current_event_id(self) -> EventId:
        return EventId(self._connection.execute(_LAST_EVENT_ID).scalar_one())

    def events_after(self, event_id: EventId, limit: int | None = None) -> list[StoredEvent]:
        statement = (
            select(*_HEADERS, NOTIFICATIONS.c.message)
            .where(NOTIFICATIONS.c.event_id > event_id)
            .order_by(NOTIFICATIONS.c.event_id)
            .limit(limit)
        )
        return [_stored_event(row) for row in self._connection.execute(statement)]

    def pending_moves(self) -> list[PendingMove]:
        rows = self._connection.execute(select(PENDING_MOVES).order_by(PENDING_MOVES.c.move_id))
        return [PendingMove(row.move_id, TableId(row.table_id), row.source, row.target) for row in rows]


class EventWrites(EventReads):
    """Events are collected and written at the end of the unit of work, whose ids nobody else can take meanwhile."""

    def __init__(self, connection: Connection, last_event_id: EventId, clock: Clock) -> None:
        super().__init__(connection)
        self.last_event_id = last_event_id
        self._clock = clock
        self._unwritten: list[dict[str, object]] = []

    def append_event(self, event: Event) -> EventId:
        old_db, old_table = event.renamed_from or (None, None)
        for text in (event.event_type, event.db_name, event.table_name, event.message):
            check_text("notification event", text)
        self.last_event_id = EventId(self.last_event_id + 1)
        self._unwritten.append(
            {
                "event_id": self.last_event_id,
                "event_time": self._clock.seconds(),
                "event_type": event.event_type,
                "db_name": event.db_name,
                "table_name": event.table_name,
                "renamed_from_db": old_db,
                "renamed_from_table": old_table,
                "message": event.message,
            }
        )
        return self.last_event_id

    def write_events(self) -> None:
        """Write the collected events' rows; the catalog's version follows when the batch commits."""
        if self._unwritten:
            self._connection.execute(insert(NOTIFICATIONS), self._unwritten)
            self._unwritten = []

    def current_event_id(self) -> EventId:
        return self.last_event_id

    def events_after(self, event_id: EventId, limit: int | None = None) -> list[StoredEvent]:
        self.write_events()
        return super().events_after(event_id, limit)

    def insert_pending_move(self, table_id: TableId, source: str, target: str) -> int:
        check_text("location", source)
        check_text("location", target)
        values = {"table_id": table_id, "source": source, "target": target}
        return self._inserted_id(insert(PENDING_MOVES).values(values))

    def delete_pending_move(self, move_id: int) -> None:
        self._connection.execute(delete(PENDING_MOVES).where(PENDING_MOVES.c.move_id == move_id))


def change_headers(connection: Connection, event_id: EventId) -> list[StoredEvent]:
    """The events after `event_id` without their messages."""
    statement = select(*_HEADERS).where(NOTIFICATIONS.c.event_id > event_id).order_by(NOTIFICATIONS.c.event_id)
    return [_stored_event((*row, "")) for row in connection.execute(statement)]


def _stored_event(row: Sequence[Any]) -> StoredEvent:
    event_id, event_time, event_type, db_name, table_name, old_db, old_table, message = row
    renamed_from = None if old_table is None else (old_db, old_table)
    return StoredEvent(EventId(event_id), event_time, Event(event_type, db_name, table_name, message, renamed_from))
