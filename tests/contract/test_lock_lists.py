"""What show_locks sends is what the locks' values say, in every protocol and dialect, on every database."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hms_gateway.rpc.structs import METHODS, LockState, LockType, ShowLocksResponse
from hms_gateway.rpc.wire import Codec, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore
from hms_gateway.txn.ports.txn import Client, LockFilter, TxnSnapshot
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from tests.txn.lock_elements import elements

CODECS = make_codecs(Limits())
OLDER = {LockType.EXCL_WRITE: LockType.SHARED_WRITE}
RESULT: Any = METHODS["show_locks"].result
TARGETS = [
    Target("d"),
    Target("d", "t"),
    Target("d", "t_2"),
    Target("d", "Größe"),
    Target("d", 'odd"\\ \x01name', "p=1"),
    Target("d", "t", "ds=2024-01-01/hr=1"),
    Target("d", "t", 'p="\\\x1f☃/\x7f'),
    Target("other", "t"),
    Target('od"d', "t"),
    Target('od"d'),
]
CLIENTS = [Client("ann", "host", "Unknown"), Client('b"ob\n', "☃", "\x02"), Client("", "", "")]

every_codec = pytest.mark.parametrize("codec", list(CODECS), ids=lambda codec: codec.name)
every_dialect = pytest.mark.parametrize("shown_types", [{}, OLDER], ids=["hive4", "hive2"])


@pytest.fixture
def store_with_locks(store: SqlStore) -> SqlStore:
    """Some wait, some belong to transactions, all types; several components, so that filters leave out first ones."""
    choices = random.Random(7)
    settings = TxnSettings()
    locks = LockService(store, settings)
    txn_ids = TransactionService(store, locks, settings).open(20, CLIENTS[0]).result()
    for number in range(60):
        places = choices.sample(TARGETS, choices.choice([1, 1, 2, 3, 5]))
        wanted = [ComponentSpec(place, choices.choice(list(LockType))) for place in places]
        txn_id = TxnId(0) if number % 3 else txn_ids[number // 3]  # of one request each: no deadlocks
        locks.lock(LockSpec(wanted, choices.choice(CLIENTS), txn_id, shares_writes=choices.random() < 0.5)).result()
    return store


FILTERS = [
    LockFilter(),
    LockFilter(db_name="d"),
    LockFilter(db_name='od"d'),
    LockFilter(table_name="t"),
    LockFilter(table_name='odd"\\ \x01name'),
    LockFilter(db_name="d", table_name="t", partition_name="ds=2024-01-01/hr=1"),
    LockFilter(txn_id=TxnId(0)),
    LockFilter(txn_id=TxnId(2)),
    LockFilter(db_name="d", txn_id=TxnId(1)),
    LockFilter(db_name="nowhere"),
    LockFilter(db_name=""),
    LockFilter(table_name="\x00"),
]


def read_both(store: SqlStore, filter: LockFilter, shown_types: Mapping[LockType, LockType]) -> tuple[Any, Any]:
    def work(snapshot: TxnSnapshot) -> tuple[Any, Any]:
        return snapshot.txns.lock_list(filter, shown_types), snapshot.txns.shown_locks(filter)

    listed, values = store.read(work)
    return listed, elements(values, shown_types)


def encoded(codec: Codec, locks: Any) -> bytes:
    written = codec.encode(RESULT(ShowLocksResponse(locks)))
    return written if isinstance(written, bytes) else b"".join(written)


@every_dialect
@every_codec
def test_locks_are_sent_as_their_values_would_be(
    store_with_locks: SqlStore, codec: Codec, shown_types: dict[LockType, LockType]
) -> None:
    counts = []
    for filter in FILTERS:
        listed, plain = read_both(store_with_locks, filter, shown_types)
        assert len(listed) == len(plain)
        assert [one for chunk in listed.struct_chunks() for one in chunk] == plain
        sent = encoded(codec, listed)
        assert sent == encoded(codec, plain)
        assert codec.decode(RESULT, sent) == RESULT(ShowLocksResponse(plain))
        counts.append(len(plain))
    assert all(counts[:9])
    assert counts[9:] == [0, 0, 0]


def test_what_is_compared_has_everything_in_it(store_with_locks: SqlStore) -> None:
    plain = read_both(store_with_locks, LockFilter(), {})[1]
    assert {one.state for one in plain} == {LockState.ACQUIRED, LockState.WAITING}
    assert {one.type for one in plain} == set(LockType)
    assert {one.acquiredat is None for one in plain} == {one.blockedByExtId is None for one in plain} == {True, False}
    assert {bool(one.txnid) for one in plain} == {True, False}
    numbers = [(one.lockid, one.lockIdInternal) for one in plain if one.dbname == "other"]
    assert any(number > 1 for _, number in numbers), "a filter leaves out first components"


@every_codec
def test_a_long_list_comes_in_chunks(store: SqlStore, codec: Codec) -> None:
    locks = LockService(store, TxnSettings())
    for first in range(0, 1_200, 400):
        names = (f"t{number}" for number in range(first, first + 400))
        locks.lock(
            LockSpec([ComponentSpec(Target("d", name), LockType.EXCLUSIVE) for name in names], CLIENTS[0])
        ).result()
    listed, plain = read_both(store, LockFilter(), {})
    chunks = codec.encode(RESULT(ShowLocksResponse(listed)))
    assert isinstance(chunks, Iterator)
    sent = list(chunks)
    assert len(sent) >= 3
    assert b"".join(sent) == encoded(codec, plain)
