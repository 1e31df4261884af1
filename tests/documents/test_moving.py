"""The program of docs/moving.md, as printed, between two gateways."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.structs import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.support.server import GatewayServer, free_port

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
# For a machine with much else to do; nothing waits for it when all is well.
SECONDS_MAX = 120
PARTITIONS = 1001

pytestmark = pytest.mark.slow


def test_what_another_metastore_knows_is_copied_and_copied_again(tmp_path):
    if shutil.which("thrift") is None:
        pytest.skip("no Thrift compiler (command `thrift`, package thrift-compiler)")
    subprocess.run(["thrift", "-r", "--gen", "py", ROOT / "schema" / "hive_metastore.thrift"], cwd=tmp_path, check=True)
    (program,) = PROGRAM.findall((ROOT / "docs" / "moving.md").read_text(encoding="utf-8"))
    (tmp_path / "move.py").write_text(program, encoding="utf-8")
    ports = [free_port(), free_port()]
    ignoring = {"HMS_GATEWAY_FILE_SYSTEMS": '{"file": "ignore"}'}
    servers = [
        GatewayServer(tmp_path / "old", settings={"thrift_port": ports[0]}),
        GatewayServer(tmp_path / "new", settings={"thrift_port": ports[1]}, environment=ignoring),
    ]
    with servers[0], servers[1], asking(servers[0]) as old, asking(servers[1]) as new:
        fill(old)
        command = [sys.executable, "move.py", *(f"127.0.0.1:{port}" for port in ports)]
        for _ in range(2):
            ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX)
            assert ran.stderr == ""
            assert ran.stdout.splitlines() == [
                f"sales.orders: {PARTITIONS} of {PARTITIONS} partitions",
                "left out, see below: sales.rows",
            ]
        assert new.call("get_database", "sales") == old.call("get_database", "sales")
        assert new.call("get_table", "sales", "orders").sd == old.call("get_table", "sales", "orders").sd
        copied, known = (side.call("get_partition", "sales", "orders", ["a/b 7"]) for side in (new, old))
        assert (copied.sd, copied.parameters["p"]) == (known.sd, "1")


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
