"""Who made which change: noted in the row of its event, and kept in a row of its own when the event is forgotten."""

from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select

from hms_gateway.metastore.ports.trail import ChangeSelection, MadeChange
from hms_gateway.metastore.vocabulary.names import EventId
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.schema.catalog import CHANGES, NOTIFICATIONS
from hms_gateway.storage.sql.texts import is_storable

_COLUMNS: Final = ("event_id", "event_time", "event_type", "db_name", "table_name", "principal", "actor")


def keep_changes(connection: Connection, end: EventId) -> None:
    """Keep who made the changes of the events before `end`, which are about to be deleted."""
    columns = [NOTIFICATIONS.c[name] for name in _COLUMNS]
    noted = select(*columns).where(NOTIFICATIONS.c.event_id < end, NOTIFICATIONS.c.principal.is_not(None))
    connection.execute(insert(CHANGES).from_select(list(_COLUMNS), noted))


def delete_changes_before(connection: Connection, seconds: int) -> int:
    """Forget who made the changes before that time, of those whose events are forgotten; how many."""
    return connection.execute(delete(CHANGES).where(CHANGES.c.event_time < seconds)).rowcount


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
