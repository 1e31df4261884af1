import enum
import pickle
import re
import typing

import pytest

from hms_gateway.rpc.structs import (
    CompactionType,
    FieldSchema,
    InvalidObjectException,
    LockState,
    LockType,
    NoSuchTxnException,
    Partition,
    ScheduledQueryKey,
    ScheduledQueryPollResponse,
    SkewedInfo,
    StorageDescriptor,
)
from hms_gateway.storage.registry.outcomes import (
    KEPT_BYTES_MAX,
    TAGS,
    packed,
    packed_value,
    unpacked,
    unpacked_value,
)
from hms_gateway.txn.ports.txn import Client, ShownLock
from hms_gateway.txn.rules.compaction import Compaction, CompactionDetails, CompactionState
from hms_gateway.txn.rules.leases import (
    Claim,
    Extension,
    LeaseConflict,
    LeasedObject,
    LeaseId,
    LeaseType,
    Ticket,
    Waiter,
)
from hms_gateway.txn.rules.locks import Lock, LockId, TxnId
from hms_gateway.txn.rules.names import CommittedRefusal, Target
from hms_gateway.txn.services.compaction import AbortOutcome, CompactionService
from hms_gateway.txn.services.leases import LeaseService
from hms_gateway.txn.services.locks import LockAnswer, LockService
from hms_gateway.txn.services.materialized_views import RebuildService
from hms_gateway.txn.services.transactions import RangeHeartbeat, TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService

TARGET = Target("sales", "orders", "ds=ä/hr=1")
LOCK = Lock(LockId(7), 1, TxnId(0), TARGET, LockType.SHARED_WRITE, True, last_heartbeat_ms=2**40)
HELD = LeasedObject(LeaseId(3), "ann", Claim(TARGET, LeaseType.EXCLUSIVE), 1, 2, 3)
SKEW = SkewedInfo(["a"], [["x"]], {("x",): "file:/x"})
DETAILS = CompactionDetails(properties={"a": "b"}, end_ms=2)
COMPACTION = Compaction(9, TARGET, CompactionType.MAJOR, CompactionState.WORKING, DETAILS)
PARTITION = Partition(["1", ""], "sales", "orders", 5, 0, StorageDescriptor(location="file:/w", skewedInfo=SKEW), {})

VALUES = [
    None,
    True,
    1.5,
    "\U0001f600 and \ufffd",
    [1, 2**63 - 1, -(2**63)],
    {7: 1},
    {"ä", "\U0001f600"},
    (b"\x00\xff", [], {}),
    LockState.WAITING,
    FieldSchema("a", "int"),
    FieldSchema(),
    PARTITION,
    ScheduledQueryPollResponse(ScheduledQueryKey("q", "hive"), 4, "SELECT 1", "ann"),
    [FieldSchema(str(number), "string", "x" * 100) for number in range(1000)],
    LockAnswer(LockId(1), LockState.NOT_ACQUIRED, "Unable to acquire"),
    [ShownLock(LOCK, Client("ann", "host", "agent"), None, (LockId(6), 2))],
    RangeHeartbeat([1], []),
    (COMPACTION, True),
    [AbortOutcome(9, False, "No Such Compaction Id Available")],
    [HELD],
    Extension([HELD]),
    LeaseConflict(HELD.claim, HELD, None),
    LeaseConflict(HELD.claim, Waiter(Ticket(1), HELD.claim, 4), 5),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back(value):
    kept = unpacked_value(packed_value(value))
    assert kept is not None
    assert kept.value == value
    assert type(kept.value) is type(value)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_stored_does_not_depend_on_where_classes_are(value):
    written = unpacked(packed_value(value))
    paths = {kind.__module__ for kind in (*TAGS, CommittedRefusal, Partition, LockState)} | {"app.", "hms_gateway"}
    assert not {path for path in paths if path.encode() in written}


def test_a_refusal_comes_back_with_its_reason():
    kept = unpacked_value(packed_value(CommittedRefusal(NoSuchTxnException("gone"))))
    assert type(kept.value) is CommittedRefusal
    assert kept.value.reason == NoSuchTxnException("gone")
    assert unpacked_value(packed_value(InvalidObjectException())).value == InvalidObjectException()


# The services whose methods are answered from kept values; what their methods return is made of kept values.
SERVICES = (LockService, TransactionService, WriteIdService, RebuildService, CompactionService, LeaseService)
# Returned, but never by a unit of work that changes something; or made after it.
NOT_KEPT = {"MustWait", "OpenTxns", "Unfinished", "BlockingLock", "ValidWriteIds", "ValidIds"}


def own_classes(annotation, found):
    """All classes of ours that `annotation` is made of."""
    for argument in typing.get_args(annotation):
        own_classes(argument, found)
    is_own = isinstance(annotation, type) and re.match(r"(app|hms_gateway)\.(\w+\.)*txn\.", f"{annotation.__module__}.")
    if is_own and annotation not in found and annotation.__name__ not in NOT_KEPT:
        found.add(annotation)
        if not issubclass(annotation, enum.Enum):
            for part in typing.get_type_hints(annotation).values():
                own_classes(part, found)
    return found


def test_every_class_that_units_of_work_give_has_a_tag():
    found = set()
    for service in SERVICES:
        for name, method in vars(service).items():
            if callable(method) and not name.startswith("_"):
                own_classes(typing.get_type_hints(method).get("return"), found)
    assert {LockAnswer, Compaction, Lock, Target} <= found
    assert found <= TAGS.keys()


class Unknown:
    pass


def test_a_value_of_an_unknown_class_is_not_kept(caplog):
    assert packed_value([Unknown()]) is None
    assert "cannot be kept" in caplog.text


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps([1, 2]),
        pickle.dumps(Evil()),
        b"\x80\x04capp.main\nbuild\n.",
        b"no value",
        b"",
        b"\x92\x02\x01",
        b"\x92\x01\x81\xa7unknown\x01",
        b"\x92\x01\x81\xa9FieldSchema\xc4\x01\xff",
        b"\x92\x01\x81\xa6target\x81\xa5other\x01",
    ],
)
def test_what_other_versions_wrote_is_logged_and_not_used(content, capsys, caplog):
    assert unpacked_value(packed(content)) is None
    assert "kept value" in caplog.text
    assert "run" not in capsys.readouterr().out


def test_what_is_too_large_is_not_kept():
    assert packed_value("x" * KEPT_BYTES_MAX) is None
