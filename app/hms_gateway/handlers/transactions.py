"""Methods on transactions and write ids."""

from hms_gateway.catalog.arguments import database_name
from hms_gateway.catalog.tables.alter import CommitKeyValue
from hms_gateway.handlers.locks import client, object_named
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.structs import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AddDynamicPartitions_v4,
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    CommitTxnRequest,
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
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    TableValidWriteIds,
    TxnToWriteId,
    TxnType,
)
from hms_gateway.txn.rules.names import Target, target
from hms_gateway.txn.rules.transactions import dynamic_operation
from hms_gateway.txn.rules.write_ids import ValidWriteIds, aborted_bits
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

    def open_txns(self, call: Call, rqst: OpenTxnRequest) -> OpenTxnsResponse:
        request = required(rqst, "rqst")
        who = client(request.user, request.hostname, request.agentInfo)
        if request.replPolicy is not None:
            replication = (request.replPolicy, request.replSrcTxnIds or [])
            return OpenTxnsResponse(list(self._transactions.open(0, who, replication=replication)))
        return OpenTxnsResponse(list(self._transactions.open(request.num_txns or 0, who, _txn_type(request.txn_type))))

    def abort_txn(self, call: Call, rqst: AbortTxnRequest) -> None:
        request = required(rqst, "rqst")
        self._transactions.abort(request.txnid or 0, request.replPolicy)

    def abort_txns(self, call: Call, rqst: AbortTxnsRequest) -> None:
        """Those that cannot be aborted are passed over (semantics §5.4)."""
        self._transactions.abort_all(required(rqst, "rqst").txn_ids or [])

    def commit_txn(self, call: Call, rqst: CommitTxnRequest) -> None:
        """Hive 4 says whether its locks make the check needless; who says nothing is of 2.3 or 3.1 (semantics §5.6).

        `writemanaged` says whether write ids are looked up that caches then know to be committed. Wrong or not, readers
        get the same answers (docs/caching.md).
        """
        request = required(rqst, "rqst")
        self._transactions.commit(
            request.txnid or 0,
            checks_writes=not request.exclWriteEnabled,
            is_strict=request.exclWriteEnabled is False,
            policy=request.replPolicy,
            alongside=None if request.keyValue is None else self._marks.setting(request.keyValue),
            names_write_ids=request.writemanaged,
        )

    def get_latest_txnid_in_conflict(self, call: Call, txnId: int) -> int:
        return self._transactions.newest_in_conflict(txnId or 0)

    def heartbeat(self, call: Call, ids: HeartbeatRequest) -> None:
        request = required(ids, "ids")
        self._transactions.heartbeat(request.lockid or 0, request.txnid or 0)

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
        lists = self._write_ids.identified_write_ids(
            tables, request.validTxnList, identifies=bool(request.withTableIds)
        )
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
