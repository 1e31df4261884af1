"""What query engines keep in the metastore, as a client of Hive 4 calls it."""

import pytest

from hms_gateway.catalog.runtime_records import expire_notes
from hms_gateway.catalog.scheduled_queries import expire_executions
from hms_gateway.composition.main import Metastore
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    GetAllWriteEventInfoRequest,
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    InsertEventRequestData_v4,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    QueryState,
    ReplicationMetricList,
    ReplicationMetrics,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table
from tests.support.manual_clock import ManualClock

CREATE, ALTER, DROP = ScheduledQueryMaintenanceRequestType
KEY = ScheduledQueryKey("nightly", "cluster")
DAY = 86_400


def maintain(newer: Peer, kind: int, **fields: object) -> None:
    query = ScheduledQuery(**{"scheduleKey": KEY, **fields})  # type: ignore[arg-type]
    newer.ask("scheduled_query_maintenance", ScheduledQueryMaintenanceRequest(kind, query))


def create(newer: Peer, **fields: object) -> None:
    maintain(newer, CREATE, **{"enabled": True, "schedule": "0 0 0 * * ?", "user": "ann", "query": "Q", **fields})


def poll(newer: Peer, cluster: str = "cluster") -> ScheduledQueryPollResponse:
    found: ScheduledQueryPollResponse = newer.ask("scheduled_query_poll", ScheduledQueryPollRequest(cluster))
    return found


def tell(newer: Peer, execution_id: int | None, state: int) -> None:
    newer.ask("scheduled_query_progress", ScheduledQueryProgressInfo(execution_id, state, "engine", "because"))


def test_runtime_statistics_come_back_newest_first(newer: Peer) -> None:
    for weight in (1, 2, 3):
        newer.ask("add_runtime_stats", RuntimeStat(None, weight, b"\xff%d" % weight))
    found = newer.ask("get_runtime_stats", GetRuntimeStatsRequest(-1, -1))
    assert [(one.weight, one.payload) for one in found] == [(3, b"\xff3"), (2, b"\xff2"), (1, b"\xff1")]
    assert [one.weight for one in newer.ask("get_runtime_stats", GetRuntimeStatsRequest(3, -1))] == [3]
    assert newer.ask("get_runtime_stats", GetRuntimeStatsRequest(-1, found[-1].createTime - 1)) == []


def test_replication_metrics_are_completed_as_they_come(newer: Peer) -> None:
    def note(*metrics: ReplicationMetrics) -> None:
        newer.ask("add_replication_metrics", ReplicationMetricList(list(metrics)))

    def ask(*wanted: object) -> list[ReplicationMetrics]:
        answer = newer.ask("get_replication_metrics", GetReplicationMetricsRequest(*wanted))
        return list(answer.replicationMetricList)

    note(ReplicationMetrics(1, "p", 10, "metadata", "0 %"), ReplicationMetrics(2, "p", 11))
    note(ReplicationMetrics(1, "p", 10, None, "50 %"))
    assert ask(1) == [ReplicationMetrics(1, "p", 10, "metadata", "50 %")]
    assert [one.scheduledExecutionId for one in ask(None, "p")] == [2, 1]
    assert [one.scheduledExecutionId for one in ask(None, "p", 11)] == [2]
    assert (ask(3), ask(None, "q")) == ([], [])
    with pytest.raises(MetaException):
        ask()


def test_a_scheduled_query_is_kept(newer: Peer) -> None:
    create(newer)
    found = newer.ask("get_scheduled_query", KEY)
    assert (found.enabled, found.user, found.query) == (True, "ann", "Q")
    assert found.nextExecution % DAY == 0
    with pytest.raises(AlreadyExistsException):
        create(newer)
    with pytest.raises(InvalidInputException, match="Invalid schedule: sometimes"):
        maintain(newer, ALTER, schedule="sometimes")
    maintain(newer, ALTER, schedule="0 0 12 * * ?", user="ben")
    changed = newer.ask("get_scheduled_query", KEY)
    assert (changed.user, changed.query, changed.nextExecution % DAY) == ("ben", "Q", DAY // 2)
    maintain(newer, DROP)
    for action in (lambda: newer.ask("get_scheduled_query", KEY), lambda: maintain(newer, ALTER)):
        with pytest.raises(NoSuchObjectException):
            action()
    with pytest.raises(MetaException):
        maintain(newer, 9)


def test_a_query_that_is_due_is_handed_out_once_until_it_has_ended(newer: Peer) -> None:
    create(newer, nextExecution=1)
    assert poll(newer, "other") == ScheduledQueryPollResponse()
    handed = poll(newer)
    assert (handed.scheduleKey, handed.query, handed.user) == (KEY, "Q", "ann")
    assert poll(newer) == ScheduledQueryPollResponse()
    assert newer.ask("get_scheduled_query", KEY).nextExecution > 1
    tell(newer, handed.executionId, QueryState.EXECUTING)
    tell(newer, handed.executionId, QueryState.FINISHED)
    with pytest.raises(InvalidOperationException):
        tell(newer, handed.executionId, QueryState.FINISHED)
    maintain(newer, ALTER, nextExecution=1)
    assert poll(newer).executionId != handed.executionId
    for state, error in ((QueryState.INITED, InvalidOperationException), (77, MetaException)):
        with pytest.raises(error):
            tell(newer, 1, state)


def test_a_query_that_is_off_is_not_handed_out(newer: Peer) -> None:
    create(newer, nextExecution=1, enabled=False)
    assert poll(newer).executionId is None


def test_a_query_that_fails_again_and_again_stays_on(newer: Peer) -> None:
    create(newer)
    for _ in range(3):
        maintain(newer, ALTER, nextExecution=1)
        tell(newer, poll(newer).executionId, QueryState.FAILED)
    assert newer.ask("get_scheduled_query", KEY).enabled is True


def test_an_execution_nobody_speaks_of_has_ended(metastore: Metastore, newer: Peer) -> None:
    create(newer, nextExecution=1)
    execution = poll(newer).executionId
    clock = ManualClock(metastore.events.timestamp())
    assert expire_executions(metastore.store, clock) == 0
    clock.advance(121)
    assert expire_executions(metastore.store, clock) == 1
    with pytest.raises(InvalidOperationException):
        tell(newer, execution, QueryState.FINISHED)
    clock.advance(31 * DAY)
    assert expire_executions(metastore.store, clock) == 1


def test_what_a_transaction_wrote_is_told_when_replication_asks(metastore: Metastore, newer: Peer) -> None:
    newer.ask("create_table", new_table("t"))
    newer.ask("create_table", new_table("p", keys=columns("ds string")))
    newer.ask("add_partition", Partition(["1"], "default", "p", sd=new_table().sd))

    def written(table: str, *files: str, values: list[str] | None = None) -> WriteNotificationLogRequest:
        return WriteNotificationLogRequest(7, 3, "default", table, InsertEventRequestData_v4(False, [*files]), values)

    newer.ask("add_write_notification_log", written("t", "file:/a"))
    newer.ask("add_write_notification_log", written("T", "file:/b", "file:/c"))
    batch = [written("p", "file:/d", values=["1"]), written("p", "file:/e", values=["2"])]
    newer.ask("add_write_notification_log_in_batch", WriteNotificationLogBatchRequest("hive", "default", "p", batch))

    def told(*wanted: object) -> list[tuple[str | None, str | None, str | None]]:
        found = newer.ask("get_all_write_event_info", GetAllWriteEventInfoRequest(*wanted))
        assert all((one.writeId, one.database) == (3, "default") for one in found)
        assert all(one.tableObj is not None for one in found)
        assert [one.partition for one in found if one.partitionObj is not None] in ([], ["ds=1"])
        return [(one.table, one.partition, one.files) for one in found]

    of_table = [("t", None, "file:/a]file:/b]file:/c")]
    of_partitions = [("p", "ds=1", "file:/d"), ("p", "ds=2", "file:/e")]
    assert told(7) == of_table + of_partitions
    assert told(7, "@hive#DEFAULT", "P") == of_partitions
    assert told(7, "other") == told(8) == []
    later = ManualClock(metastore.events.timestamp() + 10 * DAY)
    assert expire_notes(metastore.store, later, MetastoreSettings()) == 3
    assert told(7) == []
