"""Methods on transactions and write ids."""

import json
from typing import Any

from hms_gateway.catalog.arguments import database_name, is_newer
from hms_gateway.catalog.tables.alter import CommitKeyValue
from hms_gateway.handlers.locks import client, object_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AbortCompactionRequest,
    AbortCompactionResponseElement,
    AbortCompactResponse,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AddDynamicPartitions_v4,
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetLatestCommittedCompactionInfoResponse,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsRequest,
    GetOpenTxnsResponse,
    GetOpenTxnsResponse_v4,
    GetValidWriteIdsRequest,
    GetValidWriteIdsResponse,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    HeartbeatTxnRangeResponse,
    LockResponse,
    LockState,
    MaxAllocatedTableWriteIdRequest,
    MaxAllocatedTableWriteIdResponse,
    MetaException,
    OpenTxnRequest,
    OpenTxnsResponse,
    OptionalCompactionInfoStruct,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    ShowCompactRequest,
    ShowCompactResponse,
    ShowCompactResponseElement,
    TableValidWriteIds,
    TxnToWriteId,
    TxnType,
)
from hms_gateway.runtime.suspension import Deferred
from hms_gateway.txn.rules.compaction import (
    STATE_TEXTS,
    Compaction,
    CompactionDetails,
    CompactionFilter,
    CompactionState,
    parse_state,
)
from hms_gateway.txn.rules.names import Target, fold, normalize_partition, target
from hms_gateway.txn.rules.transactions import dynamic_operation
from hms_gateway.txn.rules.write_ids import ValidWriteIds, aborted_bits
from hms_gateway.txn.services.compaction import CompactionService
from hms_gateway.txn.services.materialized_views import RebuildService
from hms_gateway.txn.services.transactions import OpenTxns, TransactionService
from hms_gateway.txn.services.write_ids import Replicated, WriteIdService


class Transactions:
    def __init__(
        self,
        transactions: TransactionService,
        write_ids: WriteIdService,
        rebuilds: RebuildService,
        marks: CommitKeyValue,
    ) -> None:
        self._transactions = transactions
        self._write_ids = write_ids
        self._rebuilds = rebuilds
        self._marks = marks

    def get_lock_materialization_rebuild(self, call: Call, dbName: str, tableName: str, txnId: int) -> LockResponse:
        has_it = self._rebuilds.acquire(object_named(dbName, tableName), txnId or 0)
        return LockResponse(txnId or 0, LockState.ACQUIRED if has_it else LockState.NOT_ACQUIRED)

    def heartbeat_lock_materialization_rebuild(self, call: Call, dbName: str, tableName: str, txnId: int) -> bool:
        return self._rebuilds.heartbeat(object_named(dbName, tableName), txnId or 0)

    def get_open_txns(self, call: Call) -> GetOpenTxnsResponse | GetOpenTxnsResponse_v4:
        """Aborted ones are listed too (semantics §5.3); the shape is that of the caller's dialect (§10.1)."""
        found = self._transactions.open_txns()
        if call.dialect is Dialect.HIVE_4:
            return _open_txns_4(found, frozenset())
        ids: set[int] = {txn.txn_id for txn in found.unfinished}
        return GetOpenTxnsResponse(found.high_water_mark, ids, found.oldest_open)

    def get_open_txns_req(self, call: Call, getOpenTxnsRequest: GetOpenTxnsRequest) -> GetOpenTxnsResponse_v4:
        request = required(getOpenTxnsRequest, "getOpenTxnsRequest")
        return _open_txns_4(self._transactions.open_txns(), frozenset(request.excludeTxnTypes or ()))

    def get_open_txns_info(self, call: Call) -> GetOpenTxnsInfoResponse:
        return GetOpenTxnsInfoResponse(*self._transactions.open_txn_infos())

    def open_txns(self, call: Call, rqst: OpenTxnRequest) -> Deferred[OpenTxnsResponse]:
        request = required(rqst, "rqst")
        who = client(request.user, request.hostname, request.agentInfo)
        if request.replPolicy is not None:
            replication = (request.replPolicy, request.replSrcTxnIds or [])
            opened = self._transactions.open(0, who, replication=replication)
        else:
            opened = self._transactions.open(request.num_txns or 0, who, _txn_type(request.txn_type))
        return opened.then(lambda txn_ids: OpenTxnsResponse(list(txn_ids)))

    def abort_txn(self, call: Call, rqst: AbortTxnRequest) -> None:
        request = required(rqst, "rqst")
        self._transactions.abort(request.txnid or 0, request.replPolicy).result()

    def abort_txns(self, call: Call, rqst: AbortTxnsRequest) -> None:
        """Those that cannot be aborted are passed over (semantics §5.4)."""
        self._transactions.abort_all(required(rqst, "rqst").txn_ids or [])

    def commit_txn(self, call: Call, rqst: CommitTxnRequest) -> Deferred[object]:
        """Hive 4 says whether its locks make the check needless; who says nothing is of 2.3 or 3.1 (semantics §5.6).

        `writemanaged` says whether write ids are looked up that caches then know to be committed. Wrong or not, readers
        get the same answers (docs/caching.md).
        """
        request = required(rqst, "rqst")
        return self._transactions.commit(
            request.txnid or 0,
            checks_writes=not request.exclWriteEnabled,
            is_strict=request.exclWriteEnabled is False,
            policy=request.replPolicy,
            alongside=None if request.keyValue is None else self._marks.setting(request.keyValue),
            names_write_ids=request.writemanaged,
        )

    def get_latest_txnid_in_conflict(self, call: Call, txnId: int) -> int:
        return self._transactions.newest_in_conflict(txnId or 0)

    def heartbeat(self, call: Call, ids: HeartbeatRequest) -> Deferred[None] | None:
        request = required(ids, "ids")
        return self._transactions.heartbeat(request.lockid or 0, request.txnid or 0)

    def heartbeat_txn_range(self, call: Call, txns: HeartbeatTxnRangeRequest) -> HeartbeatTxnRangeResponse:
        request = required(txns, "txns")
        outcome = self._transactions.heartbeat_range(request.min or 0, request.max or 0)
        return HeartbeatTxnRangeResponse(set(outcome.aborted), set(outcome.missing))

    def seed_txn_id(self, call: Call, rqst: SeedTxnIdRequest) -> None:
        self._transactions.seed(required(rqst, "rqst").seedTxnId or 0)

    def repl_tbl_writeid_state(self, call: Call, rqst: ReplTblWriteIdStateRequest) -> None:
        request = required(rqst, "rqst")
        table = object_named(request.dbName, request.tableName)
        who = client(request.user, request.hostName, None)
        self._write_ids.replicate_state(table, request.validWriteIdlist or "", who)

    def get_valid_write_ids(self, call: Call, rqst: GetValidWriteIdsRequest) -> GetValidWriteIdsResponse:
        request = required(rqst, "rqst")
        tables = [(name, _full_name(name)) for name in request.fullTableNames or ()]
        lists = self._write_ids.valid_write_ids(tables, request.validTxnList, identifies=bool(request.withTableIds))
        return GetValidWriteIdsResponse([_table_write_ids(seen, table_id) for seen, table_id in lists])

    def allocate_table_write_ids(self, call: Call, rqst: AllocateTableWriteIdsRequest) -> AllocateTableWriteIdsResponse:
        request = required(rqst, "rqst")
        table = object_named(request.dbName, request.tableName)
        if request.replPolicy is not None:
            wanted = {one.txnId or 0: one.writeId or 0 for one in request.srcTxnToWriteIdList or ()}
            given = self._write_ids.allocate_replicated(table, Replicated(request.replPolicy, wanted))
        else:
            given = self._write_ids.allocate(table, request.txnIds or [], again=bool(request.reallocate))
        return AllocateTableWriteIdsResponse([TxnToWriteId(*pair) for pair in sorted(given.items())])

    def get_max_allocated_table_write_id(
        self, call: Call, rqst: MaxAllocatedTableWriteIdRequest
    ) -> MaxAllocatedTableWriteIdResponse:
        request = required(rqst, "rqst")
        return MaxAllocatedTableWriteIdResponse(self._write_ids.newest(object_named(request.dbName, request.tableName)))

    def add_write_ids_to_min_history(self, call: Call, txnId: int, writeIds: dict[str, int]) -> None:
        """Write ids are kept for as long as an open transaction may need them anyway, so nothing is recorded."""
        self._write_ids.check_open(txnId or 0)

    def seed_write_id(self, call: Call, rqst: SeedTableWriteIdsRequest) -> None:
        request = required(rqst, "rqst")
        self._write_ids.seed(object_named(request.dbName, request.tableName), request.seedWriteId or 0)

    def add_dynamic_partitions(self, call: Call, rqst: AddDynamicPartitions | AddDynamicPartitions_v4) -> None:
        """Hive 4's request carries the write id (semantics §10.1)."""
        request = rqst if isinstance(rqst, AddDynamicPartitions_v4) else required(rqst, "rqst")
        names = request.partitionnames or ()
        targets = [object_named(request.dbname, request.tablename, partition) for partition in names]
        write_id = request.writeid if isinstance(request, AddDynamicPartitions_v4) else None
        operation = dynamic_operation(request.operationType)
        self._transactions.add_writes(request.txnid or 0, targets, operation, write_id)


def _txn_type(number: int | None) -> TxnType:
    try:
        return TxnType(number or 0)
    except ValueError:
        raise MetaException(f"unknown transaction type {number}") from None


def _open_txns_4(found: OpenTxns, excluded_types: frozenset[int]) -> GetOpenTxnsResponse_v4:
    listed = [txn for txn in found.unfinished if txn.type not in excluded_types]
    ids: list[int] = [txn.txn_id for txn in listed]
    bits = aborted_bits(ids, [txn.txn_id for txn in listed if not txn.is_open])
    oldest = next((txn.txn_id for txn in listed if txn.is_open), None)
    return GetOpenTxnsResponse_v4(found.high_water_mark, ids, oldest, bits)


def _full_name(name: str) -> Target:
    """`database.table`; a name without a point is in no database and has no write ids."""
    db_name, _, table_name = name.partition(".")
    return target(database_name(db_name), table_name)


def _table_write_ids(valid: ValidWriteIds, table_id: int | None) -> TableValidWriteIds:
    exceptions = valid.ids.exceptions
    return TableValidWriteIds(
        fullTableName=valid.table,
        writeIdHighWaterMark=valid.ids.high_water_mark,
        invalidWriteIds=exceptions,
        minOpenWriteId=valid.ids.oldest_open,
        abortedBits=aborted_bits(exceptions, valid.ids.aborted_ids),
        tableId=table_id,
    )


# Methods on the compaction queue, those of outside workers included.


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
