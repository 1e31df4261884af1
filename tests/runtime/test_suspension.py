"""Calls whose unit of work waits without a thread answer as those in a thread do, and happen once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.rpc.call import Call, Dialect, Unavailable
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.repeatable import Process, RepeatableProcessor, SuspendedCall
from hms_gateway.rpc.structs import (
    METHODS,
    CheckLockRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    UnlockRequest,
)
from hms_gateway.rpc.wire import Message, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.runtime.suspension import Result
from tests.support.catalog import place_empty_database
from tests.support.patience import PATIENCE_SECONDS

TJSON = make_codecs(Limits()).tjson
OPEN = OpenTxnRequest(1, "who", "host")


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    place_empty_database(tmp_path / DATABASE_FILE)
    made = build_metastore(load_settings(data_dir=tmp_path))
    yield made
    made.store.close()


def call(key: str | None = None) -> Call:
    return Call(
        principal="who",
        groups=(),
        dialect=Dialect.HIVE_2_3,
        request_id="r",
        client_address="127.0.0.1",
        key=key,
    )


def message(method: str, *arguments: Any) -> Message:
    payload = TJSON.encode(METHODS[method].arguments(*arguments))
    assert isinstance(payload, bytes)
    return Message(method, MessageType.CALL, 1, payload)


def lock(table: str) -> LockRequest:
    return LockRequest([LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "d", table)], user="who", hostname="host")


def begun(metastore: Metastore, sent: Message, key: str | None = None) -> Reply | SuspendedCall | Process:
    assert isinstance(metastore.processor, RepeatableProcessor)
    return metastore.processor.begin(TJSON, sent, call(key))


def given(*calls: SuspendedCall) -> list[Result]:
    """What the units of work of these calls gave."""

    async def run() -> list[Result]:
        told: asyncio.Queue[Result] = asyncio.Queue()
        for one in calls:
            one.start(told.put_nowait)
        return [await asyncio.wait_for(told.get(), PATIENCE_SECONDS) for _ in calls]

    return asyncio.run(run())


def completed(metastore: Metastore, method: str, *arguments: Any, key: str | None = None) -> Any:
    one = begun(metastore, message(method, *arguments), key)
    assert isinstance(one, SuspendedCall)
    reply = one.go_on(given(one)[0])
    assert isinstance(reply, Reply)
    return result(reply, method)


def result(reply: Reply, method: str) -> Any:
    assert isinstance(reply.payload, bytes)
    return TJSON.decode(METHODS[method].result, reply.payload)


def test_every_deferred_method_answers(metastore: Metastore) -> None:
    txn_id = completed(metastore, "open_txns", OPEN).success.txn_ids[0]
    lock_id = completed(metastore, "lock", lock("t")).success.lockid
    assert completed(metastore, "check_lock", CheckLockRequest(lock_id)).success.lockid == lock_id
    assert completed(metastore, "heartbeat", HeartbeatRequest(lock_id, txn_id)) == METHODS["heartbeat"].result()
    assert completed(metastore, "unlock", UnlockRequest(lock_id)) == METHODS["unlock"].result()
    assert completed(metastore, "commit_txn", CommitTxnRequest(txn_id)) == METHODS["commit_txn"].result()
    suspendable = {name for name, facts in method_facts().items() if facts.suspendable}
    assert {"open_txns", "lock", "check_lock", "heartbeat", "unlock", "commit_txn"} == suspendable


def test_what_a_unit_of_work_refuses_is_the_answer(metastore: Metastore) -> None:
    assert "999" in completed(metastore, "commit_txn", CommitTxnRequest(999)).o1.message
    assert "999" in completed(metastore, "check_lock", CheckLockRequest(999)).o3.message


def test_bad_arguments_are_answered_at_once(metastore: Metastore) -> None:
    reply = begun(metastore, message("lock", LockRequest([], user="who", hostname="host")))
    assert isinstance(reply, Reply)
    assert reply.outcome != "ok"


def test_other_calls_need_a_thread(metastore: Metastore) -> None:
    marked = CommitTxnRequest(1, keyValue=CommitTxnKeyValue(1, "_meta", "v"))
    for sent in (message("get_all_databases"), message("commit_txn", marked)):
        process = begun(metastore, sent)
        assert not isinstance(process, Reply | SuspendedCall)
        assert process(call()).outcome in ("ok", "NoSuchTxnException")


def test_a_repeated_call_is_left_to_those_who_know_the_first_answer(metastore: Metastore) -> None:
    first = completed(metastore, "open_txns", OPEN, key="k")
    again = begun(metastore, message("open_txns", OPEN), "k")
    assert isinstance(again, SuspendedCall)
    process = again.go_on(given(again)[0])
    assert not isinstance(process, Reply)
    assert result(process(call("k")), "open_txns") == first
    assert completed(metastore, "open_txns", OPEN).success.txn_ids == [first.success.txn_ids[0] + 1]


def test_a_closed_store_takes_nothing(metastore: Metastore) -> None:
    one = begun(metastore, message("open_txns", OPEN))
    assert isinstance(one, SuspendedCall)
    metastore.store.close()
    with pytest.raises(StoreUnavailable) as raised:
        given(one)
    with pytest.raises(Unavailable):
        one.go_on(Result(None, raised.value))


def test_listeners_that_are_gone_leave_the_others_alone(metastore: Metastore) -> None:
    gone, other = (begun(metastore, message("open_txns", OPEN)) for _ in range(2))
    assert isinstance(gone, SuspendedCall)
    assert isinstance(other, SuspendedCall)

    async def start() -> None:
        gone.start(lambda outcome: None)

    asyncio.run(start())
    assert given(other)[0].failure is None
