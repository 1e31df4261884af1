"""Rights of calls that hold no thread: let through by what is remembered, which their unit of work looks at again."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.repeatable import RepeatableProcessor, SuspendedCall
from hms_gateway.rpc.structs import (
    METHODS,
    CheckLockRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    Database,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
    PrincipalType,
    ShowLocksRequest,
    UnlockRequest,
)
from hms_gateway.rpc.wire import Message, MessageType
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.suspension import Result
from tests.handlers.rights.test_authorizer import Everybody, table
from tests.support.catalog import place_empty_database
from tests.support.patience import PATIENCE_SECONDS


@pytest.fixture
def everybody(tmp_path: Path) -> Iterator[Everybody]:
    """alice may change sales.orders, and is known."""
    place_empty_database(tmp_path / DATABASE_FILE)
    settings = Settings(
        data_dir=tmp_path,
        file_systems={"file": "ignore"},
        warehouse_dir="file:/w",
        administrators=["root"],
        authorization="grants",
    )
    made = Everybody(build_metastore(settings))
    made.ask("root", "create_database", Database(name="sales", ownerName="root"))
    for name in ("orders", "lines"):
        assert made.ask("root", "create_table", table("sales", name, "root")) is None
    made.grant("root", "insert", "sales.orders")
    for user in ("alice", "bob"):
        made.ask(user, "get_all_databases")
    with contextlib.closing(made.metastore.store):
        yield made


def lock(name: str = "orders", **fields: Any) -> LockRequest:
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "Sales", name)
    return LockRequest([component], user="somebody", hostname="h", **fields)


class Begun:
    """A call as the event loop makes it, and what it came to without a thread."""

    def __init__(self, everybody: Everybody, who: str, name: str, *values: Any) -> None:
        processor = everybody.metastore.processor
        assert isinstance(processor, RepeatableProcessor)
        self.call, self._codec, self._method = Call(who), everybody.metastore.codecs.tjson, METHODS[name]
        payload = self._codec.encode(self._method.arguments(*values))
        assert isinstance(payload, bytes)
        self.begun = processor.begin(self._codec, Message(name, MessageType.CALL, 1, payload), self.call)

    def run(self) -> Result:
        """Have the unit of work run."""
        assert isinstance(self.begun, SuspendedCall), self.begun
        begun = self.begun

        async def told() -> Result:
            told: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            begun.start(told.set_result)
            return await asyncio.wait_for(told, PATIENCE_SECONDS)

        return asyncio.run(told())

    def finish(self, result: Result) -> Any:
        """The answer, `NAME: text` for a refusal; and whether it took a thread."""
        assert isinstance(self.begun, SuspendedCall)
        reply = self.begun.go_on(result)
        takes_thread = not isinstance(reply, Reply)
        if not isinstance(reply, Reply):
            reply = reply(self.call)
        assert isinstance(reply.payload, bytes)
        if reply.type is MessageType.EXCEPTION:
            return reply.outcome, takes_thread
        result_ = self._codec.decode(self._method.result, reply.payload)
        return (getattr(result_, "success", None) if reply.outcome == "ok" else reply.outcome), takes_thread


def answer(everybody: Everybody, who: str, name: str, *values: Any) -> Any:
    one = Begun(everybody, who, name, *values)
    return one.finish(one.run())


def shown(everybody: Everybody) -> list[tuple[str, str]]:
    return [(one.tablename, one.user) for one in everybody.ask("root", "show_locks", ShowLocksRequest()).locks]


def test_no_thread_is_taken_by_who_may(everybody: Everybody) -> None:
    txns, takes_thread = answer(everybody, "alice", "open_txns", OpenTxnRequest(1, "somebody", "h"))
    assert not takes_thread
    held, takes_thread = answer(everybody, "alice", "lock", lock())
    assert (held.state, takes_thread) == (LockState.ACQUIRED, False)
    assert shown(everybody) == [("orders", "alice")]
    for name, request in (
        ("check_lock", CheckLockRequest(held.lockid)),
        ("heartbeat", HeartbeatRequest(held.lockid, txns.txn_ids[0])),
        ("unlock", UnlockRequest(held.lockid)),
        ("commit_txn", CommitTxnRequest(txns.txn_ids[0])),
    ):
        assert answer(everybody, "alice", name, request)[1] is False, name
    assert shown(everybody) == []


def test_who_may_not_is_told_by_the_rights_of_now(everybody: Everybody) -> None:
    for who, name in (("bob", "orders"), ("alice", "lines")):
        assert not isinstance(Begun(everybody, who, "lock", lock(name)).begun, SuspendedCall)
        assert everybody.ask(who, "lock", lock(name)) == "PROTOCOL_ERROR"
    everybody.grant("root", "insert", "sales.lines")
    assert everybody.ask("alice", "lock", lock("lines")).state == LockState.ACQUIRED


def test_a_right_that_is_taken_away_before_the_unit_of_work_is_missing(everybody: Everybody) -> None:
    one = Begun(everybody, "alice", "lock", lock())
    everybody.revoke("root", "insert", "sales.orders")
    assert one.finish(one.run()) == ("PROTOCOL_ERROR", True)
    assert shown(everybody) == []


def test_a_right_that_is_taken_away_after_the_unit_of_work_was_there(everybody: Everybody) -> None:
    one = Begun(everybody, "alice", "lock", lock())
    result = one.run()
    everybody.revoke("root", "insert", "sales.orders")
    held, takes_thread = one.finish(result)
    assert (held.state, takes_thread) == (LockState.ACQUIRED, False)


def test_changes_of_other_objects_do_not_matter(everybody: Everybody) -> None:
    one = Begun(everybody, "alice", "lock", lock())
    everybody.ask("root", "create_table", table("sales", "more", "root"))
    everybody.ask("root", "alter_table", "sales", "lines", table("sales", "lines", "alice"))
    assert one.finish(one.run())[1] is False


@pytest.mark.parametrize("change", ["alter_table", "drop_table"])
def test_a_change_of_the_object_is_looked_at(everybody: Everybody, change: str) -> None:
    """A grant on it may have gone with it."""
    one = Begun(everybody, "alice", "lock", lock())
    if change == "drop_table":
        everybody.ask("root", "drop_table", "sales", "orders", False)
        everybody.ask("root", "create_table", table("sales", "orders", "root"))
        assert one.finish(one.run()) == ("PROTOCOL_ERROR", True)
    else:
        everybody.ask("root", "alter_table", "sales", "orders", table("sales", "orders", "root"))
        held, takes_thread = one.finish(one.run())
        assert (held.state, takes_thread) == (LockState.ACQUIRED, True)


def test_more_events_than_are_read_ahead_are_read_in_a_thread(
    everybody: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_gateway.storage.txn.batch.EVENTS_MAX", 2)
    for number, takes_thread in enumerate((False, True)):
        one = Begun(everybody, "alice", "lock", lock())
        for made in range(2 + number):
            everybody.ask("root", "create_table", table("sales", f"more{number}{made}", "root"))
        held, took_thread = one.finish(one.run())
        assert took_thread is takes_thread
        everybody.ask("alice", "unlock", UnlockRequest(held.lockid))


def test_locks_and_transactions_of_others_are_unknown(everybody: Everybody) -> None:
    held = everybody.ask("alice", "lock", lock())
    (opened,) = everybody.ask("alice", "open_txns", OpenTxnRequest(1, "alice", "h")).txn_ids
    assert answer(everybody, "bob", "check_lock", CheckLockRequest(held.lockid)) == ("NoSuchLockException", True)
    assert answer(everybody, "bob", "heartbeat", HeartbeatRequest(0, opened)) == ("NoSuchTxnException", True)
    assert answer(everybody, "bob", "commit_txn", CommitTxnRequest(opened)) == ("NoSuchTxnException", True)
    assert answer(everybody, "bob", "unlock", UnlockRequest(held.lockid)) == (None, True)
    assert answer(everybody, "root", "heartbeat", HeartbeatRequest(held.lockid, opened)) == (None, False)
    assert shown(everybody) == [("orders", "alice")]


def test_who_became_an_administrator_meanwhile_names_whom_it_likes(everybody: Everybody) -> None:
    one = Begun(everybody, "alice", "lock", lock())
    everybody.ask("root", "grant_role", "admin", "alice", PrincipalType.USER, "root", PrincipalType.USER, False)
    assert one.finish(one.run())[1] is True
    assert shown(everybody) == [("orders", "somebody")]
    assert answer(everybody, "alice", "lock", lock("lines"))[1] is False
    assert shown(everybody) == [("orders", "somebody"), ("lines", "somebody")]


def test_nothing_is_read_by_the_event_loop(everybody: Everybody, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of a key that a commit changes is looked up by a thread."""
    everybody.grant("root", "alter", "sales.orders")
    everybody.ask("alice", "get_all_databases")
    (opened,) = everybody.ask("alice", "open_txns", OpenTxnRequest(1, "alice", "h")).txn_ids
    orders = everybody.metastore.store.read(lambda snapshot: snapshot.table("sales", "orders"))
    assert orders is not None
    given = CommitTxnKeyValue(orders.table_id, "_meta.mark", "1")
    with monkeypatch.context() as patched:
        patched.setattr(type(everybody.metastore.store), "_read", _reads)
        one = Begun(everybody, "alice", "commit_txn", CommitTxnRequest(opened, keyValue=given))
    assert not isinstance(one.begun, SuspendedCall | Reply)
    assert one.begun(one.call).outcome == "ok"


def _reads(*_: object, **__: object) -> None:
    raise AssertionError("the event loop reads the database")


def test_a_repetition_is_answered_by_the_rights_of_now(everybody: Everybody) -> None:
    method, codec = METHODS["lock"], everybody.metastore.codecs.tjson
    payload = codec.encode(method.arguments(lock()))
    assert isinstance(payload, bytes)
    message = Message("lock", MessageType.CALL, 1, payload)

    def locked() -> Reply:
        return everybody.metastore.processor.process(codec, message, Call("alice", key="k"))

    first = locked()
    assert first.outcome == "ok"
    everybody.revoke("root", "insert", "sales.orders")
    again = locked()
    assert again.outcome == "replayed"
    assert again.payload != first.payload
