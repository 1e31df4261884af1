"""The Thrift methods on transactions, locks, write ids and compactions, through the codecs."""

from typing import Any

import pytest

from hms_gateway.catalog.tables.alter import CommitKeyValue
from hms_gateway.handlers.locks import KeyOrder, Locks
from hms_gateway.handlers.transactions import Compactions, Transactions
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.processor import Processor
from hms_gateway.rpc.structs import (
    AbortCompactionRequest,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AddDynamicPartitions_v4,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    DataOperationType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetOpenTxnsRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MaxAllocatedTableWriteIdRequest,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    TxnAbortedException,
    TxnState,
    TxnToWriteId,
    TxnType,
    UnlockRequest,
)
from hms_gateway.rpc.wire import Message, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.txn.services.compaction import CompactionService
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.materialized_views import RebuildService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.support.catalog import Catalog, new_table


class Peer:
    """Calls methods as a client of one dialect does, every answer encoded and decoded."""

    def __init__(self, processor: Processor, dialect: Dialect, codec: Any, user: str = "tester") -> None:
        self._processor = processor
        self._codec = codec
        self._call = Call(user, dialect=dialect)
        self._methods = methods_of(dialect)

    def call(self, name: str, *arguments: object) -> Any:
        """The result; raises what was declared, and RuntimeError for an application exception."""
        method = self._methods[name]
        payload = self._codec.encode(method.arguments(*arguments))
        reply = self._processor.process(self._codec, Message(name, MessageType.CALL, 1, payload), self._call)
        if reply.type is MessageType.EXCEPTION:
            raise RuntimeError(reply.outcome)
        result = self._codec.decode(method.result, reply.payload)
        for field in method.definition.throws:
            if getattr(result, field.name) is not None:
                raise getattr(result, field.name)
        return getattr(result, "success", None)


@pytest.fixture
def processor(catalog: Catalog) -> Processor:
    settings = TxnSettings(txns_per_call_max=1000)
    locks = LockService(catalog.store, settings)
    handlers = [
        Locks(locks, KeyOrder(catalog.store, settings.components_max)),
        Transactions(
            TransactionService(catalog.store, locks, settings),
            WriteIdService(catalog.store, settings),
            RebuildService(catalog.store, settings),
            CommitKeyValue(catalog.event_maker),
        ),
        Compactions(CompactionService(catalog.store)),
    ]
    handled = {name for handler in handlers for name in dir(handler) if not name.startswith("_")}
    return Processor(handlers, answered=handled)


@pytest.fixture(params=["tjson", "binary", "compact"])
def old(processor: Processor, request: pytest.FixtureRequest) -> Peer:
    return Peer(processor, Dialect.HIVE_2_3, getattr(make_codecs(Limits()), request.param))


@pytest.fixture(params=["tjson", "binary"])
def new(processor: Processor, request: pytest.FixtureRequest) -> Peer:
    return Peer(processor, Dialect.HIVE_4, getattr(make_codecs(Limits()), request.param))


def component(type: LockType = LockType.EXCLUSIVE, table: str | None = "t", **fields: Any) -> LockComponent:
    level = LockLevel.DB if table is None else LockLevel.TABLE
    return LockComponent(**{"type": type, "level": level, "dbname": "d", "tablename": table, **fields})


def lock(*components: LockComponent, **fields: Any) -> LockRequest:
    return LockRequest(**{"component": list(components), "user": "u", "hostname": "h", **fields})


def opened(peer: Peer, count: int = 1, **fields: Any) -> list[int]:
    return list(peer.call("open_txns", OpenTxnRequest(count, "u", "h", **fields)).txn_ids)


def test_how_iceberg_clients_lock(old: Peer) -> None:
    """PyIceberg sends fields of Hive 4 and no transaction (clients §3)."""
    wanted = component(operationType=DataOperationType.UNSET, isAcid=True, isDynamicPartitionWrite=False)
    held = old.call("lock", lock(wanted, txnid=None, zeroWaitReadEnabled=False, exclusiveCTAS=False))
    assert held.state == LockState.ACQUIRED
    waiting = old.call("lock", lock(wanted, agentInfo="Iceberg-1"))
    assert waiting.state == LockState.WAITING
    shown = old.call("show_locks", ShowLocksRequest(dbname="d", tablename="T")).locks
    assert [(one.lockid, one.state, one.agentInfo, one.blockedByExtId) for one in shown] == [
        (held.lockid, LockState.ACQUIRED, "Unknown", None),
        (waiting.lockid, LockState.WAITING, "Iceberg-1", held.lockid),
    ]
    assert (shown[0].txnid, shown[0].lockIdInternal, shown[0].heartbeatCount) == (0, 1, None)
    assert old.call("show_locks", ShowLocksRequest(dbname="", tablename="", partname="")).locks == shown
    assert shown[0].acquiredat == shown[0].lastheartbeat > 0
    old.call("unlock", UnlockRequest(held.lockid))
    assert old.call("check_lock", CheckLockRequest(waiting.lockid)).state == LockState.ACQUIRED
    old.call("heartbeat", HeartbeatRequest(lockid=waiting.lockid))
    old.call("unlock", UnlockRequest(waiting.lockid))
    old.call("unlock", UnlockRequest(waiting.lockid))
    assert old.call("show_locks", ShowLocksRequest()).locks == []
    with pytest.raises(NoSuchLockException):
        old.call("check_lock", CheckLockRequest(waiting.lockid))
    with pytest.raises(NoSuchLockException):
        old.call("heartbeat", HeartbeatRequest(lockid=waiting.lockid))
    old.call("heartbeat", HeartbeatRequest())


@pytest.mark.parametrize(
    "request_",
    [
        lock(),
        lock(component(type=99)),  # type: ignore[arg-type]
        lock(component(), txnid=1),
        lock(component(operationType=DataOperationType.UNSET), txnid=1),
        lock(component(operationType=77), txnid=1),
        lock(component(table="a\0b")),
        lock(component(), user="a\0b"),
        lock(component(), component(table="x" * 5000)),
    ],
    ids=str,
)
def test_requests_that_are_refused_leave_nothing(old: Peer, request_: LockRequest) -> None:
    opened(old)
    with pytest.raises(RuntimeError):
        old.call("lock", request_)
    assert old.call("show_locks", ShowLocksRequest()).locks == []
    old.call("commit_txn", CommitTxnRequest(1))


def test_types_that_are_newer_than_the_client(old: Peer, new: Peer) -> None:
    held = new.call("lock", lock(component(LockType.EXCL_WRITE)))
    assert [one.type for one in new.call("show_locks", ShowLocksRequest()).locks] == [LockType.EXCL_WRITE]
    assert [one.type for one in old.call("show_locks", ShowLocksRequest()).locks] == [LockType.SHARED_WRITE]
    (txn_id,) = opened(new)
    read = component(LockType.SHARED_READ, operationType=DataOperationType.SELECT)
    assert new.call("lock", lock(read, txnid=txn_id, zeroWaitReadEnabled=True)).state == LockState.ACQUIRED
    write = component(LockType.EXCL_WRITE, operationType=DataOperationType.INSERT)
    refused = new.call("lock", lock(write, txnid=txn_id, exclusiveCTAS=True))
    assert refused.state == LockState.NOT_ACQUIRED
    assert f"lockid:{held.lockid}" in refused.errorMessage


def test_showing_some_of_the_locks(new: Peer) -> None:
    (txn_id,) = opened(new)
    part = component(LockType.SHARED_READ, partitionname="P=1", operationType=DataOperationType.SELECT)
    whole = new.call("lock", lock(component(LockType.SHARED_READ, table=None))).lockid
    of_part = new.call("lock", lock(part, txnid=txn_id)).lockid

    def shown(**fields: Any) -> list[int]:
        return [one.lockid for one in new.call("show_locks", ShowLocksRequest(**fields)).locks]

    assert shown() == [whole, of_part]
    assert shown(dbname="D") == [whole, of_part]
    assert shown(tablename="t") == shown(partname="p=1") == shown(txnid=txn_id) == [of_part]
    assert shown(dbname="nowhere") == shown(dbname="a\0") == []
    assert shown(dbname="@hive#d", tablename="T", partname="p=1") == [of_part]


@pytest.mark.slow
def test_who_holds_what_up_and_how_it_is_freed(processor: Processor, old: Peer) -> None:
    (txn_id,) = opened(old)
    write = component(operationType=DataOperationType.UPDATE)
    held = old.call("lock", lock(write, component(table="u", operationType=DataOperationType.INSERT), txnid=txn_id))
    waiting = [old.call("lock", lock(component(), user="bob")).lockid for _ in range(102)]
    first, *others = old.call("list_blocking_locks", ShowLocksRequest())
    assert (first.lock.lockid, first.lock.tablename, first.lock.txnid) == (held.lockid, "t", txn_id)
    assert (first.blocked, first.blocked_count) == (waiting[:100], 102)
    assert len(first.blocked_since) == 100
    assert first.blocked_since[0] >= first.lock.acquiredat
    assert others[0].lock.acquiredat is None
    assert first.lost_at == first.last_heartbeat + 300_000
    assert first.last_heartbeat == first.lock.acquiredat > 0
    assert [each.lock.lockid for each in others] == waiting[:-1]
    assert (others[0].lock.state, others[0].blocked_count, others[-1].blocked) == (LockState.WAITING, 101, waiting[-1:])
    assert old.call("list_blocking_locks", ShowLocksRequest(tablename="U")) == []
    with pytest.raises(MetaException, match="user tester is not an administrator"):
        old.call("force_release_lock", held.lockid, "gone")
    administrator = Peer(processor, Dialect.HIVE_2_3, make_codecs(Limits()).tjson, "admin")
    released = administrator.call("force_release_lock", held.lockid, "gone")
    assert [(one.lockid, one.tablename) for one in released] == [(held.lockid, "t"), (held.lockid, "u")]
    with pytest.raises(TxnAbortedException, match="already aborted: gone"):
        old.call("commit_txn", CommitTxnRequest(txn_id))
    with pytest.raises(NoSuchLockException):
        administrator.call("force_release_lock", held.lockid, None)
    assert old.call("check_lock", CheckLockRequest(waiting[0])).state == LockState.ACQUIRED


def test_lists_of_open_transactions_by_dialect(old: Peer, new: Peer) -> None:
    ids = opened(old, 4)
    old.call("abort_txn", AbortTxnRequest(ids[1]))
    old.call("commit_txn", CommitTxnRequest(ids[0], writemanaged=False))
    listed = old.call("get_open_txns")
    assert (listed.txn_high_water_mark, set(listed.open_txns), listed.min_open_txn) == (4, {2, 3, 4}, 3)
    for newer in (new.call("get_open_txns"), new.call("get_open_txns_req", GetOpenTxnsRequest())):
        assert (list(newer.open_txns), newer.min_open_txn, newer.abortedBits) == ([2, 3, 4], 3, b"\x01")
    opened(new, 1, txn_type=TxnType.READ_ONLY)
    some = new.call("get_open_txns_req", GetOpenTxnsRequest([TxnType.READ_ONLY]))
    assert (some.txn_high_water_mark, list(some.open_txns)) == (5, [2, 3, 4])
    details = old.call("get_open_txns_info").open_txns
    assert [(one.id, one.state, one.agentInfo) for one in details] == [
        (2, TxnState.ABORTED, "Unknown"),
        *((number, TxnState.OPEN, "Unknown") for number in (3, 4, 5)),
    ]
    old.call("abort_txns", AbortTxnsRequest([1, 2, 3, 99, -1]))
    old.call("abort_txns", AbortTxnsRequest([]))
    assert old.call("get_open_txns").min_open_txn == 4
    assert old.call("heartbeat_txn_range", HeartbeatTxnRangeRequest(0, 0)).nosuch == set()
    outcome = old.call("heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 7))
    assert (set(outcome.aborted), set(outcome.nosuch)) == ({2, 3}, {1, 6, 7})


def test_nothing_is_open_at_first(old: Peer) -> None:
    listed = old.call("get_open_txns")
    assert (listed.txn_high_water_mark, set(listed.open_txns), listed.min_open_txn) == (0, set(), None)


def test_numbers_of_transactions(old: Peer) -> None:
    assert opened(old, 0) == []
    assert len(opened(old, 2000)) == 1000
    for call in (
        lambda: opened(old, -1),
        lambda: opened(old, 1, txn_type=55),
        lambda: old.call("heartbeat_txn_range", HeartbeatTxnRangeRequest(2, 1)),
        lambda: old.call("heartbeat_txn_range", HeartbeatTxnRangeRequest(-(2**63), 2**63 - 1)),
        lambda: old.call("abort_txns", AbortTxnsRequest(list(range(1001)))),
        lambda: old.call("commit_txn", CommitTxnRequest(1, keyValue=CommitTxnKeyValue(1, "_meta", "v"))),
        lambda: old.call("commit_txn", CommitTxnRequest(1, keyValue=CommitTxnKeyValue(1, "other", "v"))),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            call()
    assert old.call("get_open_txns").min_open_txn == 1
    with pytest.raises(NoSuchTxnException, match="No such transaction txnid:2000"):
        old.call("commit_txn", CommitTxnRequest(2000))


def test_a_commit_sets_a_parameter_of_a_table(catalog: Catalog, new: Peer) -> None:
    catalog.tables.create(new_table("t", parameters={"kept": "yes"}))
    table_id = catalog.tables.get(TableName("default", "t"), tells_id=True).id
    first, second, third = opened(new, 3)

    def commit(txn_id: int, key: str, value: str, table: int | None = table_id) -> None:
        mark = CommitTxnKeyValue(table, key, value)
        new.call("commit_txn", CommitTxnRequest(txn_id, keyValue=mark, writemanaged=True))

    def parameters() -> dict[str, str]:
        stored = catalog.tables.get(TableName("default", "t")).parameters
        return {name: value for name, value in stored.items() if name.startswith(("_meta", "kept", "transient"))}

    before = parameters()
    commit(first, "_meta.offset", "7")
    assert parameters() == before | {"_meta.offset": "7"}
    assert catalog.last_event()[:3] == ("ALTER_TABLE", "default", "t")
    version = catalog.store.version()
    commit(first, "_meta.offset", "8")
    assert (parameters()["_meta.offset"], catalog.store.version()) == ("7", version)
    for key, value, table in (("offset", "9", table_id), ("_meta", "9", 4711), ("_meta", "9", -(2**63))):
        with pytest.raises(RuntimeError):
            commit(second, key, value, table)
    assert list(new.call("get_open_txns").open_txns) == [second, third]
    commit(second, "_meta.offset", "10")
    assert parameters()["_meta.offset"] == "10"
    new.call("abort_txn", AbortTxnRequest(third))
    with pytest.raises(TxnAbortedException):
        commit(third, "_meta.offset", "11")
    assert parameters()["_meta.offset"] == "10"


def test_a_commit_that_collides_sets_no_parameter(catalog: Catalog, old: Peer) -> None:
    catalog.tables.create(new_table("t"))
    table_id = catalog.tables.get(TableName("default", "t"), tells_id=True).id
    winner, loser = opened(old, 2)
    for txn_id in (winner, loser):
        request = AddDynamicPartitions(txn_id, "default", "t", ["p=1"], DataOperationType.UPDATE)
        old.call("add_dynamic_partitions", request)
    old.call("commit_txn", CommitTxnRequest(winner, writemanaged=True))
    with pytest.raises(TxnAbortedException, match="write conflict"):
        old.call("commit_txn", CommitTxnRequest(loser, keyValue=CommitTxnKeyValue(table_id, "_meta", "v")))
    assert "_meta" not in catalog.tables.get(TableName("default", "t")).parameters


@pytest.mark.parametrize("dialect", list(Dialect))
def test_two_updates_of_hive_3_1_clients_do_not_both_commit(processor: Processor, dialect: Dialect) -> None:
    """They know neither `zeroWaitReadEnabled` nor `exclWriteEnabled`, through whichever door they come."""
    peer = Peer(processor, dialect, make_codecs(Limits()).binary)
    first, second = opened(peer, 2)
    update = component(LockType.SHARED_WRITE, operationType=DataOperationType.UPDATE, isAcid=True)
    assert peer.call("lock", lock(update, txnid=first)).state == LockState.ACQUIRED
    waiting = peer.call("lock", lock(update, txnid=second))
    assert waiting.state == LockState.WAITING
    peer.call("commit_txn", CommitTxnRequest(first))
    assert peer.call("check_lock", CheckLockRequest(waiting.lockid)).state == LockState.ACQUIRED
    with pytest.raises(TxnAbortedException, match=r"write conflict on d/t committed by \[txnid:1,2\] u/u"):
        peer.call("commit_txn", CommitTxnRequest(second))


def test_two_updates_of_hive_4_clients_that_check_at_commit_are_made_beside_each_other(new: Peer) -> None:
    first, second = opened(new, 2)
    update = component(LockType.SHARED_WRITE, operationType=DataOperationType.UPDATE, isAcid=True)
    for txn_id in (first, second):
        taken = new.call("lock", lock(update, txnid=txn_id, zeroWaitReadEnabled=True, exclusiveCTAS=False))
        assert taken.state == LockState.ACQUIRED
    new.call("commit_txn", CommitTxnRequest(first, exclWriteEnabled=False))
    with pytest.raises(TxnAbortedException, match="u/u"):
        new.call("commit_txn", CommitTxnRequest(second, exclWriteEnabled=False))


@pytest.mark.parametrize("first_excludes", [True, False])
def test_who_checks_for_lost_updates(old: Peer, new: Peer, first_excludes: bool | None) -> None:
    """Old clients always do, those of Hive 4 unless they say that their locks do (semantics §5.6)."""
    ids = opened(old, 4)
    for number, txn_id in enumerate(ids):
        request = AddDynamicPartitions(txn_id, "d", "t", ["p=1"], DataOperationType.UPDATE)
        if number < 2:
            old.call("add_dynamic_partitions", request)
        else:
            newer = AddDynamicPartitions_v4(txn_id, 1, "d", "t", ["P=1"], DataOperationType.DELETE)
            new.call("add_dynamic_partitions", newer)
    new.call("commit_txn", CommitTxnRequest(ids[2], exclWriteEnabled=first_excludes))
    assert new.call("get_latest_txnid_in_conflict", ids[0]) == ids[2]
    assert new.call("get_latest_txnid_in_conflict", ids[2]) == -1
    with pytest.raises(TxnAbortedException, match=f"committed by .txnid:{ids[2]},4. u/d"):
        old.call("commit_txn", CommitTxnRequest(ids[0]))
    new.call("commit_txn", CommitTxnRequest(ids[1], exclWriteEnabled=True))
    with pytest.raises(TxnAbortedException, match=r"d/[ud]"):
        new.call("commit_txn", CommitTxnRequest(ids[3], exclWriteEnabled=False))


def test_write_ids(new: Peer) -> None:
    ids = opened(new, 3)
    given = new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("D", "T", ids)).txnToWriteIds
    assert [(one.txnId, one.writeId) for one in given] == [(1, 1), (2, 2), (3, 3)]
    new.call("abort_txn", AbortTxnRequest(2))
    new.call("commit_txn", CommitTxnRequest(3))
    (seen, unknown) = new.call("get_valid_write_ids", GetValidWriteIdsRequest(["d.t", "none"])).tblValidWriteIds
    assert (seen.fullTableName, seen.writeIdHighWaterMark, seen.minOpenWriteId) == ("d.t", 3, 1)
    assert (list(seen.invalidWriteIds), seen.abortedBits) == ([1, 2], b"\x02")
    assert (unknown.fullTableName, unknown.writeIdHighWaterMark, list(unknown.invalidWriteIds)) == ("none", 0, [])
    assert new.call("get_max_allocated_table_write_id", MaxAllocatedTableWriteIdRequest("d", "t")).maxWriteId == 3
    again = AllocateTableWriteIdsRequest("d", "t", [1], reallocate=True)
    assert new.call("allocate_table_write_ids", again).txnToWriteIds == [TxnToWriteId(1, 4)]
    new.call("seed_write_id", SeedTableWriteIdsRequest("d", "u", 7))
    with pytest.raises(Exception, match="set already"):
        new.call("seed_write_id", SeedTableWriteIdsRequest("d", "u", 8))
    first = AllocateTableWriteIdsRequest("d", "u", [1])
    assert new.call("allocate_table_write_ids", first).txnToWriteIds == [TxnToWriteId(1, 8)]
    new.call("add_write_ids_to_min_history", 1, {"d.t": 1})
    with pytest.raises(Exception, match="as not all input txns"):
        new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", [2]))


def test_transactions_with_and_without_a_write_id_may_ask_together(new: Peer) -> None:
    ids = opened(new, 2)
    new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", ids[:1]))
    given = new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", ids)).txnToWriteIds
    assert [(one.txnId, one.writeId) for one in given] == [(1, 1), (2, 2)]


def test_ids_can_be_made_to_begin_later(new: Peer) -> None:
    new.call("seed_txn_id", SeedTxnIdRequest(50))
    assert opened(new) == [51]
    for seed in (51, 0, -1, 2**63 - 1):
        with pytest.raises(Exception, match="Invalid txnId seed"):
            new.call("seed_txn_id", SeedTxnIdRequest(seed))


def test_replication(new: Peer) -> None:
    first = opened(new, 2, replPolicy="p", replSrcTxnIds=[11, 12])
    assert opened(new, 3, replPolicy="p", replSrcTxnIds=[12, 13, 11]) == [first[1], 3, first[0]]
    wanted = [TxnToWriteId(11, 5), TxnToWriteId(12, 6)]
    request = AllocateTableWriteIdsRequest("d", "t", replPolicy="p", srcTxnToWriteIdList=wanted)
    given = new.call("allocate_table_write_ids", request).txnToWriteIds
    assert [(one.txnId, one.writeId) for one in given] == [(1, 5), (2, 6)]
    new.call("commit_txn", CommitTxnRequest(11, replPolicy="p"))
    new.call("abort_txn", AbortTxnRequest(12, replPolicy="p"))
    new.call("commit_txn", CommitTxnRequest(99, replPolicy="p"))
    assert list(new.call("get_open_txns").open_txns) == [2, 3]
    state = ReplTblWriteIdStateRequest("d.r:6:3:3:2", "u", "h", "d", "r")
    new.call("repl_tbl_writeid_state", state)
    new.call("repl_tbl_writeid_state", state)
    (seen,) = new.call("get_valid_write_ids", GetValidWriteIdsRequest(["d.r"])).tblValidWriteIds
    assert (seen.writeIdHighWaterMark, list(seen.invalidWriteIds), seen.minOpenWriteId) == (6, [2, 3], None)


def test_rebuilding_a_view(new: Peer) -> None:
    first, second = opened(new, 2)
    assert new.call("get_lock_materialization_rebuild", "d", "v", first).state == LockState.ACQUIRED
    assert new.call("get_lock_materialization_rebuild", "d", "v", first).state == LockState.ACQUIRED
    assert new.call("get_lock_materialization_rebuild", "d", "V", second).state == LockState.NOT_ACQUIRED
    assert new.call("heartbeat_lock_materialization_rebuild", "d", "v", first) is True
    assert new.call("heartbeat_lock_materialization_rebuild", "d", "v", second) is False
    new.call("commit_txn", CommitTxnRequest(first))
    assert new.call("heartbeat_lock_materialization_rebuild", "d", "v", first) is False
    assert new.call("get_lock_materialization_rebuild", "d", "v", second).state == LockState.ACQUIRED
    assert new.call("get_lock_materialization_rebuild", "d", "v", 99).state == LockState.NOT_ACQUIRED


def test_a_compaction_from_request_to_history(old: Peer, new: Peer) -> None:
    request = CompactionRequest("D", "T", None, CompactionType.MAJOR, properties={"k": "v"})
    first = old.call("compact2", request)
    assert (first.id, first.state, first.accepted) == (1, "initiated", True)
    old.call("compact", CompactionRequest("d", "t", None, CompactionType.MINOR))
    assert new.call("compact2", request).accepted is False
    worker = FindNextCompactRequest("w1", "4.0")
    info = new.call("find_next_compact2", worker).ci
    assert (info.id, info.dbname, info.tablename, info.type) == (1, "d", "t", CompactionType.MAJOR)
    assert new.call("find_next_compact2", worker).ci is None
    assert new.call("find_next_compact", "w1").ci is None
    assert old.call("compact2", request).state == "working"
    info.highestWriteId = 9
    new.call("update_compactor_state", info, 77)
    new.call("set_hadoop_jobid", "job_1", 1)
    with pytest.raises(Exception, match="another worker"):
        new.call("mark_compacted", CompactionInfoStruct(1, "d", "t", None, CompactionType.MAJOR, workerId="w2"))
    new.call("mark_compacted", info)
    ready = new.call("show_compact", ShowCompactRequest()).compacts
    assert [(one.state, one.hadoopJobId, one.hightestWriteId, one.txnId) for one in ready] == [
        ("ready for cleaning", "job_1", 9, 77)
    ]
    new.call("mark_cleaned", info)
    with pytest.raises(Exception, match="cannot become"):
        new.call("mark_failed", info)
    (latest,) = new.call(
        "get_latest_committed_compaction_info", GetLatestCommittedCompactionInfoRequest("d", "t")
    ).compactions
    assert (latest.id, latest.state) == (1, "s")
    newer_than = GetLatestCommittedCompactionInfoRequest("d", "t", lastCompactionId=1)
    assert new.call("get_latest_committed_compaction_info", newer_than).compactions == []


def test_showing_some_compactions(old: Peer, new: Peer) -> None:
    for name in ("a", "b", "c"):
        new.call("compact", CompactionRequest("d", name, "P=1", CompactionType.MINOR, poolName=f"pool-{name}"))
    outcomes = new.call("abort_Compactions", AbortCompactionRequest([2, 9])).abortedcompacts
    assert (outcomes[2].status, outcomes[9].status) == ("Success", "Error")

    def shown(**fields: Any) -> list[int]:
        return [one.id for one in new.call("show_compact", ShowCompactRequest(**fields)).compacts]

    assert shown() == [3, 1, 2]
    assert shown(id=3) == shown(tbName="C") == shown(poolName="pool-c") == [3]
    assert shown(state="aborted") == shown(state="x") == [2]
    assert shown(dbName="d", partName="p=1", limit=1) == [3]
    assert shown(state="nonsense") == shown(type=CompactionType.MAJOR) == shown(dbName="x\0") == []
    assert new.call("find_next_compact2", FindNextCompactRequest(poolName="pool-c")).ci.id == 3
    assert new.call("submit_for_cleanup", CompactionRequest("d", "e", None, CompactionType.MAJOR), 5, 6) is True
    with pytest.raises(RuntimeError):
        old.call("compact", CompactionRequest("d", "", None, CompactionType.MAJOR))
    with pytest.raises(RuntimeError):
        old.call("compact", CompactionRequest("d", "t", None, 9))


def test_names_are_followed(catalog: Catalog, new: Peer) -> None:
    """Semantics §3.7: rows go with what is dropped and are renamed with what is renamed; locks stay."""
    catalog.tables.create(new_table("t"))
    ids = opened(new, 2)
    new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("default", "t", ids))
    new.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("default", "moved", [ids[0]]))
    new.call("compact", CompactionRequest("default", "t", None, CompactionType.MAJOR))
    held = new.call("lock", lock(component(dbname="default")))

    def newest(name: str) -> int:
        request = MaxAllocatedTableWriteIdRequest("default", name)
        return int(new.call("get_max_allocated_table_write_id", request).maxWriteId)

    location = f"{catalog.root}/t"
    catalog.alterations.alter(TableName("default", "t"), new_table("moved", location=location))
    assert (newest("t"), newest("moved")) == (0, 2)
    assert [one.tablename for one in new.call("show_compact", ShowCompactRequest()).compacts] == ["moved"]
    catalog.tables.drop(TableName("default", "moved"), delete_data=False)
    assert newest("moved") == 0
    assert new.call("show_compact", ShowCompactRequest()).compacts == []
    assert new.call("check_lock", CheckLockRequest(held.lockid)).state == LockState.ACQUIRED


def test_the_catalogs_version_does_not_move(catalog: Catalog, old: Peer) -> None:
    before = catalog.store.version()
    ids = opened(old, 2)
    old.call("lock", lock(component()))
    old.call("heartbeat", HeartbeatRequest(txnid=ids[0]))
    old.call("commit_txn", CommitTxnRequest(ids[0]))
    old.call("abort_txn", AbortTxnRequest(ids[1]))
    assert catalog.store.version() == before
