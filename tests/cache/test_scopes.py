"""Which part of the catalog a reply depends on."""

import pytest

from hms_gateway.cache.scopes import scopes_changed, scopes_read
from hms_gateway.metastore.ports.store import Event, EventId, StoredEvent
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import (
    METHODS,
    ForeignKeysRequest,
    GetDatabaseRequest,
    GetPartitionsByNamesRequest,
    GetTablesRequest,
    PartitionsRequest,
    PrimaryKeysRequest,
    TableStatsRequest,
)

OF_T = (("table", "d", "t"),)


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


@pytest.mark.parametrize(
    ("method", "values", "scopes"),
    [
        ("get_database_req", (GetDatabaseRequest("D"),), (("database", "d"),)),
        ("get_partitions_ps_with_auth", ("D", "T", [""], -1, "alice", []), OF_T),
        ("get_partitions_req", (PartitionsRequest(dbName="D", tblName="T"),), OF_T),
        ("fetch_partition_names_req", (PartitionsRequest(dbName="D", tblName="T"),), OF_T),
        ("get_partitions_by_names_req", (GetPartitionsByNamesRequest("D", "T", []),), OF_T),
        ("get_table_statistics_req", (TableStatsRequest("D", "T", ["c"]),), OF_T),
        ("get_primary_keys", (PrimaryKeysRequest("D", "T"),), OF_T),
        ("get_foreign_keys", (ForeignKeysRequest(None, None, "D", "T"),), OF_T),
        # Which tables refer to this one is not seen in the events of this one.
        ("get_foreign_keys", (ForeignKeysRequest("D", "T", None, None),), ()),
        ("get_table_objects_by_name_req", (GetTablesRequest("D", ["T"]),), (("database", "d"), *OF_T)),
        # What a pattern matches changes with every table.
        ("get_table_objects_by_name_req", (GetTablesRequest("D", tablesPattern="*"),), ()),
        ("get_partitions_req", (None,), ()),
    ],
)
def test_requests_depend_on_what_they_name(method, values, scopes) -> None:
    assert scopes_read(method, METHODS[method].arguments(*values)) == scopes


def test_each_cacheable_method_names_what_its_reply_depends_on() -> None:
    """Without a name nothing would be kept, which no other test sees."""
    for method, facts in method_facts().items():
        of_all = facts.cached_by == "databases" or method == "get_all_functions"
        assert bool(facts.scope_paths) is (bool(facts.cached_by) and not of_all), method
