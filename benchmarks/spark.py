"""A PySpark script of 50 DDL statements and 50 small queries: the real metastore asked directly over TCP, beside ours
through bridge and TLS. Both keep their tables in one PostgreSQL, each has its own Spark session, and they take turns.

    python -m benchmarks.spark

Wants Java, PySpark, PostgreSQL and its JDBC driver (tests/oracle/README.md).
"""

import argparse
import contextlib
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

import psycopg

from benchmarks.report import print_table
from hms_gateway.storage.migrations.revisions import migrate
from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import RealMetastore
from tests.spark.spark_session import SparkSessionProcess
from tests.support.server import GatewayServer, free_port

TABLES = 10
DDL_OF_A_TABLE = (
    "CREATE TABLE bench.t{number} (id INT, name STRING) USING parquet PARTITIONED BY (name)",
    "ALTER TABLE bench.t{number} ADD PARTITION (name = 'x')",
    "ALTER TABLE bench.t{number} SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE bench.t{number} RENAME TO bench.u{number}",
    "DROP TABLE bench.u{number}",
)
DDL = [statement.format(number=number) for number in range(TABLES) for statement in DDL_OF_A_TABLE]
QUERIES_OF_A_DAY = (
    "SELECT count(*) FROM bench.sales WHERE day = {number}",
    "SELECT sum(id) FROM bench.sales WHERE day > {number}",
    "SHOW PARTITIONS bench.sales",
    "DESCRIBE TABLE bench.sales",
    "SELECT count(*) FROM bench.plain WHERE id = {number}",
)
QUERIES = [query.format(number=number) for number in range(10) for query in QUERIES_OF_A_DAY]
PREPARATION = (
    "CREATE DATABASE bench",
    "CREATE TABLE bench.sales (id INT, day INT) USING parquet PARTITIONED BY (day)",
    "INSERT INTO bench.sales SELECT CAST(id AS INT), CAST(id % 10 AS INT) FROM range(100)",
    "CREATE TABLE bench.plain (id INT) STORED AS TEXTFILE",
    "INSERT INTO bench.plain SELECT CAST(id AS INT) FROM range(100)",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="turns of each, after one that is not counted")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # the account PostgreSQL runs as has to get through
        sessions = open_sessions(stack, folder)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in sessions}
        for session in sessions.values():
            run(session, PREPARATION)
        for _ in range(arguments.runs + 1):
            for name, session in sessions.items():
                times[name].append((run(session, DDL), run(session, QUERIES)))
    rows = [row(name, measured[1:]) for name, measured in times.items()]
    real, ours = (statistics.median(sum(each) for each in measured[1:]) for measured in times.values())
    rows.append(["ratio (goal: at most 1)", "", "", f"{ours / real:.2f}"])
    print_table("PySpark, 50 DDL statements and 50 small queries", ["", "DDL", "queries", "together"], rows)


def open_sessions(stack: contextlib.ExitStack, folder: Path) -> dict[str, SparkSessionProcess]:
    """A session on each metastore. The real one brings the PostgreSQL along."""
    postgres_port = free_port()
    real_one = RealMetastore(folder / "real", notifies=False, postgres_port=postgres_port, measured=True)
    real = stack.enter_context(real_one)
    address = f"postgresql://hive@127.0.0.1:{postgres_port}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE gateway")
    database = f"{address.replace('postgresql', 'postgresql+psycopg', 1)}/gateway"
    migrate(database)
    gateway = stack.enter_context(GatewayServer(folder / "gateway", database=database))
    bridge = stack.enter_context(BridgeProcess(gateway))
    places = {
        "Apache Hive Metastore 2.3.10, TCP": (real.port, real.warehouse),
        "hms-gateway, bridge and TLS": (bridge.port, gateway.data_dir / "warehouse"),
    }
    return {
        name: stack.enter_context(
            SparkSessionProcess(f"thrift://127.0.0.1:{port}", warehouse, folder / f"spark-{port}")
        )
        for name, (port, warehouse) in places.items()
    }


def run(session: SparkSessionProcess, statements: tuple[str, ...] | list[str]) -> float:
    """Seconds for all of them, one after the other."""
    begin = perf_counter()
    for statement in statements:
        session.sql(statement)
    return perf_counter() - begin


def row(name: str, measured: list[tuple[float, float]]) -> list[str]:
    ddl, queries = (statistics.median(part) for part in zip(*measured, strict=True))
    together = statistics.median(sum(each) for each in measured)
    return [name, f"{ddl:.2f} s", f"{queries:.2f} s", f"{together:.2f} s"]


if __name__ == "__main__":
    main()
