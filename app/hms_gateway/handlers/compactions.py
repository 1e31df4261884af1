"""Methods on the compaction queue, those of outside workers included."""

import json
from typing import Any

from hms_gateway.catalog.arguments import database_name, is_newer
from hms_gateway.handlers.locks import object_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    AbortCompactionRequest,
    AbortCompactionResponseElement,
    AbortCompactResponse,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetLatestCommittedCompactionInfoResponse,
    MetaException,
    OptionalCompactionInfoStruct,
    ShowCompactRequest,
    ShowCompactResponse,
    ShowCompactResponseElement,
)
from hms_gateway.txn.rules.compaction import (
    STATE_TEXTS,
    Compaction,
    CompactionDetails,
    CompactionFilter,
    CompactionState,
    parse_state,
)
from hms_gateway.txn.rules.names import fold, normalize_partition
from hms_gateway.txn.services.compaction import CompactionService


class Compactions:
    def __init__(self, compactions: CompactionService) -> None:
        self._compactions = compactions

    def compact(self, call: Call, rqst: CompactionRequest) -> None:
        self._request(rqst)

    def compact2(self, call: Call, rqst: CompactionRequest) -> CompactionResponse:
        entry, is_new = self._request(rqst)
        return CompactionResponse(entry.compaction_id, _state_text(call, entry.state), is_new)

    def show_compact(self, call: Call, rqst: ShowCompactRequest | None) -> ShowCompactResponse:
        """Without a request all of them, as Hive does."""
        request = rqst or ShowCompactRequest()
        state = None if request.state is None else parse_state(request.state)
        if request.state is not None and state is None:
            return ShowCompactResponse([])
        filter = CompactionFilter(
            compaction_id=request.id,
            db_name=None if request.dbName is None else fold(database_name(request.dbName) or ""),
            table_name=None if request.tbName is None else fold(request.tbName),
            partition_name=None if request.partName is None else normalize_partition(request.partName),
            type=None if request.type is None else _type(request.type),
            states=None if state is None else frozenset({state}),
        )
        found = self._compactions.show(filter, request.poolName, request.limit)
        return ShowCompactResponse([_shown(call, entry) for entry in found])

    def submit_for_cleanup(self, call: Call, o1: CompactionRequest, o2: int, o3: int) -> bool:
        request = required(o1, "o1")
        details = CompactionDetails(
            **_requested(request), highest_write_id=required(o2, "o2"), txn_id=required(o3, "o3")
        )
        place = object_named(request.dbname, request.tablename, request.partitionname)
        self._compactions.submit_for_cleanup(place, _type(request.type), details)
        return True

    def abort_Compactions(self, call: Call, rqst: AbortCompactionRequest) -> AbortCompactResponse:
        outcomes = self._compactions.abort(required(rqst, "rqst").compactionIds or [])
        return AbortCompactResponse(
            {
                outcome.compaction_id: AbortCompactionResponseElement(
                    outcome.compaction_id, "Success" if outcome.is_aborted else "Error", outcome.message
                )
                for outcome in outcomes
            }
        )

    def get_latest_committed_compaction_info(
        self, call: Call, rqst: GetLatestCommittedCompactionInfoRequest
    ) -> GetLatestCommittedCompactionInfoResponse:
        request = required(rqst, "rqst")
        names = None if request.partitionnames is None else [normalize_partition(one) for one in request.partitionnames]
        table = object_named(request.dbname, request.tablename)
        found = self._compactions.latest_compacted(table, names, request.lastCompactionId)
        return GetLatestCommittedCompactionInfoResponse([_info(entry) for entry in found])

    def find_next_compact(self, call: Call, workerId: str) -> OptionalCompactionInfoStruct:
        return _optional(self._compactions.take(workerId, None, None))

    def find_next_compact2(self, call: Call, rqst: FindNextCompactRequest) -> OptionalCompactionInfoStruct:
        request = required(rqst, "rqst")
        return _optional(self._compactions.take(request.workerId, request.workerVersion, request.poolName))

    def update_compactor_state(self, call: Call, cr: CompactionInfoStruct, txn_id: int) -> None:
        info = required(cr, "cr")
        changed: dict[str, Any] = {"run_as": info.runas, "highest_write_id": info.highestWriteId, "txn_id": txn_id}
        known = {name: value for name, value in changed.items() if value is not None}
        self._compactions.update(info.id or 0, **known)

    def mark_cleaned(self, call: Call, cr: CompactionInfoStruct) -> None:
        self._mark(cr, CompactionState.SUCCEEDED)

    def mark_compacted(self, call: Call, cr: CompactionInfoStruct) -> None:
        self._mark(cr, CompactionState.READY)

    def mark_failed(self, call: Call, cr: CompactionInfoStruct) -> None:
        self._mark(cr, CompactionState.FAILED)

    def mark_refused(self, call: Call, cr: CompactionInfoStruct) -> None:
        self._mark(cr, CompactionState.REFUSED)

    def set_hadoop_jobid(self, call: Call, jobId: str, cq_id: int) -> None:
        self._compactions.update(cq_id or 0, hadoop_job_id=jobId)

    def _request(self, rqst: CompactionRequest | None) -> tuple[Compaction, bool]:
        request = required(rqst, "rqst")
        place = object_named(request.dbname, request.tablename, request.partitionname)
        if place.table_name is None:
            raise MetaException("a compaction needs a table")
        return self._compactions.request(place, _type(request.type), CompactionDetails(**_requested(request)))

    def _mark(self, cr: CompactionInfoStruct | None, state: CompactionState) -> None:
        info = required(cr, "cr")
        self._compactions.mark(info.id or 0, state, info.workerId, info.errorMessage)


def _type(number: int | None) -> CompactionType:
    try:
        return CompactionType(number or 0)
    except ValueError:
        raise MetaException(f"unknown compaction type {number}") from None


def _requested(request: CompactionRequest) -> dict[str, Any]:
    return {
        "run_as": request.runas,
        "properties": request.properties,
        "initiator_id": request.initiatorId,
        "initiator_version": request.initiatorVersion,
        "pool_name": request.poolName,
        "bucket_count": request.numberOfBuckets,
        "order_by": request.orderByClause,
    }


def _state_text(call: Call, state: CompactionState) -> str:
    if state is CompactionState.ATTEMPTED and not is_newer(call):
        return "attempted"
    return STATE_TEXTS[state]


def _optional(entry: Compaction | None) -> OptionalCompactionInfoStruct:
    return OptionalCompactionInfoStruct(None if entry is None else _info(entry))


def _info(entry: Compaction) -> CompactionInfoStruct:
    details = entry.details
    return CompactionInfoStruct(
        id=entry.compaction_id,
        dbname=entry.target.db_name,
        tablename=entry.target.table_name or "",
        partitionname=entry.target.partition_name,
        type=entry.type,
        runas=details.run_as,
        properties=None if details.properties is None else json.dumps(dict(details.properties)),
        toomanyaborts=details.has_too_many_aborts,
        state=entry.state.value,
        workerId=details.worker_id,
        start=details.start_ms,
        highestWriteId=details.highest_write_id,
        errorMessage=details.error_message,
        hasoldabort=details.has_old_abort,
        enqueueTime=details.enqueued_ms,
        retryRetention=details.retry_retention_ms,
        poolname=details.pool_name,
        numberOfBuckets=details.bucket_count,
        orderByClause=details.order_by,
    )


def _shown(call: Call, entry: Compaction) -> ShowCompactResponseElement:
    details = entry.details
    return ShowCompactResponseElement(
        dbname=entry.target.db_name,
        tablename=entry.target.table_name or "",
        partitionname=entry.target.partition_name,
        type=entry.type,
        state=_state_text(call, entry.state),
        workerid=details.worker_id,
        start=details.start_ms,
        runAs=details.run_as,
        endTime=details.end_ms,
        hadoopJobId=details.hadoop_job_id,
        id=entry.compaction_id,
        errorMessage=details.error_message,
        enqueueTime=details.enqueued_ms,
        workerVersion=details.worker_version,
        initiatorId=details.initiator_id,
        initiatorVersion=details.initiator_version,
        poolName=details.pool_name,
        nextTxnId=details.next_txn_id,
        txnId=details.txn_id,
        commitTime=details.committed_ms,
        hightestWriteId=details.highest_write_id,
    )
