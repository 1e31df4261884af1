"""`stats` from footers beside Spark's own `ANALYZE TABLE … PARTITION … COMPUTE STATISTICS`, over one tree.

Spark counts rows and bytes of each partition in the real metastore 2.3.10; `stats` also finds nulls, minima and maxima
of every column, in a gateway. Both sessions are there before; each has its metastore filled and does it once.

    python -m benchmarks pipeline-stats [--size N] [--columns N] [--only ours|analyze]

Wants Java, PySpark and pyarrow, and for the real metastore tests/oracle/README.md.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.pipeline import below, cpu_seconds
from benchmarks.report import print_table
from benchmarks.server import MIB, peak_resident_bytes
from hms_gateway.pipeline.jobs.progress import Progress
from tests.oracle.peer import RealMetastore
from tests.support.server import GatewayServer

TEMPLATES = 50
ROWS = 200
PARTITIONS_A_CALL = 1_000
STATEMENT = "ANALYZE TABLE bench.parts PARTITION (ds) COMPUTE STATISTICS"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="partitions, of one file each")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--only", choices=("ours", "analyze"))
    parser.add_argument("--analyze", nargs=2, metavar=("URI", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.analyze:
        analyze(*arguments.analyze)
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        tree = Path(folder) / "tree"
        write_tree(tree, arguments.size, arguments.columns)
        rows, seconds = [], {}
        if arguments.only != "analyze":
            seconds["ours"], memory = ours(Path(folder), tree, arguments.size, arguments.columns)
            rows.append(["stats, from footers", f"{seconds['ours']:.1f} s", memory])
        if arguments.only != "ours":
            seconds["theirs"] = theirs(Path(folder), tree, arguments.size, arguments.columns)
            rows.append(["Spark's ANALYZE TABLE, real metastore", f"{seconds['theirs']:.1f} s", ""])
        if len(seconds) == 2:
            rows.append(["as fast (goal: at least 10)", f"{seconds['theirs'] / seconds['ours']:.1f} x", ""])
        title = f"Statistics of {arguments.size:,} partitions with {arguments.columns} columns"
        print_table(title, ["", "time", "driver, largest worker"], rows)


def column_types(columns: int) -> dict[str, str]:
    kinds = ("bigint", "string", "double", "date", "decimal(12,2)")
    return {f"c{number}": kinds[number % len(kinds)] for number in range(columns)}


def write_tree(tree: Path, partitions: int, columns: int) -> None:
    """A few different files, copied."""
    import pyarrow
    import pyarrow.parquet

    arrow = {
        "bigint": lambda of: pyarrow.array(of, pyarrow.int64()),
        "string": lambda of: pyarrow.array([f"text {value}" for value in of]),
        "double": lambda of: pyarrow.array([value / 7 for value in of]),
        "date": lambda of: pyarrow.array(of, pyarrow.int32()).cast(pyarrow.date32()),
        "decimal(12,2)": lambda of: pyarrow.array(of, pyarrow.decimal128(12, 2)),
    }
    templates = []
    tree.mkdir(parents=True)
    for number in range(min(TEMPLATES, partitions)):
        values = [number * ROWS + row for row in range(ROWS)]
        table = pyarrow.table({name: arrow[kind](values) for name, kind in column_types(columns).items()})
        path = tree.parent / f"template-{number}.parquet"
        pyarrow.parquet.write_table(table, path)
        templates.append(path.read_bytes())
    for number in range(partitions):
        folder = tree / f"ds={number:07}"
        folder.mkdir()
        (folder / "part-0.parquet").write_bytes(templates[number % len(templates)])


def register(client: Any, tree: Path, partitions: int, table: Any) -> None:
    """Partitions of a table that is there."""
    import msgspec

    from hms_gateway.rpc.structs import AddPartitionsRequest, Partition

    for begin in range(0, partitions, PARTITIONS_A_CALL):
        parts = [
            Partition(
                values=[f"{number:07}"],
                dbName="bench",
                tableName="parts",
                sd=msgspec.structs.replace(table.sd, location=f"file:{tree}/ds={number:07}"),
                parameters={},
            )
            for number in range(begin, min(begin + PARTITIONS_A_CALL, partitions))
        ]
        request = AddPartitionsRequest(
            dbName="bench", tblName="parts", parts=parts, ifNotExists=False, needResult=False
        )
        client.call("add_partitions_req", request)


def ours(folder: Path, tree: Path, partitions: int, columns: int) -> tuple[float, str]:
    from hms_gateway.client.metastore_client import MetastoreClient
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.jobs import spark as sessions
    from hms_gateway.pipeline.jobs.options import JobOptions
    from hms_gateway.pipeline.stats.job import StatsArguments, stats
    from hms_gateway.rpc.structs import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table

    with GatewayServer(folder / "var") as server:
        with MetastoreClient(server.url, (server.user, server.password), verify=False) as client:
            client.call("create_database", Database(name="bench"))
            sd = StorageDescriptor(
                cols=[FieldSchema(name=name, type=kind) for name, kind in column_types(columns).items()],
                location=f"file:{tree}",
                inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
                outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"),
            )
            keys = [FieldSchema(name="ds", type="string")]
            table = Table(
                dbName="bench",
                tableName="parts",
                sd=sd,
                partitionKeys=keys,
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
            client.call("create_table", table)
            register(client, tree, partitions, table)
        options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
        with sessions.session("benchmark", "", {}, None, is_light=True) as spark:
            spark.range(10).count()
            job = JobOptions(connection=Connection.of(options), state=str(folder / "state"), roots=(str(tree),))
            jvm = spark.sparkContext._gateway.proc.pid
            stages = Stages(server.pid, jvm)
            begin = perf_counter()
            result = stats(job, StatsArguments(), spark=spark, progress=stages)
            seconds = perf_counter() - begin
            stages.show("all", seconds, stages.at_first)
            assert result.counts["written"] == partitions, result.as_json()
            memory = f"{peak_resident_bytes(os.getpid()) / MIB:.0f} MiB, {largest_below(jvm) / MIB:.0f} MiB"
        return seconds, memory


def largest_below(pid: int) -> int:
    """Workers come and go while they are looked at."""
    largest = 0
    for child in below(pid):
        with contextlib.suppress(LookupError, OSError):
            largest = max(largest, peak_resident_bytes(child))
    return largest


class Stages(Progress):
    """Prints how long each stage took, and the CPU seconds of the processes: of a busy machine these say more."""

    def __init__(self, gateway: int, jvm: int) -> None:
        self._gateway, self._jvm = gateway, jvm
        self.at_first = self._now()

    @contextlib.contextmanager
    def stage(self, name: str, unit: str, look: Any) -> Iterator[None]:
        begin, before = perf_counter(), self._now()
        yield
        self.show(name, perf_counter() - begin, before)

    def show(self, name: str, seconds: float, before: dict[str, float]) -> None:
        used = ", ".join(f"{who} {after - before[who]:.2f}" for who, after in self._now().items())
        print(f"{name:<8} {seconds:6.2f} s; CPU seconds: {used}", flush=True)

    def _now(self) -> dict[str, float]:
        return {
            "gateway": cpu_seconds(self._gateway),
            "driver": cpu_seconds(os.getpid()),
            "its JVM": cpu_seconds(self._jvm),
            "workers": sum(map(cpu_seconds, below(self._jvm))),
        }


def theirs(folder: Path, tree: Path, partitions: int, columns: int) -> float:
    """In a process of its own: a session knows one metastore."""
    from hms_gateway.client.thrift_client import ThriftClient

    with RealMetastore(folder / "real", notifies=False, measured=True) as real:
        uri = f"thrift://127.0.0.1:{real.port}"
        command = [sys.executable, "-m", "benchmarks.pipeline_stats", "--analyze", uri, str(folder / "spark")]
        (folder / "spark").mkdir()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            listed = ", ".join(f"{name} {kind}" for name, kind in column_types(columns).items())
            process.stdin.write(
                f"CREATE TABLE bench.parts ({listed}, ds string) USING parquet"
                f" PARTITIONED BY (ds) LOCATION 'file:{tree}'\n"
            )
            process.stdin.flush()
            process.stdout.readline()
            with ThriftClient("127.0.0.1", real.port) as client:
                register(client, tree, partitions, client.call("get_table", "bench", "parts"))
            process.stdin.write(STATEMENT + "\n")
            process.stdin.close()
            seconds = float(process.stdout.readline())
            process.wait(60)
        shutil.rmtree(folder / "spark", ignore_errors=True)
        return seconds


def analyze(uri: str, folder: str) -> None:
    """A statement as a line in, the seconds that it took as a line out."""
    from pyspark.sql import SparkSession

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.warehouse.dir": f"file:{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "2g",
        "spark.hadoop.hive.metastore.client.socket.timeout": "1800s",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -Dderby.system.home={folder}",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql("CREATE DATABASE IF NOT EXISTS bench")
    for line in sys.stdin:
        begin = perf_counter()
        spark.sql(line)
        print(perf_counter() - begin, file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
