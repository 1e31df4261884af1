"""A compactor outside the gateway, as somebody might write one: takes what is queued, pretends to merge it, cleans up.

Arguments: URL, user, password, and what to say instead of merging. Prints a JSON object for each compaction.
"""

import json
import sys

from msgspec.structs import asdict

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    CommitTxnRequest,
    CompactionInfoStruct,
    FindNextCompactRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    OpenTxnRequest,
    ShowCompactRequest,
    TxnType,
)
from hms_gateway.txn.rules.write_ids import ValidIds, ids_with_bits
from tests.support.server import trusting

WORKER = "worker-1"


def mergeable_of(ids: ValidIds) -> ValidIds:
    """The write ids that a compaction may merge: all below the oldest open one, but the aborted ones."""
    mark = ids.high_water_mark if ids.oldest_open is None else min(ids.high_water_mark, ids.oldest_open - 1)
    return ValidIds(mark, (), tuple(number for number in ids.aborted_ids if number <= mark))


class Worker:
    def __init__(self, client: MetastoreClient, failure: str | None) -> None:
        self._client = client
        self._failure = failure

    def work(self) -> None:
        while (job := self._client.call("find_next_compact2", FindNextCompactRequest(WORKER, "4.0")).ci) is not None:
            self._compact(job)
        for done in self._client.call("show_compact", ShowCompactRequest(state="ready for cleaning")).compacts:
            info = CompactionInfoStruct(done.id, done.dbname, done.tablename, done.partitionname, done.type)
            self._client.call("mark_cleaned", info)
            print(json.dumps({"cleaned": done.id}))

    def _compact(self, job: CompactionInfoStruct) -> None:
        opened = OpenTxnRequest(1, "worker", "elsewhere", txn_type=TxnType.COMPACTION)
        (txn_id,) = self._client.call("open_txns", opened).txn_ids
        mergeable = mergeable_of(self._seen(job))
        job.highestWriteId = mergeable.high_water_mark
        self._client.call("update_compactor_state", job, txn_id)
        self._client.call("set_hadoop_jobid", f"job_{job.id}", job.id)
        self._client.call("heartbeat", HeartbeatRequest(txnid=txn_id))
        if self._failure is not None:
            self._client.call("abort_txn", AbortTxnRequest(txn_id))
            job.errorMessage = self._failure
            self._client.call("mark_failed", job)
        else:
            self._client.call("commit_txn", CommitTxnRequest(txn_id))
            self._client.call("mark_compacted", job)
        print(json.dumps({"job": job.id, "txn": txn_id, "mergeable": asdict(mergeable)}))

    def _seen(self, job: CompactionInfoStruct) -> ValidIds:
        request = GetValidWriteIdsRequest([f"{job.dbname}.{job.tablename}"])
        (seen,) = self._client.call("get_valid_write_ids", request).tblValidWriteIds
        return ids_with_bits(seen.writeIdHighWaterMark, seen.invalidWriteIds, seen.abortedBits)


def main(url: str, user: str, password: str, failure: str | None = None) -> None:
    methods = methods_of(Dialect.HIVE_4)
    with MetastoreClient(url, (user, password), trusting(), methods=methods) as client:
        Worker(client, failure).work()


if __name__ == "__main__":
    main(*sys.argv[1:])
