"""Requests on transactions, locks, compactions and leases that nobody should send: exact answers, nothing half-done."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    METHODS,
    AbortCompactionRequest,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    DataOperationType,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LeaseObject,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MaxAllocatedTableWriteIdRequest,
    OpenTxnRequest,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    ThriftException,
    UnlockRequest,
)
from hms_gateway.rpc.wire import Message, MessageType, TApplicationException
from hms_gateway.runtime.settings_reading import load_settings
from tests.support.catalog import place_empty_database

MIN, MAX = -(2**63), 2**63 - 1
# None of them was ever given.
NO_IDS = (0, -1, 99, MIN, MAX)
TEN_YEARS = 10 * 365 * 86_400


class Caller(NamedTuple):
    """Calls methods as a user does, through a codec; exceptions come as text."""

    metastore: Metastore

    def call(self, method: str, *arguments: Any, user: str = "ann") -> Any:
        codec = self.metastore.codecs.binary
        definition = METHODS[method]
        payload = codec.encode(definition.arguments(*arguments))
        reply = self.metastore.processor.process(codec, Message(method, MessageType.CALL, 1, payload), Call(user))
        content = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload or ())
        if reply.type is MessageType.EXCEPTION:
            text = codec.decode(TApplicationException, content).message
            return text.replace(f"{method}: ", "refused: ")
        result = codec.decode(definition.result, content)
        for field in definition.definition.throws:
            declared = getattr(result, field.name)
            if isinstance(declared, ThriftException):
                return f"{type(declared).__name__}: {declared.message}"
        return getattr(result, "success", None)

    def state(self) -> list[Any]:
        """All that a request may change, without heartbeats, and the counters that one uses up."""
        txns = self.call("get_open_txns_info")
        locks = self.call("show_locks", ShowLocksRequest()).locks
        return [
            txns.txn_high_water_mark,
            [(each.id, each.state) for each in txns.open_txns],
            [(each.lockid, each.lockIdInternal, each.state, each.type, each.tablename) for each in locks],
            [(each.id, each.state) for each in self.call("show_compact", ShowCompactRequest()).compacts],
            self.call("list_lease", []),
            [self.call("get_max_allocated_table_write_id", MaxAllocatedTableWriteIdRequest("d", t)) for t in "tu"],
        ]


@contextmanager
def calling(database_url: str, folder: Path) -> Iterator[Caller]:
    """Transactions 1 to 3 are open, aborted and committed; lock 1 is held, lock 2 waits; lease 1 is bob's."""
    metastore = build_metastore(load_settings(None, database_url=database_url, data_dir=folder))
    caller = Caller(metastore)
    caller.call("open_txns", OpenTxnRequest(3, "ann", "host"))
    caller.call("add_dynamic_partitions", AddDynamicPartitions(3, "d", "t", ["p=1"], DataOperationType.UPDATE))
    caller.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", [1]))
    caller.call("abort_txn", AbortTxnRequest(2))
    caller.call("commit_txn", CommitTxnRequest(3))
    for state in (LockState.ACQUIRED, LockState.WAITING):
        assert caller.call("lock", lock(component())).state == state
    caller.call("compact", CompactionRequest("d", "t", None, 1))
    assert caller.call("grab_lease", [LeaseObject("d", "leased", None, "x")], 60, 0, user="bob") == 1
    yield caller
    metastore.store.close()


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ],
)
def unchanged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """One for all tests whose calls change nothing."""
    folder = tmp_path_factory.mktemp("bad_input")
    if request.param == "sqlite":
        place_empty_database(folder / "catalog.sqlite")
        url = f"sqlite:///{folder / 'catalog.sqlite'}"
    else:
        url = request.getfixturevalue(f"{request.param}_database_of_module")
    with calling(url, folder) as caller:
        yield caller


@pytest.fixture
def caller(database_url: str, tmp_path: Path) -> Iterator[Caller]:
    with calling(database_url, tmp_path) as caller:
        yield caller


def component(type: int = LockType.EXCLUSIVE, operation: int | None = None, **fields: Any) -> LockComponent:
    return LockComponent(
        **{"type": type, "level": LockLevel.TABLE, "dbname": "d", "tablename": "t", **fields}, operationType=operation
    )


def lock(*components: LockComponent, txn: int | None = None) -> LockRequest:
    return LockRequest(list(components), txn, "ann", "host")


def no_txn(number: int) -> str:
    return f"NoSuchTxnException: No such transaction txnid:{number}"


ABORTED = "TxnAbortedException: Transaction txnid:2 already aborted"
COMMITTED = "NoSuchTxnException: Transaction txnid:3 is already committed."
UPDATE = DataOperationType.UPDATE

# Method and arguments, and the exact answer.
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "no components": (("lock", lock()), "refused: a lock request needs at least one component"),
    "lock type 0": (("lock", lock(component(0))), "refused: unknown lock type 0"),
    "lock type 99": (("lock", lock(component(99))), "refused: unknown lock type 99"),
    "a wrong one among right ones": (
        ("lock", lock(component(), component(-1))),
        "refused: unknown lock type -1",
    ),
    "a transaction that does not say what it does": (
        ("lock", lock(component(), txn=1)),
        "refused: a lock within a transaction must say its operation type",
    ),
    "a transaction that does nothing known": (
        ("lock", lock(component(operation=77), txn=1)),
        "refused: unknown operation type 77",
    ),
    "10,001 components": (
        ("lock", lock(*[component()] * 10_001)),
        "refused: 10001 components are more than 10000 (limit lock_components_max)",
    ),
    "lock of an aborted transaction": (("lock", lock(component(operation=UPDATE), txn=2)), ABORTED),
    "lock of a committed transaction": (("lock", lock(component(operation=UPDATE), txn=3)), COMMITTED),
    **{
        f"lock of transaction {number}": (("lock", lock(component(operation=UPDATE), txn=number)), no_txn(number))
        for number in NO_IDS[1:]
    },
    **{
        f"check_lock {number}": (
            ("check_lock", CheckLockRequest(number)),
            f"NoSuchLockException: No such lock lockid:{number}",
        )
        for number in NO_IDS
    },
    **{
        f"heartbeat of lock {number}": (
            ("heartbeat", HeartbeatRequest(number)),
            f"NoSuchLockException: No such lock: lockid:{number}",
        )
        for number in NO_IDS[1:]
    },
    **{
        f"heartbeat of transaction {number}": (("heartbeat", HeartbeatRequest(None, number)), no_txn(number))
        for number in NO_IDS[1:]
    },
    "heartbeat of a lock and an aborted transaction": (("heartbeat", HeartbeatRequest(1, 2)), ABORTED),
    "heartbeat of a committed transaction": (("heartbeat", HeartbeatRequest(None, 3)), COMMITTED),
    **{f"commit {number}": (("commit_txn", CommitTxnRequest(number)), no_txn(number)) for number in NO_IDS},
    **{f"abort {number}": (("abort_txn", AbortTxnRequest(number)), no_txn(number)) for number in NO_IDS},
    "commit of an aborted transaction": (("commit_txn", CommitTxnRequest(2)), ABORTED),
    "abort of a committed transaction": (("abort_txn", AbortTxnRequest(3)), COMMITTED),
    "a range upside down": (
        ("heartbeat_txn_range", HeartbeatTxnRangeRequest(5, 1)),
        "refused: the range of transactions ends before it begins: 5 to 1",
    ),
    "a range of everything": (
        ("heartbeat_txn_range", HeartbeatTxnRangeRequest(MIN, MAX)),
        f"refused: {2**64} transactions are more than 1000000"
        " (limit txns_per_call_max)",
    ),
    **{
        f"open {number}": (
            ("open_txns", OpenTxnRequest(number, "ann", "host")),
            f"refused: Invalid input for number of txns: {number}",
        )
        for number in (-1, -(2**31))
    },
    "open transactions of no known type": (
        ("open_txns", OpenTxnRequest(1, "ann", "host", txn_type=55)),
        "refused: unknown transaction type 55",
    ),
    "partitions of an operation that is none": (
        ("add_dynamic_partitions", AddDynamicPartitions(1, "d", "t", ["p=1"], 77)),
        "refused: unknown operation type 77",
    ),
    "partitions without a transaction": (
        ("add_dynamic_partitions", AddDynamicPartitions(1, "d", "t", ["p=1"], DataOperationType.NO_TXN)),
        "refused: partitions are added by a transaction: NO_TXN is not an operation of a transaction",
    ),
    **{
        f"partitions of transaction {number}": (
            ("add_dynamic_partitions", AddDynamicPartitions(number, "d", "t", ["p=1"], UPDATE)),
            no_txn(number),
        )
        for number in NO_IDS
    },
    **{
        f"write ids for {numbers}": (
            ("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "u", numbers)),
            "MetaException: Write ID allocation failed on d.u as not all input txns in open state or read-only: "
            + ", ".join(f"txnid:{number}" for number in sorted(numbers) if number != 1),
        )
        for numbers in ([1, 2], [1, 3], [MAX, 0, MIN])
    },
    "write ids seen by a list that is none": (
        ("get_valid_write_ids", GetValidWriteIdsRequest(["d.t"], "x:y")),
        "MetaException: 'x:y' is not a list of ids: 'y' is not an id",
    ),
    **{
        f"seed transactions at {number}": (
            ("seed_txn_id", SeedTxnIdRequest(number)),
            f"MetaException: Invalid txnId seed {number}"
            + (": no ids would be left" if number == MAX else ", the highWaterMark is 3"),
        )
        for number in (3, 0, MIN, MAX)
    },
    "seed write ids that were given": (
        ("seed_write_id", SeedTableWriteIdsRequest("d", "t", 9)),
        "MetaException: The initial WriteId of d.t is set already",
    ),
    "seed write ids below zero": (
        ("seed_write_id", SeedTableWriteIdsRequest("d", "u", -1)),
        "MetaException: -1 is not a write id to begin with",
    ),
    "compact in no known way": (
        ("compact", CompactionRequest("d", "u", None, 9)),
        "refused: unknown compaction type 9",
    ),
    "compact no table": (
        ("compact", CompactionRequest("d", "", None, 1)),
        "refused: a compaction needs a table",
    ),
    **{
        f"mark compaction {number}": (
            ("mark_compacted", CompactionInfoStruct(number, "d", "t", None, 1)),
            f"MetaException: compaction {number} does not exist",
        )
        for number in NO_IDS
    },
    "mark a compaction nobody works on": (
        ("mark_compacted", CompactionInfoStruct(1, "d", "t", None, 1)),
        "MetaException: compaction 1 is initiated and cannot become ready for cleaning",
    ),
    "a lease of ten years": (
        ("grab_lease", [LeaseObject("d", "x")], TEN_YEARS, 0),
        "ExceedsMaxLeaseTimeException: a lease of 315360000 s is longer than 86400 s (lease_seconds_max)",
    ),
    "a lease of nothing": (("grab_lease", [], 60, 0), "InvalidArgumentsException: a lease needs at least one object"),
    **{
        f"a lease of {seconds} seconds": (
            ("grab_lease", [LeaseObject("d", "x")], seconds, 0),
            f"InvalidArgumentsException: lease_duration_sec must be above zero, not {seconds}",
        )
        for seconds in (0, -1, MIN)
    },
    **{
        f"waiting {seconds} seconds": (
            ("grab_lease", [LeaseObject("d", "x")], 60, seconds),
            "InvalidArgumentsException: "
            f"lease_wait_duration_sec must be in 0 to 300 (lease_wait_seconds_max), not {seconds}",
        )
        for seconds in (-1, 301, MAX)
    },
    "a lease of a type that is none": (
        ("grab_lease", [LeaseObject("d", "x", None, "s"), LeaseObject("d", "y", None, "w")], 60, 0),
        "InvalidArgumentsException: lease_type must be s or x, not w",
    ),
    "a lease on what is leased among others": (
        ("grab_lease", [LeaseObject("d", "free", None, "x"), LeaseObject("d", "leased")], 60, 0),
        "LeaseAlreadyExistsException: d.leased conflicts with exclusive lease 1 of bob on d.leased",
    ),
    **{
        f"extend lease {number}": (
            ("extend_lease", number, [], 60),
            f"InvalidArgumentsException: lease {number} is not held any more",
        )
        for number in NO_IDS
    },
    "extend a lease of another": (("extend_lease", 1, [], 60), "InvalidArgumentsException: lease 1 belongs to bob"),
    "drop a lease of another": (("drop_lease", 1, []), "InvalidArgumentsException: lease 1 belongs to bob"),
    "force leases of others": (
        ("force_drop_lease", []),
        "MetaException: user ann is not an administrator and may not drop other users' leases",
    ),
    "force locks of others": (
        ("force_release_lock", 1, "mine"),
        "MetaException: user ann is not an administrator and may not release other users' locks",
    ),
}  # fmt: skip

# Method and arguments of what does nothing and is no error.
HARMLESS: dict[str, tuple[Any, ...]] = {
    **{f"unlock {number}": ("unlock", UnlockRequest(number)) for number in NO_IDS},
    "heartbeat of nothing": ("heartbeat", HeartbeatRequest()),
    "heartbeat of lock 0 and transaction 0": ("heartbeat", HeartbeatRequest(0, 0)),
    "commit again": ("commit_txn", CommitTxnRequest(3)),
    "abort again": ("abort_txn", AbortTxnRequest(2)),
    "abort nothing": ("abort_txns", AbortTxnsRequest([])),
    "abort 100,000 transactions that are none": ("abort_txns", AbortTxnsRequest([*NO_IDS, 2, 3, *range(4, 100_000)])),
    "no partitions": ("add_dynamic_partitions", AddDynamicPartitions(1, "d", "t", [], UPDATE)),
    **{f"drop lease {number}": ("drop_lease", number, []) for number in NO_IDS},
}


@pytest.mark.slow
@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(unchanged: Caller, row: tuple[tuple[Any, ...], str]) -> None:
    arguments, expected = row
    before = unchanged.state()
    assert unchanged.call(*arguments) == expected
    assert unchanged.state() == before


@pytest.mark.parametrize("arguments", HARMLESS.values(), ids=HARMLESS)
def test_what_has_nothing_to_do_is_no_error(unchanged: Caller, arguments: tuple[Any, ...]) -> None:
    before = unchanged.state()
    assert unchanged.call(*arguments) is None
    assert unchanged.state() == before


@pytest.mark.slow
def test_numbers_of_transactions(caller: Caller) -> None:
    assert list(caller.call("open_txns", OpenTxnRequest(0, "ann", "host")).txn_ids) == []
    for asked in (100_000, 2**31 - 1):
        assert len(caller.call("open_txns", OpenTxnRequest(asked, "ann", "host")).txn_ids) == 1_000
    outcome = caller.call("heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 100_000))
    assert (outcome.aborted, len(outcome.nosuch), max(outcome.nosuch)) == ({2}, 100_000 - 2_002, 100_000)
    given = caller.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "u", [*range(4, 2_004)] * 50))
    assert [(each.txnId, each.writeId) for each in given.txnToWriteIds] == [(n, n - 3) for n in range(4, 2_004)]
    caller.call("abort_txns", AbortTxnsRequest(list(range(4, 100_004))))
    assert caller.call("get_open_txns").min_open_txn == 1


def test_what_does_not_matter_in_a_lock_request(caller: Caller) -> None:
    """The level follows from the names; without a transaction the operation is not looked at (semantics §5.1, §5.7)."""
    for fields in ({"level": 9}, {"operation": 77}, {"operation": DataOperationType.UNSET}):
        wanted = component(LockType.SHARED_READ, **fields, tablename="u")
        for txn in (None, 0):
            assert caller.call("lock", lock(wanted, txn=txn)).state == LockState.ACQUIRED


def test_compactions_that_are_not_there_are_told_one_by_one(caller: Caller) -> None:
    outcomes = caller.call("abort_Compactions", AbortCompactionRequest([*NO_IDS, 1, 1])).abortedcompacts
    assert {number: outcome.status for number, outcome in outcomes.items()} == dict.fromkeys(NO_IDS, "Error") | {
        1: "Success"
    }
    assert caller.call("abort_Compactions", AbortCompactionRequest([])).abortedcompacts == {}


def test_of_an_object_that_is_named_twice_the_exclusive_one_counts(caller: Caller) -> None:
    objects = [LeaseObject("d", "t"), LeaseObject("D", "T", "", "X"), LeaseObject("d", "t", None, "s")]
    assert caller.call("grab_lease", objects, 60, 0) == 2
    (held,) = caller.call("list_lease", objects)
    assert (held.db_name, held.table_name, held.partition_name, held.lease_type) == ("d", "t", "", "x")
    assert caller.call("extend_lease", 2, objects, 60) >= held.end_utc
    caller.call("drop_lease", 2, [*objects, LeaseObject("d", "never")])
    assert caller.call("list_lease", [LeaseObject("d", "t")]) == []
