"""Which part of the catalog a reply depends on."""

import pytest

from hms_gateway.cache.scopes import scopes_changed, scopes_read
from hms_gateway.metastore.ports.store import Event, EventId, StoredEvent
from hms_gateway.structs import METHODS


@pytest.mark.parametrize("method", ["get_fields", "get_schema"])
@pytest.mark.parametrize("name", ["t", "T.column", "t.column.field"])
def test_columns_depend_on_their_table_however_it_is_named(method: str, name: str) -> None:
    arguments = METHODS[method].arguments(db_name="@hive#D", table_name=name)
    assert scopes_read(method, arguments) == (("table", "d", "t"),)


@pytest.mark.parametrize(
    "event_type",
    [
        *("UPDATE_TBL_COL_STAT_EVENT", "DELETE_TBL_COL_STAT_EVENT"),
        *("UPDATE_PART_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"),
        *("ADD_PRIMARYKEY", "DROP_CONSTRAINT"),
    ],
)
def test_statistics_and_constraints_change_one_table(event_type: str) -> None:
    stored = StoredEvent(EventId(1), 0, Event(event_type, "D", "T", ""))
    assert scopes_changed(stored) == (("table", "d", "t"),)
