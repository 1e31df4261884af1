"""The notification log, whose newest event id is the catalog's version (design D7), and announced directory moves."""

import zlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, bindparam, case, delete, func, insert, literal, null, select

from hms_gateway.metastore.changes.events import COMMIT_TXN
from hms_gateway.metastore.ports.store import (
    ChangeSelection,
    Event,
    EventId,
    EventSelection,
    MadeChange,
    PendingMove,
    StoredEvent,
    TableId,
)
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.dialects.statements import ChangesQuery, Rows, Statement
from hms_gateway.storage.schema.catalog import CATALOG, CHANGES, NOTIFICATIONS, PENDING_MOVES
from hms_gateway.storage.sql.filter_sql import in_catalog, is_among
from hms_gateway.storage.sql.repository import Repository, check_text, is_storable

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
_MESSAGES: Final = (NOTIFICATIONS.c.message, NOTIFICATIONS.c.compressed_message)
_NO_MESSAGES: Final = (literal(""), null())
_IS_COMMIT: Final = NOTIFICATIONS.c.event_type == COMMIT_TXN
_CHANGES = (
    select(
        *_HEADERS,
        case((_IS_COMMIT, NOTIFICATIONS.c.message)),
        case((_IS_COMMIT, NOTIFICATIONS.c.compressed_message)),
    )
    .where(NOTIFICATIONS.c.event_id > bindparam("after"))
    .order_by(NOTIFICATIONS.c.event_id)
)


class EventReads(Repository):
    def current_event_id(self) -> EventId:
        ((newest,),) = self._run_together([Statement(_LAST_EVENT_ID, {})])[0]
        return EventId(newest)

    def events_after(self, event_id: EventId, limit: int | None = None) -> list[StoredEvent]:
        return self.events(EventSelection(event_id, limit=limit))

    def events(self, selection: EventSelection) -> list[StoredEvent]:
        conditions = self._event_conditions(selection)
        if conditions is None:
            return []
        messages = _MESSAGES if selection.has_messages else _NO_MESSAGES
        statement = (
            select(*_HEADERS, *messages).where(*conditions).order_by(NOTIFICATIONS.c.event_id).limit(selection.limit)
        )
        return [
            _stored_event((*header, _message(message, compressed)))
            for *header, message, compressed in self._connection.execute(statement)
        ]

    def count_events(self, selection: EventSelection) -> int:
        conditions = self._event_conditions(selection)
        if conditions is None:
            return 0
        counted = select(NOTIFICATIONS.c.event_id).where(*conditions).limit(selection.limit).subquery()
        return self._connection.execute(select(func.count()).select_from(counted)).scalar_one()

    def first_events(self, selection: EventSelection) -> list[tuple[str, str | None, EventId]]:
        conditions = self._event_conditions(selection)
        if conditions is None:
            return []
        about = NOTIFICATIONS.c.db_name, NOTIFICATIONS.c.table_name
        statement = select(*about, func.min(NOTIFICATIONS.c.event_id)).where(*conditions).group_by(*about)
        return [(db_name, tbl_name, EventId(first)) for db_name, tbl_name, first in self._connection.execute(statement)]

    def _event_conditions(self, selection: EventSelection) -> list[ColumnElement[bool]] | None:
        """None when no event can match."""
        conditions: list[ColumnElement[bool]] = [NOTIFICATIONS.c.event_id > selection.after]
        if selection.up_to is not None:
            conditions.append(NOTIFICATIONS.c.event_id <= selection.up_to)
        if selection.db_name is not None:
            if not is_storable(selection.db_name):
                return None
            conditions.append(NOTIFICATIONS.c.db_name == selection.db_name)
        conditions += in_catalog(NOTIFICATIONS.c.db_name, selection.prefix, None, self._dialect)
        for column, texts in (
            (NOTIFICATIONS.c.table_name, selection.table_names),
            (NOTIFICATIONS.c.event_type, selection.types),
        ):
            if texts is not None:
                conditions.append(is_among(column, texts, self._dialect))
        if selection.skipped_types:
            conditions.append(~is_among(NOTIFICATIONS.c.event_type, selection.skipped_types, self._dialect))
        return conditions

    def pending_moves(self) -> list[PendingMove]:
        return found_moves(self._run_together([PENDING])[0])


class EventWrites(EventReads):
    def delete_events_before(self, seconds: int, count_max: int) -> int:
        ids = select(NOTIFICATIONS.c.event_id).order_by(NOTIFICATIONS.c.event_id)
        first_kept = self._connection.execute(ids.where(NOTIFICATIONS.c.event_time >= seconds).limit(1)).scalar()
        first = self._connection.execute(ids.limit(1)).scalar()
        if first is None:
            return 0
        end = min(self.current_event_id() if first_kept is None else first_kept, first + count_max)
        # Who made the changes outlives their events.
        columns = [NOTIFICATIONS.c[name] for name in _COLUMNS]
        noted = select(*columns).where(NOTIFICATIONS.c.event_id < end, NOTIFICATIONS.c.principal.is_not(None))
        self._connection.execute(insert(CHANGES).from_select(list(_COLUMNS), noted))
        return self._connection.execute(delete(NOTIFICATIONS).where(NOTIFICATIONS.c.event_id < end)).rowcount

    def delete_changes_before(self, seconds: int) -> int:
        """Forget who made the changes before that time, of those whose events are forgotten; how many."""
        return self._connection.execute(delete(CHANGES).where(CHANGES.c.event_time < seconds)).rowcount

    def insert_pending_move(self, table_id: TableId, source: str, target: str) -> int:
        check_text("location", source)
        check_text("location", target)
        values = {"table_id": table_id, "source": source, "target": target}
        return self._inserted_id(insert(PENDING_MOVES).values(values))


PENDING: Final = Statement(select(PENDING_MOVES).order_by(PENDING_MOVES.c.move_id), {})


def found_moves(rows: Rows) -> list[PendingMove]:
    """The moves of the rows of PENDING."""
    return [PendingMove(move_id, TableId(table_id), source, target) for move_id, table_id, source, target in rows]


def change_headers(connection: Connection, event_id: EventId) -> list[StoredEvent]:
    """The events after `event_id` without their messages, but for commits, which say what is committed."""
    return _changes(connection.execute(CHANGES_QUERY.sql, {"after": event_id}).all())


def _changes(rows: Rows) -> list[StoredEvent]:
    return [_stored_event((*header, _message(message or "", compressed))) for *header, message, compressed in rows]


def _message(message: str, compressed: bytes | None) -> str:
    return message if compressed is None else zlib.decompress(compressed).decode()


def _stored_event(row: Sequence[Any]) -> StoredEvent:
    event_id, event_time, event_type, db_name, table_name, old_db, old_table, message = row
    renamed_from = None if old_table is None else (old_db, old_table)
    return StoredEvent(EventId(event_id), event_time, Event(event_type, db_name, table_name, message, renamed_from))


CHANGES_QUERY: Final = ChangesQuery(_CHANGES, _changes)


_COLUMNS: Final = ("event_id", "event_time", "event_type", "db_name", "table_name", "principal", "actor")


def changes_made(connection: Connection, selection: ChangeSelection) -> list[MadeChange]:
    """The newest first."""
    found = _found(connection, NOTIFICATIONS, selection, selection.limit)
    found += _found(connection, CHANGES, selection, selection.limit - len(found))
    return found


def _found(connection: Connection, table: Table, selection: ChangeSelection, limit: int) -> list[MadeChange]:
    texts = (selection.user, selection.db_name, selection.table_name)
    if limit <= 0 or not all(text is None or is_storable(text) for text in texts):
        return []
    conditions: list[ColumnElement[bool]] = [table.c.principal.is_not(None)]
    for name, value in (("principal", texts[0]), ("db_name", texts[1]), ("table_name", texts[2])):
        if value is not None:
            conditions.append(table.c[name] == value)
    if selection.since is not None:
        conditions.append(table.c.event_time >= selection.since)
    if selection.until is not None:
        conditions.append(table.c.event_time <= selection.until)
    if selection.before is not None:
        conditions.append(table.c.event_id < selection.before)
    statement = select(*(table.c[name] for name in _COLUMNS)).where(*conditions)
    rows = connection.execute(statement.order_by(table.c.event_id.desc()).limit(limit))
    return [_made_change(*row) for row in rows]


def _made_change(
    event_id: int, seconds: int, event_type: str, db_name: str, table_name: str | None, principal: str, actor: Any
) -> MadeChange:
    who = Actor(principal) if actor is None else msgspec.json.decode(actor, type=Actor)
    return MadeChange(EventId(event_id), seconds, event_type, db_name, table_name, who)
