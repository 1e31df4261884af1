"""Tables of Delta, Hudi and Lance in the metastore: their own libraries read and write the files.

Lance registers its tables itself, over Thrift. Delta and Hudi do so by programs for Java: here a client sends what
Spark with Delta 4 and Hudi's hive sync send. `scripts/peers all` makes the environment.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    EnvironmentContext,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.pipeline.content import Client, Metastore
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

PYTHON = Path(sys.prefix) / "engines" / "formats" / "bin" / "python"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"

# Programs of the environment: what they print last is JSON.
DELTA = """
import json, sys
import pyarrow
from deltalake import DeltaTable, QueryBuilder, write_deltalake
location, *ids = sys.argv[1:]
if ids:
    rows = {"id": list(map(int, ids)), "day": ["2024-05-0" + one for one in ids]}
    write_deltalake(location, pyarrow.table(rows), mode="append", partition_by=["day"])
# By way of pyarrow's datasets a process now and then ends with SIGABRT.
read = QueryBuilder().register("orders", DeltaTable(location)).execute("SELECT id FROM orders ORDER BY id").read_all()
print(json.dumps(read["id"].to_pylist()))
"""
# hudi-rs only reads: a table of version 6, copy on write, is what one commit makes it.
HUDI = """
import json, sys
from pathlib import Path
import pyarrow, pyarrow.parquet
from hudi import HudiTableBuilder
location, *ids = sys.argv[1:]
root = Path(location.removeprefix("file:"))
log = root / ".hoodie"
if not log.exists():
    log.mkdir(parents=True)
    (log / "hoodie.properties").write_text(
        "hoodie.table.name=orders\\nhoodie.table.type=COPY_ON_WRITE\\nhoodie.table.version=6\\n"
        "hoodie.timeline.layout.version=1\\nhoodie.table.recordkey.fields=id\\nhoodie.table.partition.fields=day\\n"
        "hoodie.table.base.file.format=PARQUET\\nhoodie.datasource.write.hive_style_partitioning=true\\n"
        "hoodie.datasource.write.drop.partition.columns=false\\n"
    )
for id in ids:
    day, instant = "2024-05-0" + id, "2024050" + id + "120000000"
    folder, file = "day=" + day, "00000000-0000-0000-0000-00000000000" + id + "-0"
    name = file + "_0-0-0_" + instant + ".parquet"
    (root / folder).mkdir()
    (root / folder / ".hoodie_partition_metadata").write_text("commitTime=" + instant + "\\npartitionDepth=1\\n")
    row = {
        "_hoodie_commit_time": instant, "_hoodie_commit_seqno": instant + "_0_0", "_hoodie_record_key": id,
        "_hoodie_partition_path": folder, "_hoodie_file_name": name, "id": int(id), "day": day,
    }
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), root / folder / name)
    fields = [{"name": "id", "type": ["null", "long"]}, {"name": "day", "type": ["null", "string"]}]
    schema = json.dumps({"type": "record", "name": "orders", "fields": fields})
    stat = {"fileId": file, "path": folder + "/" + name, "prevCommit": "null", "numWrites": 1, "numInserts": 1,
            "fileSizeInBytes": (root / folder / name).stat().st_size, "partitionPath": folder}
    for state in (".commit.requested", ".inflight"):
        (log / (instant + state)).touch()
    (log / (instant + ".commit")).write_text(json.dumps({
        "partitionToWriteStats": {folder: [stat]}, "compacted": False, "operationType": "INSERT",
        "extraMetadata": {"schema": schema},
    }))
read = pyarrow.Table.from_batches(HudiTableBuilder.from_base_uri(location).build().read())
print(json.dumps(sorted(read["id"].to_pylist())))
"""
LANCE = """
import json, sys
import lance, lance_namespace_impls, pyarrow
from lance_namespace import connect
import lance_namespace_urllib3_client.models as ask
uri, root, step, *more = sys.argv[1:]
names = connect("hive2", {"uri": uri, "root": root})
own, outside = ["vectors", "own"], ["vectors", "outside"]
if step == "make":
    names.create_namespace(ask.CreateNamespaceRequest(id=["vectors"]))
    for id, asked in ((own, {}), (outside, {"location": more[0], "properties": {"EXTERNAL": "TRUE"}})):
        made = names.declare_table(ask.DeclareTableRequest(id=id, **asked))
        lance.write_dataset(pyarrow.table({"id": [1, 2]}), made.location)
if step == "drop":
    names.deregister_table(ask.DeregisterTableRequest(id=own))
    names.drop_table(ask.DropTableRequest(id=outside))
if step == "read":
    found = [names.describe_table(ask.DescribeTableRequest(id=id)) for id in (own, outside)]
    print(json.dumps([lance.dataset(one.location).to_table()["id"].to_pylist() for one in found]))
else:
    print(json.dumps(sorted(names.list_tables(ask.ListTablesRequest(id=["vectors"])).tables)))
"""


@dataclass(frozen=True)
class Lake:
    """A directory beside the warehouse of the gateway that Spark uses."""

    path: Path
    metastore: Metastore
    spark: Any

    def run(self, program: str, *arguments: str) -> Any:
        """What the libraries of the format answer."""
        command = [str(PYTHON), "-c", program, *arguments]
        ran = subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.path)) for path in self.path.rglob("*") if path.is_file())

    def findings(self, database: str) -> list[tuple[str, str, str]]:
        """Kind, table and location of the findings of an audit, notes too."""
        connection = Connection.of(self.metastore.options)
        options = JobOptions(
            connection=connection,
            state=str(self.path.parent / "state"),
            only=(f"{database}.*",),
            roots=(str(self.path),),
        )
        result = audit(options, AuditArguments(quiet_seconds=0), spark=self.spark)
        assert result.status == "done"
        return [(one["kind"], one["table"], one["location"]) for one in result.examples]


@pytest.fixture
def lake(spark: Any, spark_gateway: GatewayServer, tmp_path: Path) -> Lake:
    if not PYTHON.exists():
        pytest.skip("no environment of formats (scripts/peers all, requirements/formats.txt)")
    certificate = str(spark_gateway.data_dir / "certificate.pem")
    login = {"user": spark_gateway.user, "password": spark_gateway.password}
    (tmp_path / "lake").mkdir()
    return Lake(tmp_path / "lake", Metastore({"url": spark_gateway.url, "cafile": certificate, **login}), spark)


def test_delta(lake: Lake) -> None:
    """Spark keeps the location in the serde's parameters; Delta its columns in its log, the catalog a copy of them."""
    place = f"file:{lake.path}/orders"
    assert lake.run(DELTA, place, "1") == [1]
    with lake.metastore.client() as client:
        client.call("create_database", Database(name="deltas"))
        placeholder = f"{client.call('get_database', 'deltas').locationUri}/orders-__PLACEHOLDER__"
        client.call("create_table_with_environment_context", _delta(placeholder, place), None)
        Path(placeholder.removeprefix("file:")).rmdir()  # as Spark does
        assert [row.tableName for row in lake.spark.sql("SHOW TABLES IN deltas").collect()] == ["orders"]
        found = client.call("get_table", "deltas", "orders").sd.serdeInfo.parameters["path"]
        assert lake.run(DELTA, found, "2") == [1, 2]
        assert lake.findings("deltas") == []
        schema = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
        changed = {"spark.sql.sources.schema": schema, "delta.lastUpdateVersion": "1"}
        _set(client, "deltas", "orders", changed)
        shown = client.call("get_table", "deltas", "orders")
        assert changed.items() <= shown.parameters.items()
        assert shown.tableType == "EXTERNAL_TABLE"
        files = lake.files()
        client.call("drop_table", "deltas", "orders", True)
        assert client.call("get_all_tables", "deltas") == []
        client.call("drop_database", "deltas", True, False)
    assert lake.files() == files
    assert lake.run(DELTA, found) == [1, 2]


def test_hudi(lake: Lake) -> None:
    """The sync makes the table, adds and alters partitions and writes the time of the last commit."""
    place = f"file:{lake.path}/orders"
    assert lake.run(HUDI, place, "1", "2") == [1, 2]
    with lake.metastore.client() as client:
        client.call("create_database", Database(name="hudis", description="automatically created by hoodie"))
        client.call("create_table_with_environment_context", _hudi(place), None)
        _add_days(client, "1", "2")
        _set(client, "hudis", "orders", {"last_commit_time_sync": "20240502120000000"})
        assert lake.findings("hudis") == []
        found = client.call("get_table", "hudis", "orders")
        assert lake.run(HUDI, found.sd.location, "3") == [1, 2, 3]
        assert lake.findings("hudis") == []
        _add_days(client, "2", "3")
        found.sd.cols.append(FieldSchema(name="note", type="string", comment=""))
        cascade = EnvironmentContext({"CASCADE": "true"})
        client.call("alter_table_with_environment_context", "hudis", "orders", found, cascade)
        parts = client.call("get_partitions", "hudis", "orders", -1)
        assert [(part.values, part.sd.location) for part in parts] == [
            ([f"2024-05-0{day}"], f"{place}/day=2024-05-0{day}") for day in "123"
        ]
        assert all(part.sd.cols[-1].name == "note" for part in parts)
        client.call("alter_partitions", "hudis", "orders", parts[:1])
        files = lake.files()
        client.call("drop_partition_by_name", "hudis", "orders", "day=2024-05-01", False)
        assert client.call("get_partition_names", "hudis", "orders", -1) == ["day=2024-05-02", "day=2024-05-03"]
        assert client.call("get_table", "hudis", "orders").parameters["last_commit_time_sync"] == "20240502120000000"
        client.call("drop_table", "hudis", "orders", True)
        client.call("drop_database", "hudis", True, False)
    assert lake.files() == files
    assert lake.run(HUDI, place) == [1, 2, 3]


def test_lance(lake: Lake, spark_gateway: GatewayServer, spark_thrift_port: int) -> None:
    """Without EXTERNAL=TRUE, which Lance does not send by itself, a table is managed, as in Hive."""
    root = spark_gateway.data_dir / "warehouse"

    def run(step: str, *more: str) -> Any:
        return lake.run(LANCE, f"thrift://127.0.0.1:{spark_thrift_port}", str(root), step, *more)

    assert run("make", f"{lake.path}/outside") == ["outside", "own"]
    with lake.metastore.client() as client:
        _set(client, "vectors", "outside", {"note": "two rows"})
        tables = [client.call("get_table", "vectors", name) for name in ("own", "outside")]
        assert [table.tableType for table in tables] == ["MANAGED_TABLE", "EXTERNAL_TABLE"]
        assert tables[1].parameters["table_type"] == "lance"
        assert tables[1].parameters["note"] == "two rows"
        assert run("read") == [[1, 2], [1, 2]]
        assert lake.findings("vectors") == []
        files = lake.files()
        assert run("drop") == []
        assert lake.files() == files
        assert len(list((root / "vectors.db" / "own" / "data").iterdir())) == 1
        client.call("drop_database", "vectors", True, False)


def _set(client: Client, database: str, name: str, parameters: dict[str, str]) -> None:
    table = client.call("get_table", database, name)
    table.parameters |= parameters
    client.call("alter_table_with_environment_context", database, name, table, None)


def _delta(placeholder: str, path: str) -> Table:
    """The entry of `CREATE TABLE … USING delta LOCATION`: no columns, in the form for what Hive cannot read."""
    return Table(
        dbName="deltas",
        tableName="orders",
        owner="ann",
        tableType="EXTERNAL_TABLE",
        partitionKeys=[],
        parameters={
            "EXTERNAL": "TRUE",
            "spark.sql.create.version": "4.0.1",
            "spark.sql.partitionProvider": "catalog",
            "spark.sql.sources.provider": "delta",
            "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
        },
        sd=StorageDescriptor(
            cols=[FieldSchema(name="col", type="array<string>", comment="from deserializer")],
            location=placeholder,
            inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                parameters={"serialization.format": "1", "path": path},
            ),
        ),
    )


def _hudi(location: str) -> Table:
    """The entry of a table that is copied on write; the time of creation is cut to 32 bits."""
    names = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
    meta = [FieldSchema(name=name, type="string", comment="") for name in (*names, "_hoodie_file_name")]
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in names]
    return Table(
        dbName="hudis",
        tableName="orders",
        owner="ann",
        createTime=-1_234_567_890,
        tableType="EXTERNAL_TABLE",
        partitionKeys=[FieldSchema(name="day", type="string", comment="")],
        parameters={
            "EXTERNAL": "TRUE",
            "spark.sql.create.version": "3.5.7",
            "spark.sql.sources.provider": "hudi",
            "spark.sql.sources.schema.numParts": "1",
            "spark.sql.sources.schema.part.0": json.dumps({"type": "struct", "fields": fields}),
            "spark.sql.sources.schema.numPartCols": "1",
            "spark.sql.sources.schema.partCol.0": "day",
        },
        sd=StorageDescriptor(
            cols=[*meta, FieldSchema(name="id", type="bigint", comment="")],
            location=location,
            inputFormat="org.apache.hudi.hadoop.HoodieParquetInputFormat",
            outputFormat=f"{PARQUET}.MapredParquetOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib=f"{PARQUET}.serde.ParquetHiveSerDe",
                parameters={"serialization.format": "1", "path": location, "hoodie.query.as.ro.table": "false"},
            ),
        ),
    )


def _add_days(client: Client, *days: str) -> None:
    """Adds the partitions that are not there, without parameters."""
    sd = client.call("get_table", "hudis", "orders").sd
    parts = [
        Partition(
            values=[f"2024-05-0{day}"],
            dbName="hudis",
            tableName="orders",
            createTime=0,
            lastAccessTime=0,
            sd=StorageDescriptor(
                cols=sd.cols,
                location=f"{sd.location}/day=2024-05-0{day}",
                inputFormat=sd.inputFormat,
                outputFormat=sd.outputFormat,
                serdeInfo=sd.serdeInfo,
            ),
        )
        for day in days
    ]
    request = AddPartitionsRequest(dbName="hudis", tblName="orders", parts=parts, ifNotExists=True, needResult=False)
    client.call("add_partitions_req", request)
