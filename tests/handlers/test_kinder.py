"""What is declared in `tests/comparison/uncompared_differences.py` as kinder or stricter than Hive."""

import pytest

from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DropPartitionsRequest,
    EnvironmentContext,
    GetTableRequest,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    PrimaryKeysRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    ShowLocksRequest,
    SQLPrimaryKey,
)
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table


@pytest.fixture
def peer(older: Peer) -> Peer:
    """A table `t` by `k` with the partitions a:b and c, and `u`, which is the same without."""
    for name in ("t", "u"):
        older.ask("create_table", new_table(name, keys=columns("k string")))
    for value in ("a:b", "c"):
        older.ask("append_partition", "default", "t", [value])
    return older


def statistics(part_name: str, column: str = "a") -> ColumnStatistics:
    values = ColumnStatisticsData(longStats=LongColumnStatsData(1, 9, 0, 5))
    described = ColumnStatisticsDesc(False, "default", "t", part_name)
    return ColumnStatistics(described, [ColumnStatisticsObj(column, "int", values)])


def test_a_name_with_a_colon_is_read(peer: Peer) -> None:
    assert peer.ask("get_partition_by_name", "default", "t", "k=a:b").values == ["a:b"]


def test_statistics_are_found_however_the_name_is_escaped(peer: Peer) -> None:
    peer.ask("update_partition_column_statistics", statistics("k=a%3Ab"))
    found = peer.ask("get_partition_column_statistics", "default", "t", "k=a%3ab", "a")
    assert found.statsDesc.partName == "k=a%3Ab"


def test_keys_of_an_exchange_in_capitals(peer: Peer) -> None:
    peer.ask("exchange_partition", {"K": "c"}, "default", "t", "default", "u")
    assert peer.ask("get_partition_names", "default", "u", -1) == ["k=c"]


def test_locks_and_keys_of_names_in_capitals(peer: Peer) -> None:
    component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, "default", "t")
    peer.ask("lock", LockRequest([component], 0, "ann", "host"))
    assert len(peer.ask("show_locks", ShowLocksRequest("DEFAULT", "T")).locks) == 1
    peer.ask("create_table_with_constraints", new_table("v"), [SQLPrimaryKey("default", "v", "a", 1, "pk")], [])
    assert len(peer.ask("get_primary_keys", PrimaryKeysRequest("DEFAULT", "V")).primaryKeys) == 1


def test_aggregated_statistics_are_stored_all_or_none(peer: Peer) -> None:
    request = SetPartitionsStatsRequest([statistics("k=c"), statistics("k=a%3Ab", "nosuch")])
    with pytest.raises((MetaException, NoSuchObjectException)):
        peer.ask("set_aggr_stats_for", request)
    with pytest.raises(NoSuchObjectException):
        peer.ask("get_partition_column_statistics", "default", "t", "k=c", "a")


def test_one_event_for_all_that_a_call_drops(peer: Peer) -> None:
    before = peer.ask("get_current_notificationEventId").eventId
    peer.ask("drop_partitions_req", DropPartitionsRequest("default", "t", RequestPartsSpec(names=["k=c", "k=a%3Ab"])))
    events = peer.ask("get_next_notification", NotificationEventRequest(before, -1)).events
    assert [event.eventType for event in events] == ["DROP_PARTITION"]


def test_truncating_what_is_not_there_or_not_owned(newer: Peer) -> None:
    newer.ask("create_table", new_table("t", keys=columns("k string")))
    with pytest.raises(MetaException):
        newer.ask("truncate_table", "default", "t", ["k=nosuch"])
    external = new_table("e", table_type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    newer.ask("create_table_with_environment_context", external, EnvironmentContext({}))
    with pytest.raises((MetaException, InvalidOperationException)):
        newer.ask("truncate_table", "default", "e", None)


def test_an_empty_catalog_is_the_only_one(peer: Peer) -> None:
    assert peer.ask("get_table_req", GetTableRequest("default", "t", catName="")).table.tableName == "t"
