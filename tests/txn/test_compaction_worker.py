"""The compaction queue from outside: a real server, and a worker that is a process of its own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AddDynamicPartitions_v4,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    DataOperationType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    MetaException,
    OpenTxnRequest,
    ShowCompactRequest,
)
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import METASTORE_PATH, GatewayServer, trusting
from tests.support.warm_program import WarmModule

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("compaction")) as running:
        yield running


@pytest.fixture
def client(server: GatewayServer) -> Iterator[MetastoreClient]:
    methods = methods_of(Dialect.HIVE_4)
    with MetastoreClient(url_of(server), (server.user, server.password), trusting(), methods=methods) as client:
        yield client


def url_of(server: GatewayServer) -> str:
    return f"https://127.0.0.1:{server.port}{METASTORE_PATH}"


def work(server: GatewayServer, *failure: str) -> list[dict[str, Any]]:
    """Let a worker do all there is to do; what it says about it."""
    worker = WarmModule("tests.txn.compaction_worker", url_of(server), server.user, server.password, *failure)
    said, _ = worker.communicate(PATIENCE_SECONDS)
    assert worker.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


def requested(client: MetastoreClient, table: str, type: CompactionType = CompactionType.MAJOR) -> int:
    answer = client.call("compact2", CompactionRequest("d", table, "ds=1", type))
    assert answer.accepted
    return int(answer.id)


def shown(client: MetastoreClient, id: int) -> Any:
    (found,) = client.call("show_compact", ShowCompactRequest(id=id)).compacts
    return found


def test_a_compaction_from_its_writers_to_the_clean_table(server: GatewayServer, client: MetastoreClient) -> None:
    """Four writers: one commits, one is aborted, one is still writing, one commits behind it."""
    ids = list(client.call("open_txns", OpenTxnRequest(4, "ann", "host")).txn_ids)
    given = client.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", ids)).txnToWriteIds
    for pair in given:
        wrote = AddDynamicPartitions_v4(pair.txnId, pair.writeId, "d", "t", ["ds=1"], DataOperationType.INSERT)
        client.call("add_dynamic_partitions", wrote)
    client.call("commit_txn", CommitTxnRequest(ids[0]))
    client.call("abort_txn", AbortTxnRequest(ids[1]))
    client.call("commit_txn", CommitTxnRequest(ids[3]))
    job = requested(client, "t")
    compacted, cleaned = work(server)
    assert compacted["job"] == cleaned["cleaned"] == job
    assert compacted["mergeable"] == {"high_water_mark": 2, "open_ids": [], "aborted_ids": [2]}
    done = shown(client, job)
    assert (done.state, done.hadoopJobId, done.hightestWriteId) == ("succeeded", f"job_{job}", 2)
    assert done.txnId == compacted["txn"]
    assert done.enqueueTime <= done.start <= done.commitTime <= done.endTime
    request = GetLatestCommittedCompactionInfoRequest("d", "t", ["DS=1", "ds=2"])
    (latest,) = client.call("get_latest_committed_compaction_info", request).compactions
    assert (latest.id, latest.partitionname, latest.state, latest.highestWriteId) == (job, "ds=1", "s", 2)
    request.lastCompactionId = job
    assert client.call("get_latest_committed_compaction_info", request).compactions == []
    assert work(server) == []


def test_a_compaction_that_fails_says_why_and_may_be_asked_for_again(
    server: GatewayServer, client: MetastoreClient
) -> None:
    job = requested(client, "u", CompactionType.MINOR)
    (failed,) = work(server, "no space left")
    assert failed["job"] == job
    assert (shown(client, job).state, shown(client, job).errorMessage) == ("failed", "no space left")
    again = requested(client, "u")
    assert again > job
    assert [each.get("job", each.get("cleaned")) for each in work(server)] == [again, again]
    assert shown(client, again).state == "succeeded"


def test_two_workers_never_have_the_same_job(client: MetastoreClient) -> None:
    jobs = {requested(client, f"many_{number}") for number in range(3)}
    workers = ("a", "b", "c", "d")
    taken = [client.call("find_next_compact2", FindNextCompactRequest(worker, "4.0")).ci for worker in workers]
    assert {each.id for each in taken if each is not None} == jobs
    assert taken[3] is None
    other = CompactionInfoStruct(taken[0].id, "d", "many_0", None, CompactionType.MAJOR, workerId="b")
    for mark in ("mark_compacted", "mark_failed", "mark_refused"):
        with pytest.raises(MetaException, match="has been given to another worker"):
            client.call(mark, other)
    with pytest.raises(MetaException, match="cannot become"):
        client.call("mark_cleaned", CompactionInfoStruct(latest_failed(client, taken[1]), "d", "x", None, 1))
    for each in (taken[0], taken[2]):
        client.call("mark_refused", each)
        assert shown(client, each.id).state == "refused"


def latest_failed(client: MetastoreClient, job: CompactionInfoStruct) -> int:
    client.call("mark_failed", job)
    return int(job.id or 0)
