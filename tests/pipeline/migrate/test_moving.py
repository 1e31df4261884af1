"""The commands of docs/moving.md, as printed, between two gateways of which one is called over Thrift."""

import re
import shlex
from contextlib import nullcontext

import msgspec
import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.application import application
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.pipeline.jobs import run as jobs_run
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.support.readme import ROOT, prepare
from tests.support.server import GatewayServer, free_port

COMMAND = re.compile(r"^ +(hms-gateway pipeline migrate .*)$", re.MULTILINE)
OLD = "thrift://old-metastore.example.org:9083"
PARTITIONS = 1_001

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_catalog_is_planned_copied_and_brought_up_to_date(spark, tmp_path, monkeypatch):
    # Each of them would start a session of its own, and stop it.
    monkeypatch.setattr(jobs_run, "session", lambda *_, **__: nullcontext(spark))
    port = free_port()
    servers = [
        GatewayServer(tmp_path / "old", settings={"thrift_port": port, "authorization": None}),
        GatewayServer(tmp_path / "new", settings={"authorization": None, "warehouse_dir": f"file:{tmp_path}/other"}),
    ]
    with servers[0], servers[1], asking(servers[0]) as old, asking(servers[1]) as new:
        fill(old)
        monkeypatch.chdir(prepare(tmp_path, servers[1]))
        planned, copied, later = COMMAND.findall((ROOT / "docs" / "moving.md").read_text(encoding="utf-8"))
        assert "planned" in ran(planned, servers[1], port)
        assert new.call("get_all_databases") == ["default"]
        said = ran(copied, servers[1], port)
        assert f"{PARTITIONS:,} partitions" in said
        old.call("drop_partition_by_name", "sales", "orders", "ds=a%2Fb 7", True)
        (run,) = re.findall(r"^run (\S+): done", said, re.MULTILINE)
        ran(later.replace("RUN", run), servers[1], port)
        for name in ("orders", "rows"):
            assert new.call("get_table", "sales", name) == old.call("get_table", "sales", name)
        assert new.call("get_database", "sales") == old.call("get_database", "sales")
        found = [side.call("get_partitions", "sales", "orders", -1) for side in (old, new)]
        assert len(found[0]) == PARTITIONS - 1
        assert found[0] == found[1]


def ran(command: str, server: GatewayServer, port: int) -> str:
    words = shlex.split(command.replace(OLD, f"thrift://127.0.0.1:{port}"))[1:]
    done = CliRunner().invoke(
        application, words, env={"HMS_GATEWAY_URL": server.url, "HMS_GATEWAY_PASSWORD": server.password}
    )
    assert done.exit_code == 0, done.output
    return done.output


def asking(server: GatewayServer) -> MetastoreClient:
    return MetastoreClient(server.url, (server.user, server.password), verify=False)


def fill(metastore):
    metastore.call("create_database", Database(name="sales", description="what was sold", parameters={"of": "2024"}))
    columns = StorageDescriptor(cols=[FieldSchema(name="id", type="int")], serdeInfo=SerDeInfo())
    day = FieldSchema(name="ds", type="string")
    metastore.call("create_table", Table(dbName="sales", tableName="orders", sd=columns, partitionKeys=[day]))
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    buckets = msgspec.structs.replace(
        columns, inputFormat=f"{orc}InputFormat", outputFormat=f"{orc}OutputFormat", bucketCols=["id"], numBuckets=2
    )
    rows = Table(dbName="sales", tableName="rows", sd=buckets, parameters={"transactional": "true"})
    metastore.call("create_table", rows)
    metastore.call(
        "add_partitions",
        [
            Partition(dbName="sales", tableName="orders", values=[f"a/b {number}"], sd=columns, parameters={"p": "1"})
            for number in range(PARTITIONS)
        ],
    )
