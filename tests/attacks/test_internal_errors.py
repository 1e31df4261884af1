"""A low one: INTERNAL_ERROR means that the gateway failed; what callers do wrong is declared, or a protocol error."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreFailure
from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    CommitTxnRequest,
    FireEventRequest,
    FireEventRequestData,
    LockComponent,
    LockRequest,
    LockState,
    OpenTxnRequest,
    Partition,
)
from tests.attacks.processor_calls import answered, open_metastore
from tests.gateway.serving import record


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    with open_metastore(tmp_path) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("lock", (None,), "lock: rqst must not be null"),
        ("lock", (LockRequest([], None, "u", "h"),), "lock: a lock request needs at least one component"),
        ("lock", (LockRequest([LockComponent(77, 2, "d")], None, "u", "h"),), "lock: unknown lock type 77"),
        ("open_txns", (None,), "open_txns: rqst must not be null"),
        ("open_txns", (OpenTxnRequest(-1, "u", "h"),), None),
        ("commit_txn", (None,), "commit_txn: rqst must not be null"),
        ("show_locks", (None,), "show_locks: rqst must not be null"),
        ("get_next_notification", (None,), "get_next_notification: rqst must not be null"),
        ("fire_listener_event", (None,), "fire_listener_event: rqst must not be null"),
        (
            "fire_listener_event",
            (FireEventRequest(True, FireEventRequestData(), "default", "missing"),),
            None,
        ),
    ],
)
def test_a_mistake_where_nothing_is_declared_is_a_protocol_error(
    metastore: Metastore, method: str, arguments: Any, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    outcome, said = answered(metastore, method, *arguments)
    assert outcome == ("PROTOCOL_ERROR" if text is not None or said is not None else "ok")
    assert text is None or said == text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_mistake_where_something_is_declared_is_that(metastore: Metastore) -> None:
    assert answered(metastore, "create_table", None)[0] in ("MetaException", "InvalidObjectException")
    assert answered(metastore, "add_partition", Partition(["1"], "missing", "t"))[0] == "InvalidObjectException"
    assert answered(metastore, "get_tables", None, "*")[0] == "MetaException"


@pytest.mark.slow
@pytest.mark.parametrize("component", [LockComponent(3, 2, "default", "t"), LockComponent(77, 2, "default", "t")])
def test_a_lock_within_a_transaction_that_is_not_there_is_about_the_transaction(
    metastore: Metastore, component: LockComponent
) -> None:
    """Finding 13 of those who tried it: whatever is wrong with the component, the transaction is looked at first."""
    request = LockRequest([component], 99, "ann", "host")
    assert answered(metastore, "lock", request) == ("NoSuchTxnException", "No such transaction txnid:99")
    assert answered(metastore, "abort_txn", AbortTxnRequest(1))[0] == "ok"
    assert answered(metastore, "lock", LockRequest([component], 1, "ann", "host"))[0] == "TxnAbortedException"
    assert answered(metastore, "commit_txn", CommitTxnRequest(2))[0] == "ok"
    assert answered(metastore, "lock", LockRequest([component], 2, "ann", "host"))[0] == "NoSuchTxnException"


@pytest.mark.slow
def test_what_is_wrong_with_a_component_is_said_when_the_transaction_is_open(metastore: Metastore) -> None:
    request = LockRequest([LockComponent(1, 2, "default", "t")], 1, "ann", "host")
    assert answered(metastore, "lock", request) == (
        "PROTOCOL_ERROR",
        "lock: a lock within a transaction must say its operation type",
    )
    request = LockRequest([LockComponent(int(LockState.ACQUIRED), 2, "default", "t", None, 1)], 1, "ann", "host")
    assert answered(metastore, "lock", request)[0] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("failure", [StoreFailure("the database refused"), OutcomeUnknown("the connection was lost")])
def test_what_the_database_does_is_an_internal_error_and_logged(
    metastore: Metastore, failure: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(work: object) -> None:
        raise failure

    monkeypatch.setattr(metastore.store, "write", fail)
    outcome, text = answered(metastore, "open_txns", OpenTxnRequest(1, "ann", "host"))
    assert (outcome, text) == ("INTERNAL_ERROR", f"Internal error processing open_txns: {failure}")
    assert answered(metastore, "drop_table", "default", "t", True) == ("INTERNAL_ERROR", str(failure))
    assert [record.levelname for record in caplog.records if str(failure) in record.getMessage()] == ["ERROR", "ERROR"]


@pytest.mark.slow
def test_a_bug_is_an_internal_error(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(work: object) -> None:
        raise sqlite3.OperationalError("not translated")

    monkeypatch.setattr(metastore.store, "read", fail)
    assert answered(metastore, "get_all_databases") == (
        "INTERNAL_ERROR",
        "Internal error processing get_all_databases",
    )


def test_internal_errors_have_a_counter() -> None:
    metrics = Metrics({"lock"})
    metrics.served.add(record(method="lock", outcome="PROTOCOL_ERROR"))
    metrics.served.add(record(method="lock", outcome="MetaException"))
    assert b"\nhms_gateway_internal_errors_total 0.0\n" in metrics_text(metrics)
    metrics.served.add(record(method="lock", outcome="INTERNAL_ERROR"))
    metrics.served.add(record(method="other", outcome="internal_error"))
    assert b"\nhms_gateway_internal_errors_total 2.0\n" in metrics_text(metrics)
