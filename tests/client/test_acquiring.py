"""Deny, give up, try again: against the lock methods of the real store."""

from contextlib import suppress

import pytest

from hms_gateway.cli.hiveql.lock_commands import parse_command
from hms_gateway.client.acquiring import ConcurrencySettings, LockAcquirer, LockHolder, LocksDenied, SettingError
from hms_gateway.client.concurrency import needed_locks
from hms_gateway.handlers.locks import KeyOrder, Locks
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    DataOperationType,
    LockComponent,
    LockRequest,
    LockType,
    NoSuchLockException,
    ShowLocksRequest,
    TxnOpenException,
    UnlockRequest,
)
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Deferred
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from tests.support.catalog import open_catalog

ANN = LockHolder("ann", "here", "query 1")
CODEC = make_codecs(Limits()).binary


def chunks_of(encoded):
    return [encoded] if isinstance(encoded, bytes) else encoded


class Server:
    """A client whose server is in the same process."""

    def __init__(self, store):
        locks = LockService(store, TxnSettings())
        self.transactions = TransactionService(store, locks, TxnSettings())
        self._locks = Locks(locks, KeyOrder(store, TxnSettings().components_max))
        self.called = []
        self.failures = 0
        self.loses_reply_to = None

    def call(self, name, /, *arguments):
        self.called.append(name)
        if name == "unlock" and self.failures:
            self.failures -= 1
            raise ConnectionError("gone")
        if name == "heartbeat":
            return self.transactions.heartbeat(arguments[0].lockid, 0).result()
        answer = getattr(self._locks, name)(Call("ann"), *arguments)
        answer = answer.result() if isinstance(answer, Deferred) else answer
        if name == self.loses_reply_to:
            self.loses_reply_to = None
            raise ConnectionError("reply lost")
        return answer and CODEC.decode(type(answer), b"".join(chunks_of(CODEC.encode(answer))))

    def shown(self):
        locks = self.call("show_locks", ShowLocksRequest()).locks
        return [(LockType(lock.type).name, lock.tablename, lock.partname) for lock in locks]


@pytest.fixture
def server(tmp_path):
    with open_catalog(tmp_path) as catalog:
        yield Server(catalog.store)


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def acquirer(server, pauses):
    return LockAcquirer(server, ConcurrencySettings(lock_retries=2, pause_seconds=60, unlock_retries=1), pauses.append)


def locks(text):
    return needed_locks(parse_command(text, make_name))


def test_locks_are_taken_as_one_request_and_released(acquirer, server):
    lock_id = acquirer.acquire(locks("insert into t2(partition p.q) select .. t1 partition p1"), ANN)
    assert sorted(server.shown()) == [
        ("EXCLUSIVE", "t2", "p/q"),
        ("SHARED_READ", "t1", "p1"),
        ("SHARED_READ", "t2", "p"),
    ]
    acquirer.release(lock_id)
    assert server.shown() == []


def test_what_is_denied_leaves_nothing_and_is_tried_again(acquirer, server, pauses):
    acquirer.acquire(locks("select * from t1"), ANN)
    with pytest.raises(LocksDenied, match=r"not granted in 3 tries: X on default\.t1$"):
        acquirer.acquire(locks("drop table t1"), ANN)
    assert pauses == [60, 60]
    assert server.shown() == [("SHARED_READ", "t1", None)]


def test_a_retry_succeeds_once_the_other_is_gone(server):
    released = []

    def pause(seconds):
        if not released:
            released.append(first.release(lock_id))

    first = LockAcquirer(server, ConcurrencySettings(), pause)
    lock_id = first.acquire(locks("drop table t1"), ANN)
    assert first.acquire(locks("select * from t1"), ANN) > lock_id
    assert server.shown() == [("SHARED_READ", "t1", None)]


class Readers:
    """Sixteen that read for `HELD` rounds each and start again, one behind the other: some always hold their lock."""

    COUNT = 16
    HELD = 16

    def __init__(self, server, **settings):
        self._acquirer = LockAcquirer(server, ConcurrencySettings(lock_retries=0, **settings), pytest.fail)
        self._held = {}
        self.round = 0

    def play(self, seconds=0):
        """One round."""
        self.round += 1
        for reader in range(self.COUNT):
            lock_id, since = self._held.get(reader, (None, 0))
            if lock_id is not None and self.round - since >= self.HELD:
                self._acquirer.release(lock_id)
                del self._held[reader]
            if reader not in self._held and self.round >= reader:
                with suppress(LocksDenied):
                    holder = LockHolder("ann", "here", f"reader {reader}")
                    self._held[reader] = self._acquirer.acquire(locks("select * from t"), holder), self.round


@pytest.fixture
def readers(server):
    found = Readers(server)
    for _ in range(Readers.COUNT):
        found.play()
    return found


@pytest.mark.slow
def test_a_writer_among_readers_gets_its_lock_within_two_of_their_hold_times(server, readers):
    began = readers.round
    writer = LockAcquirer(server, ConcurrencySettings(lock_retries=2 * Readers.HELD), readers.play)
    writer.acquire(locks("drop table t"), ANN)
    assert readers.round - began <= 2 * Readers.HELD
    assert server.shown() == [("EXCLUSIVE", "t", None)]


@pytest.mark.slow
def test_a_writer_that_gives_its_place_up_starves(server, readers):
    """As on Hive's page; this is what the test above is worth."""
    writer = LockAcquirer(server, ConcurrencySettings(lock_retries=6 * Readers.HELD, keeps_place=False), readers.play)
    with pytest.raises(LocksDenied):
        writer.acquire(locks("drop table t"), ANN)
    assert len(server.shown()) >= Readers.COUNT - 1


def test_a_place_is_kept_alive_in_long_pauses(server):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        # The metastore has not forgotten it.
        assert server.shown()[-1] == ("EXCLUSIVE", "t", None)

    LockAcquirer(server, ConcurrencySettings(), pytest.fail).acquire(locks("select * from t"), ANN)
    writer = LockAcquirer(server, ConcurrencySettings(lock_retries=1, pause_seconds=150), pause)
    with pytest.raises(LocksDenied, match="not granted in 2 tries"):
        writer.acquire(locks("drop table t"), ANN)
    assert pauses == [60, 60, 30]
    assert server.called.count("check_lock") == 3
    assert server.shown() == [("SHARED_READ", "t", None)]


def test_a_place_that_the_metastore_has_forgotten_is_taken_anew(server):
    holder = LockAcquirer(server, ConcurrencySettings(), pytest.fail)
    held = holder.acquire(locks("select * from t"), ANN)

    def pause(seconds):
        newest = max(lock.lockid for lock in server.call("show_locks", ShowLocksRequest()).locks)
        server.call("unlock", UnlockRequest(newest))
        holder.release(held)

    writer = LockAcquirer(server, ConcurrencySettings(), pause)
    writer.acquire(locks("drop table t"), ANN)
    assert server.shown() == [("EXCLUSIVE", "t", None)]


def test_who_stops_waiting_leaves_no_request_behind(server):
    def interrupted(seconds):
        raise KeyboardInterrupt

    LockAcquirer(server, ConcurrencySettings(), pytest.fail).acquire(locks("select * from t"), ANN)
    with pytest.raises(KeyboardInterrupt):
        LockAcquirer(server, ConcurrencySettings(), interrupted).acquire(locks("drop table t"), ANN)
    assert server.shown() == [("SHARED_READ", "t", None)]


def test_readers_and_writers_of_different_partitions_do_not_meet(acquirer):
    for text in (
        "insert into t(partition a.b) select 1",
        "insert into t(partition a.c) select 1",
        "select .. t partition d",
        "alter table t add partition e",
        "alter table u set serdeproperties",
        "select * from u",
    ):
        acquirer.acquire(locks(text), ANN)
    for text in (
        "select .. t partition a.b",
        "insert into t(partition a) select 1",
        "alter table t drop partition d",
        "drop table t",
        "alter table u concatenate",
    ):
        with pytest.raises(LocksDenied):
            acquirer.acquire(locks(text), ANN)


def test_nothing_is_locked_when_concurrency_is_off_or_nothing_needs_it(acquirer, server):
    off = LockAcquirer(server, ConcurrencySettings(is_on=False), pytest.fail)
    assert off.acquire(locks("drop table t"), ANN) is None
    assert acquirer.acquire(locks("alter table t compact 'minor'"), ANN) is None
    assert server.shown() == []


def test_unlocking_is_tried_again_as_often_as_configured(acquirer, server, pauses):
    lock_id = acquirer.acquire(locks("drop table t"), ANN)
    server.failures = 2
    with pytest.raises(ConnectionError):
        acquirer.release(lock_id)
    assert pauses == [60]
    server.failures = 1
    acquirer.release(lock_id)
    assert server.shown() == []


def test_locks_of_a_request_whose_answer_is_lost_are_given_back_and_nobody_elses(acquirer, server):
    other = acquirer.acquire(locks("select * from t"), LockHolder("ann", "here", "query 2"))
    for text in ("select * from t", "drop table t"):
        server.loses_reply_to = "lock"
        with pytest.raises(ConnectionError, match="reply lost"):
            acquirer.acquire(locks(text), ANN)
        assert server.shown() == [("SHARED_READ", "t", None)]
    acquirer.keep(other)


def test_what_the_metastore_refuses_is_not_asked_for_again(acquirer, server, pauses):
    with pytest.raises(NoSuchLockException):
        acquirer.keep(99)
    (txn_id,) = server.transactions.open(1, Client("ann", "here", "query 1")).result()
    component = LockComponent(LockType.SHARED_READ, 2, "d", "t", operationType=DataOperationType.SELECT)
    held = server.call("lock", LockRequest([component], txn_id, "ann", "here"))
    with pytest.raises(TxnOpenException):
        acquirer.release(held.lockid)
    assert pauses == []


def test_settings_of_hive():
    assert ConcurrencySettings.from_configuration({}) == ConcurrencySettings(True, 100, 60.0, 10)
    given = {
        "hive.support.concurrency": "FALSE",
        "hive.lock.numretries": "3",
        "hive.lock.sleep.between.retries": "500ms",
        "hive.unlock.numretries": "0",
        "hive.exec.parallel": "true",
    }
    assert ConcurrencySettings.from_configuration(given) == ConcurrencySettings(False, 3, 0.5, 0)
    for text, seconds in (("60s", 60), ("2m", 120), ("45", 45), ("1h", 3600)):
        found = ConcurrencySettings.from_configuration({"hive.lock.sleep.between.retries": text})
        assert found.pause_seconds == seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hive.support.concurrency", "yes"),
        ("hive.lock.numretries", "-1"),
        ("hive.lock.numretries", ""),
        ("hive.unlock.numretries", "x"),
        ("hive.lock.sleep.between.retries", "soon"),
        ("hive.lock.sleep.between.retries", "1 y"),
        ("hive.lock.sleep.between.retries", ""),
    ],
)
def test_settings_that_are_none_are_named(name, value):
    with pytest.raises(SettingError, match=name):
        ConcurrencySettings.from_configuration({name: value})
