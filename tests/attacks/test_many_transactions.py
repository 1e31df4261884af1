"""A second attack: a million transactions in one call kept everybody else from writing while they were looked for."""

import threading

from hms_gateway.rpc.structs import AbortTxnsRequest, HeartbeatTxnRangeRequest, OpenTxnRequest
from hms_gateway.storage.txn import batch
from tests.attacks.processor_calls import answered, open_metastore


def test_the_writer_sees_only_those_that_are_open(tmp_path, monkeypatch):
    asked_in_the_writer = []
    reading = batch.TxnBatch._txns_reading

    def noting(self, txn_ids):
        assert threading.current_thread().name == "store-writer"
        asked_in_the_writer.append(sorted(txn_ids))
        return reading(self, txn_ids)

    with open_metastore(tmp_path) as metastore:
        assert answered(metastore, "open_txns", OpenTxnRequest(1, "who", "host")) == ("ok", None)
        monkeypatch.setattr(batch.TxnBatch, "_txns_reading", noting)
        wanted = [1, *range(1_000, 51_000)]
        assert answered(metastore, "abort_txns", AbortTxnsRequest(wanted)) == ("ok", None)
    assert asked_in_the_writer == [[1]]


def test_the_limit_that_the_error_names_can_be_set(tmp_path):
    with open_metastore(tmp_path, txns_per_call_max=3) as metastore:
        assert answered(metastore, "heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 3))[0] == "ok"
        for name, request in (
            ("heartbeat_txn_range", HeartbeatTxnRangeRequest(1, 4)),
            ("abort_txns", AbortTxnsRequest([1, 2, 3, 4])),
        ):
            error = f"{name}: 4 transactions are more than 3 (limit txns_per_call_max)"
            assert answered(metastore, name, request) == ("PROTOCOL_ERROR", error)
