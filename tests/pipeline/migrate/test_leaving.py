"""A gateway's catalog goes into Apache's metastores; what these cannot hold is named."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.migrate.job import MigrateArguments, MigrateResult, migrate
from hms_gateway.rpc.structs import (
    AddCheckConstraintRequest,
    AddNotNullConstraintRequest,
    AddUniqueConstraintRequest,
    AllocateTableWriteIdsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    LongColumnStatsData,
    OpenTxnRequest,
    SQLCheckConstraint,
    SQLNotNullConstraint,
    SQLUniqueConstraint,
    Timestamp,
    TimestampColumnStatsData,
)
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.oracle.third_peer import ThirdMetastore
from tests.pipeline.content import Metastore, add_partitions, fill, storage
from tests.pipeline.migrate.content import acid_storage, fill_rest, table
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture
def gateway(tmp_path):
    """A gateway with everything, and what only Hive 3 and 4 know."""
    place = tmp_path / "files"
    place.mkdir()
    with GatewayServer(tmp_path / "var", settings={"file_roots": [str(place)]}) as server:
        options = {"url": server.url, "user": server.user, "password": server.password}
        metastore = Metastore({**options, "cafile": str(server.data_dir / "certificate.pem")}, server)
        fill(metastore)
        with metastore.client() as client:
            fill_rest(client, str(place), transactional=False)
            fill_newer(client)
        yield metastore


def fill_newer(client: Any) -> None:
    keys = [FieldSchema("ds", "string", "")]
    client.call("create_table", table("newer", storage(("id", "int"), ("at", "timestamp")), {}, keys=keys))
    add_partitions(client, "everything", "newer", [["1"], ["2"]])
    place = ("hive", "everything", "newer")
    client.call(
        "add_unique_constraint",
        AddUniqueConstraintRequest([SQLUniqueConstraint(*place, "id", 1, "uk", True, True, True)]),
    )
    client.call(
        "add_not_null_constraint",
        AddNotNullConstraintRequest([SQLNotNullConstraint(*place, "id", "nn", True, True, True)]),
    )
    client.call(
        "add_check_constraint",
        AddCheckConstraintRequest([SQLCheckConstraint(*place, "id", "id>0", "cc", True, True, True)]),
    )
    times = TimestampColumnStatsData(Timestamp(5), Timestamp(9), 1, 2)
    data = {
        "at": ColumnStatisticsData(timestampStats=times),
        "id": ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4)),
    }
    types = {"at": "timestamp", "id": "int"}
    client.call("create_table", table("counted", storage(("id", "int"), ("at", "timestamp")), {}))
    desc = ColumnStatisticsDesc(isTblLevel=True, dbName="everything", tableName="counted")
    objects = [ColumnStatisticsObj(name, types[name], one) for name, one in data.items()]
    client.call("update_table_column_statistics", ColumnStatistics(statsDesc=desc, statsObj=objects))
    desc = ColumnStatisticsDesc(isTblLevel=False, dbName="everything", tableName="newer", partName="ds=1")
    client.call("update_partition_column_statistics", ColumnStatistics(statsDesc=desc, statsObj=objects))
    client.call("create_table", table("rows", acid_storage(), {"transactional": "true"}))
    (txn,) = client.call("open_txns", OpenTxnRequest(num_txns=1, user="tester", hostname="here")).txn_ids
    client.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("everything", "rows", txnIds=[txn]))


def leave(
    gateway: Metastore, port: int, folder: Path, spark: Any, resume: str | None = None, **given: Any
) -> MigrateResult:
    target = Connection.of({"url": f"thrift://127.0.0.1:{port}"}, {})
    options = JobOptions(connection=target, state=str(folder / "state"), patience_seconds=20, resume=resume)
    return migrate(options, MigrateArguments(source=Connection.of(gateway.options, {}), **given), spark=spark)


def test_into_hive_2_what_it_does_not_know_is_named(spark, gateway, tmp_path):
    kinds = ("checkConstraints", "notNullConstraints", "uniqueConstraints")
    refused = {f"everything.newer {kind}" for kind in kinds}
    with RealMetastore(tmp_path / "peer", notifies=False) as peer:
        first = leave(gateway, peer.port, tmp_path, spark)
        last = leave(gateway, peer.port, tmp_path, spark, resume=first.run, last=True)
        with ThriftClient("127.0.0.1", peer.port) as client:
            assert client.call("get_partition_names", "everything", "newer", -1) == ["ds=1", "ds=2"]
    assert {one.item for one in first.refusals} == {one.item for one in last.refusals} == {*refused, "everything.rows"}
    reasons = {one.item: one.reason for one in last.refusals}
    assert "not taken" in reasons["everything.rows"]
    assert all("Invalid method name" in reasons[item] for item in refused)
    assert {" ".join(one.object.split()[:2]) for one in last.differences} == refused
    assert (first.exit_status, last.exit_status) == (1, 1)


def test_into_hive_3_everything_comes(spark, gateway, tmp_path):
    try:
        with ThirdMetastore(tmp_path / "peer") as peer:
            first = leave(gateway, peer.port, tmp_path, spark)
            last = leave(gateway, peer.port, tmp_path, spark, resume=first.run, last=True)
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    assert [one.item for one in first.refusals] == ["everything.rows"]
    assert (first.differences, last.refusals, last.differences) == ((), (), ())
    assert last.counts["tables with write ids"] == 1
