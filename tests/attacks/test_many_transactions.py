"""A second attack: a million transactions in one call kept everybody else from writing while they were looked for."""

import threading

from hms_gateway.storage.txn import state as txn_state
from hms_gateway.structs import AbortTxnsRequest, HeartbeatTxnRangeRequest
from tests.attacks.processor_calls import answered, open_metastore


def test_the_writer_sees_only_those_that_are_open(tmp_path, monkeypatch):
    asked_in_the_writer = []
    txns = txn_state.TxnStateReads.txns

    def noting(self, txn_ids):
        if threading.current_thread().name == "store-writer":
            asked_in_the_writer.append(len(txn_ids))
        return txns(self, txn_ids)

    monkeypatch.setattr(txn_state.TxnStateReads, "txns", noting)
    with open_metastore(tmp_path) as metastore:
        asked_in_the_writer.clear()
        assert answered(metastore, "abort_txns", AbortTxnsRequest(list(range(1_000, 51_000)))) == ("ok", None)
    assert asked_in_the_writer == [0]


def test_the_limit_that_the_error_names_can_be_set(tmp_path):
    with open_metastore(tmp_path, txns_per_call_max=3) as metastore:
        assert answered(metastore, "heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 3))[0] == "ok"
        for name, request in (
            ("heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 4)),
            ("abort_txns", AbortTxnsRequest([1, 2, 3, 4])),
        ):
            error = f"{name}: 4 transactions are more than 3 (limit txns_per_call_max)"
            assert answered(metastore, name, request) == ("PROTOCOL_ERROR", error)
