"""A user who sees little asks for the next events of a long log."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.structs import Database, NotificationEventRequest
from tests.attacks.test_traps_at_default_places import Shared, shared, table

HIDDEN = 5_000


@pytest.fixture
def last(shared: Shared, tmp_path: Path) -> int:
    """The number of the event before many that bob does not see; behind them is one that he does."""
    assert shared.ask("root", "create_database", Database(name="hr", ownerName="root", ownerType=1)) is None
    before: int = shared.ask("root", "get_current_notificationEventId").eventId
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.executemany(
            "INSERT INTO notifications (event_id, event_time, event_type, db_name, table_name, message) "
            "VALUES (?, 1, 'ALTER_TABLE', 'hr', ?, '{}')",
            ((before + number, f"t{number % 50}") for number in range(1, HIDDEN + 1)),
        )
        connection.execute("UPDATE catalog SET last_event_id = ?", (before + HIDDEN,))
    connection.close()
    assert shared.create("bob", table("default.mine")) is None
    return before


def asked(shared: Shared, request: NotificationEventRequest) -> tuple[list[Any], int]:
    """The events, and how often the log was looked at."""
    looks = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        looks.append(statement) if "FROM notifications" in statement else None

    event.listen(Engine, "before_cursor_execute", note)
    try:
        found = shared.ask("bob", "get_next_notification", request).events
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return [(one.eventType, one.tableName) for one in found], len(looks)


@pytest.mark.parametrize("most", [1, 7, 100])
@pytest.mark.parametrize("filters", [{}, {"dbName": "default"}, {"eventTypeList": ["CREATE_TABLE", "ALTER_TABLE"]}])
def test_a_follower_gets_past_what_it_does_not_see(
    shared: Shared,
    last: int,
    most: int,
    filters: dict[str, Any],
) -> None:
    found, looks = asked(shared, NotificationEventRequest(last, most, **filters))
    assert found == [("CREATE_TABLE", "mine")]
    assert looks <= 6


@pytest.mark.parametrize("filters", [{"dbName": "hr"}, {"eventTypeList": ["ALTER_TABLE"]}, {"tableNames": ["t1"]}])
def test_where_the_log_has_nothing_more_the_answer_is_empty(
    shared: Shared,
    last: int,
    filters: dict[str, Any],
) -> None:
    found, looks = asked(shared, NotificationEventRequest(last, 10, **filters))
    assert not found
    assert looks <= 3


__all__ = ["shared"]
