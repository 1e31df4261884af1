"""Methods on what query engines keep in the metastore: runtime statistics, scheduled queries, replication metrics."""

from hms_gateway.catalog.arguments import database_name
from hms_gateway.catalog.registry.runtime_records import RuntimeRecordService
from hms_gateway.catalog.registry.scheduled_queries import ScheduledQueryService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    GetAllWriteEventInfoRequest,
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    ReplicationMetricList,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
    WriteEventInfo,
)


class RuntimeRecords:
    def __init__(self, notes: RuntimeRecordService, queries: ScheduledQueryService) -> None:
        self._notes = notes
        self._queries = queries

    def add_runtime_stats(self, call: Call, stat: RuntimeStat) -> None:
        self._notes.add_runtime_statistic(stat)

    def get_runtime_stats(self, call: Call, rqst: GetRuntimeStatsRequest) -> list[RuntimeStat]:
        request = required(rqst, "rqst")
        return self._notes.runtime_statistics(request.maxWeight, request.maxCreateTime)

    def scheduled_query_poll(self, call: Call, request: ScheduledQueryPollRequest) -> ScheduledQueryPollResponse:
        return self._queries.poll(required(request, "request").clusterNamespace)

    def scheduled_query_maintenance(self, call: Call, request: ScheduledQueryMaintenanceRequest) -> None:
        given = required(request, "request")
        self._queries.maintain(given.type, given.scheduledQuery)

    def scheduled_query_progress(self, call: Call, info: ScheduledQueryProgressInfo) -> None:
        self._queries.progress(info)

    def get_scheduled_query(self, call: Call, scheduleKey: ScheduledQueryKey) -> ScheduledQuery:
        return self._queries.get(scheduleKey)

    def add_replication_metrics(self, call: Call, replicationMetricList: ReplicationMetricList) -> None:
        self._notes.put_metrics(required(replicationMetricList, "replicationMetricList").replicationMetricList)

    def get_replication_metrics(self, call: Call, rqst: GetReplicationMetricsRequest) -> ReplicationMetricList:
        request = required(rqst, "rqst")
        found = self._notes.metrics(request.scheduledExecutionId, request.policy, request.dumpExecutionId)
        return ReplicationMetricList(found)

    def get_all_write_event_info(self, call: Call, request: GetAllWriteEventInfoRequest) -> list[WriteEventInfo]:
        given = required(request, "request")
        return self._notes.write_events(given.txnId, database_name(given.dbName), given.tableName)
