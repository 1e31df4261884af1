"""A catalog out of the real metastore: a loop of calls in one thread, over Thrift on both sides, beside
`hms-gateway pipeline migrate`, with the same objects and with everything, compared. Starting Spark counts.

    python -m benchmarks.pipeline_migrate [--size PARTITIONS] [--tables N] [--calls N]

Wants Java, PySpark, pyarrow and a Thrift compiler. The metastore is on PostgreSQL where its JDBC driver is, else Derby.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from benchmarks.report import print_table
from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.oracle.peer import RealMetastore
from tests.support.server import GatewayServer, free_port

ROOT = Path(__file__).resolve().parents[1]
DRIVER = Path(os.environ.get("HMS_PG_DRIVER", "/usr/share/java/postgresql.jar"))
DATABASES = 4
FILLERS = 3
PARTITIONS_A_CALL = 1_000

# What docs/moving.md had before there was a job: the reference.
LOOP = """
import sys

sys.path.insert(0, "gen-py")
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import AddPartitionsRequest, AlreadyExistsException
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

PARTITIONS_AT_ONCE = 1000


def connect(address):
    host, _, port = address.rpartition(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    return ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))


def create(method, thing):
    try:
        method(thing)
    except AlreadyExistsException:
        pass


def copy_table(database, name):
    table = old.get_table(database, name)
    create(new.create_table, table)
    if table.partitionKeys:
        names = old.get_partition_names(database, name, -1)
        for first in range(0, len(names), PARTITIONS_AT_ONCE):
            partitions = old.get_partitions_by_names(database, name, names[first : first + PARTITIONS_AT_ONCE])
            new.add_partitions_req(AddPartitionsRequest(database, name, partitions, True, needResult=False))
        moved = len(new.get_partition_names(database, name, -1))
        assert moved == len(names)


old, new = map(connect, sys.argv[1:3])
for database in old.get_all_databases():
    create(new.create_database, old.get_database(database))
    for name in old.get_all_tables(database):
        copy_table(database, name)
for function in old.get_all_functions().functions or []:
    create(new.create_function, function)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000, help="partitions in all")
    parser.add_argument("--tables", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the account PostgreSQL runs as has to get through
        port = free_port() if DRIVER.exists() else None
        with RealMetastore(folder / "real", notifies=False, postgres_port=port, measured=True) as real:
            fill(real.port, arguments.tables, arguments.size)
            measure(real.port, folder, arguments)


def measure(source: int, folder: Path, arguments: argparse.Namespace) -> None:
    subprocess.run(
        ["thrift", "-r", "--gen", "py", ROOT / "schema" / "hive_metastore.thrift"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "loop.py").write_text(LOOP)
    same = [
        "--verify",
        "none",
        *(word for kind in ("statistics", "constraints", "grants") for word in ("--without", kind)),
    ]
    loop = timed(
        lambda server: [sys.executable, "loop.py", f"127.0.0.1:{source}", f"127.0.0.1:{server.thrift_port}"], folder
    )
    job = timed(lambda server: command(source, server, folder, arguments.calls, same), folder)
    everything = timed(lambda server: command(source, server, folder, arguments.calls, []), folder)
    rows = [
        ["loop of calls, one thread", f"{loop:.1f} s", "1.0 x"],
        ["migrate, the same objects", f"{job:.1f} s", f"{loop / job:.1f} x"],
        ["migrate, everything, both sides compared", f"{everything:.1f} s", f"{loop / everything:.1f} x"],
    ]
    print_table(f"{arguments.tables:,} tables and {arguments.size:,} partitions", ["", "took", "as fast"], rows)


class Target(GatewayServer):
    """An empty gateway with a Thrift port that leaves directories alone."""

    def __init__(self, folder: Path) -> None:
        self.thrift_port = free_port()
        ignoring = {"HMS_GATEWAY_FILE_SYSTEMS": '{"file": "ignore"}'}
        super().__init__(folder, settings={"thrift_port": self.thrift_port}, environment=ignoring)


def timed(words: Callable[[Target], Sequence[str]], folder: Path) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as data, Target(Path(data)) as server:
        begin = perf_counter()
        environment = {**os.environ, "HMS_GATEWAY_PASSWORD": server.password, "PYSPARK_PYTHON": sys.executable}
        ran = subprocess.run(list(words(server)), cwd=folder, env=environment, capture_output=True, text=True)
        taken = perf_counter() - begin
        if ran.returncode:
            sys.exit(ran.stdout + ran.stderr)
        if ran.stdout.startswith("{"):
            print(json.loads(ran.stdout)["counts"])
        return taken


def command(source: int, server: Target, folder: Path, calls: int, more: Sequence[str]) -> list[str]:
    words = [str(Path(sys.executable).with_name("hms-gateway")), "pipeline", "migrate", "--json", *more]
    words += ["--source", f"thrift://127.0.0.1:{source}", "--url", server.url, "--insecure"]
    return [*words, "--master", f"local[{calls}]", "--calls", str(calls), "--state", str(server.data_dir / "state")]


def fill(port: int, tables: int, partitions: int) -> None:
    with ThriftClient("127.0.0.1", port) as client:
        for number in range(DATABASES):
            client.call("create_database", Database(name=f"db{number}", description="one of some"))
    shares = [range(first, tables, FILLERS) for first in range(FILLERS)]
    with ThreadPoolExecutor(FILLERS) as threads:
        list(threads.map(lambda share: fill_tables(port, share, partitions // tables), shares))


def fill_tables(port: int, numbers: range, partitions: int) -> None:
    keys = [FieldSchema("ds", "string"), FieldSchema("hr", "int")]
    with ThriftClient("127.0.0.1", port) as client:
        for number in numbers:
            database, name = f"db{number % DATABASES}", f"table_{number:06}"
            parameters = {"EXTERNAL": "TRUE", "made by": "a job"}
            table = Table(
                dbName=database,
                tableName=name,
                owner="owner",
                sd=descriptor(),
                partitionKeys=keys,
                parameters=parameters,
                tableType="EXTERNAL_TABLE",
            )
            client.call("create_table", table)
            for first in range(0, partitions, PARTITIONS_A_CALL):
                made = [
                    partition(database, name, one) for one in range(first, min(partitions, first + PARTITIONS_A_CALL))
                ]
                client.call("add_partitions_req", AddPartitionsRequest(database, name, made, True, False))


def partition(database: str, table: str, number: int) -> Partition:
    values = [f"2024-{number // 24:05}", str(number % 24)]
    counted = {"numFiles": "3", "totalSize": "123456", "numRows": "77", "rawDataSize": "99999"}
    return Partition(values=values, dbName=database, tableName=table, sd=descriptor(), parameters=counted)


def descriptor() -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(f"column_{number}", "bigint", "a column") for number in range(10)],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo("s", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


if __name__ == "__main__":
    main()
