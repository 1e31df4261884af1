"""Transactions: open, commit, abort, heartbeat, what is open, and writes that collide."""

from collections.abc import Iterator, Sequence

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    CommitTxnRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    OpenTxnRequest,
)
from tests.comparison.ids import lock, txn
from tests.comparison.scripts.locking import (
    DELETE,
    INSERT,
    NO_TXN,
    SELECT,
    SHARED_READ,
    UNSET,
    UPDATE,
    component,
    request,
)
from tests.comparison.servers import Step, call

OPERATIONS = (SELECT, INSERT, UPDATE, DELETE)
UNKNOWN_ID = 888_888_888
ID_MAX = 2**63 - 1
ODD_IDS = (0, -1, UNKNOWN_ID, ID_MAX)
LISTS = ("get_open_txns", "get_open_txns_info")


def steps() -> Iterator[Step]:
    yield from _open()
    yield from _states()
    yield from _heartbeats()
    yield from _dynamic_partitions()
    yield from _collisions()


def opened(count: int = 1, **fields: object) -> Step:
    return call("open_txns", OpenTxnRequest(count, "ann", "somewhere", **fields))  # type: ignore[arg-type]


def commit(number: int) -> Step:
    return call("commit_txn", CommitTxnRequest(number))


def abort(number: int) -> Step:
    return call("abort_txn", AbortTxnRequest(number))


def _open() -> Iterator[Step]:
    yield from map(call, LISTS)
    yield opened(3)
    yield opened(1, agentInfo="an agent")
    yield opened(0)
    yield opened(-1)
    yield call("open_txns", OpenTxnRequest(1, "ünï 😀", ""))
    for incomplete in (OpenTxnRequest(None, "ann", "x"), OpenTxnRequest(1, None, "x"), OpenTxnRequest(1, "ann"), None):
        yield call("open_txns", incomplete)
    yield from map(call, LISTS)
    yield call("abort_txns", AbortTxnsRequest([txn(number) for number in range(1, 6)]))
    yield from map(call, LISTS)


def _states() -> Iterator[Step]:
    """Transaction 6 is committed without writes, 7 with writes, 8 aborted, 9 open."""
    yield opened(4)
    yield from _writes(7, INSERT, "states")
    for number in (6, 7):
        yield commit(txn(number))
    yield abort(txn(8))
    asked = (txn(6), txn(7), txn(8), txn(9), *ODD_IDS)
    for number in asked:
        yield call("heartbeat", HeartbeatRequest(None, number))
        yield call("lock", request(component(SHARED_READ, "states", operationType=SELECT), txn_id=number))
        yield call("add_dynamic_partitions", AddDynamicPartitions(number, "states", "t", ["p=1"], INSERT))
    for number in asked[:3] + asked[4:]:
        yield commit(number)
        yield abort(number)
    yield commit(txn(9))
    yield abort(txn(9))
    # Among them 0 would take away every lock of Hive that belongs to no transaction.
    yield call("abort_txns", AbortTxnsRequest([number for number in asked if number]))
    yield call("abort_txns", AbortTxnsRequest([]))
    for method, incomplete in (
        ("commit_txn", CommitTxnRequest()),
        ("abort_txn", AbortTxnRequest()),
        ("abort_txns", AbortTxnsRequest()),
        ("heartbeat_txn_range", HeartbeatTxnRangeRequest(1)),
        ("add_dynamic_partitions", AddDynamicPartitions(txn(9), "states", "t")),
    ):
        yield call(method, incomplete)
        yield call(method, None)
    yield call("heartbeat", None)
    yield from map(call, LISTS)


def _heartbeats() -> Iterator[Step]:
    """Transactions 10 to 13: open, aborted, committed, open."""
    yield opened(4)
    yield abort(txn(11))
    yield commit(txn(12))
    yield call("lock", request(component(SHARED_READ, "beating")))
    for lock_id, txn_id in (
        (None, None),
        (0, 0),
        (lock(4), txn(10)),
        (lock(4), txn(11)),
        (UNKNOWN_ID, txn(10)),
        (-1, None),
        (None, -1),
    ):
        yield call("heartbeat", HeartbeatRequest(lock_id, txn_id))
    for first, last in ((10, 13), (10, 10), (11, 11), (12, 12), (13, 15)):
        yield call("heartbeat_txn_range", HeartbeatTxnRangeRequest(txn(first), txn(last)))
    for first, last in ((5, 1), (0, 0), (-3, -1), (UNKNOWN_ID, UNKNOWN_ID + 1), (ID_MAX - 1, ID_MAX - 1)):
        yield call("heartbeat_txn_range", HeartbeatTxnRangeRequest(first, last))
    for number in (10, 13):
        yield abort(txn(number))


def _dynamic_partitions() -> Iterator[Step]:
    """Transactions 14 to 19: one for each operation, and two that none is meant for."""
    yield opened(6)
    for number, operation in enumerate((*OPERATIONS, UNSET, NO_TXN), 14):
        names = ["ds=1", "ds=2", "ds=1"]
        added = AddDynamicPartitions(txn(number), f"dynamic_{number}", "t", names, operation)
        yield call("add_dynamic_partitions", added)
    yield call("add_dynamic_partitions", AddDynamicPartitions(txn(18), "dynamic", "t", ["ds=1"]))
    yield call("add_dynamic_partitions", AddDynamicPartitions(txn(14), "dynamic", "t", [], INSERT))
    for number in range(14, 20):
        yield commit(txn(number))
    for number in range(14, 20):
        yield commit(txn(number))
    yield call("get_open_txns")
    for number in range(14, 20):
        yield abort(txn(number))


def _collisions() -> Iterator[Step]:
    """Pairs that are open together and write to the same: the first to commit wins. From transaction 20 on."""
    number = 20
    same, partition, other = ("t", None), ("t", "p=1"), ("other", None)
    for first in OPERATIONS:
        for second in OPERATIONS:
            yield from _pair(number, (first, second), (same, same))
            number += 2
    for places in ((same, partition), (partition, same), (partition, partition), (same, other)):
        yield from _pair(number, (UPDATE, UPDATE), places)
        number += 2
    yield from _pair(number, (UPDATE, DELETE), (partition, ("t", "p=2")))
    number += 2
    yield opened(2)
    yield from _writes(number, UPDATE, "pairs")
    yield commit(txn(number))
    yield from _writes(number + 1, UPDATE, "pairs")
    yield commit(txn(number + 1))
    number += 2
    yield opened(1)
    yield from _writes(number, UPDATE, "pairs")
    yield commit(txn(number))
    yield from map(call, LISTS)


def _pair(number: int, operations: tuple[int, int], places: Sequence[tuple[str, str | None]]) -> Iterator[Step]:
    yield opened(2)
    for place, operation, (table_name, partition_name) in zip((0, 1), operations, places, strict=True):
        yield from _writes(number + place, operation, f"pairs_{number}", table_name, partition_name)
    yield commit(txn(number))
    yield commit(txn(number + 1))
    yield commit(txn(number + 1))
    yield call("heartbeat", HeartbeatRequest(None, txn(number + 1)))


def _writes(
    number: int, operation: int, db_name: str, table_name: str = "t", partition_name: str | None = None
) -> Iterator[Step]:
    """Recorded without waiting for anybody: SHARED_READ goes beside everything here."""
    yield call(
        "lock",
        request(
            component(SHARED_READ, db_name, table_name, partition_name, operationType=operation), txn_id=txn(number)
        ),
    )
