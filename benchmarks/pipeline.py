"""Partitions of a table counted by a key: `get_partitions` in one Python client beside `format("hms")` in Spark, over
HTTPS, taking turns. Spark's session is there before; planning counts.

    python -m benchmarks pipeline [--size PARTITIONS] [--runs N]

Wants Java, PySpark and pyarrow. The one client has no limit on the length of a reply, without which it would read a
long one slowly or not at all; a million partitions take about 14 GB of its memory.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import print_table
from benchmarks.server import MIB, fill, peak_resident_bytes
from tests.support.server import GatewayServer

TABLE = "sales.parts"
DAYS = 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="how many partitions")
    parser.add_argument("--runs", type=int, default=3, help="turns of each, after one that is not counted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        fill(data_dir / "metastore.db", {"parts": arguments.size})
        # What a cache knows is not read.
        with GatewayServer(data_dir, limits={"cache_bytes_max": 1}) as server:
            measure(server, arguments.size, arguments.runs)


def measure(server: GatewayServer, partitions: int, runs: int) -> None:
    options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
    spark = session()
    ways: dict[str, Callable[[], tuple[float, int]]] = {
        "one Python client, get_partitions": lambda: in_a_process(options),
        "hms, whole partitions": lambda: by_spark(spark, options, partitions, columns="key,location,parameters"),
        "hms, columns=key": lambda: by_spark(spark, options, partitions, columns="key"),
    }
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    for _ in range(runs + 1):
        for name, way in ways.items():
            taken[name].append(way())
    jvm = peak_resident_bytes(spark.sparkContext._gateway.proc.pid)
    spark.stop()
    medians = {name: statistics.median(seconds for seconds, _ in each[1:]) for name, each in taken.items()}
    first = next(iter(medians.values()))
    rows = [
        [name, f"{median:.2f} s", f"{first / median:.1f} x", f"{max(size for _, size in taken[name]) / MIB:.0f} MiB"]
        for name, median in medians.items()
    ]
    print_table(
        f"{partitions:,} partitions counted by a key", ["", "median", "as fast", "largest Python process"], rows
    )
    print(f"Spark's driver, a JVM that runs the tasks' JVM side as well: {jvm / MIB:.0f} MiB")


def in_a_process(options: dict[str, str]) -> tuple[float, int]:
    """In a process of its own, whose start does not count; its time and its largest memory."""
    with get_context("spawn").Pool(1) as pool:
        result: tuple[float, int] = pool.apply(by_client, (options,))
        return result


def by_client(options: dict[str, str]) -> tuple[float, int]:
    from hms_gateway.client.metastore_client import MetastoreClient
    from hms_gateway.runtime.limits import Limits

    begin = perf_counter()
    login = options["user"], options["password"]
    unbounded = Limits(body_bytes_max=1 << 40, string_bytes_max=1 << 40, container_elements_max=1 << 40)
    with MetastoreClient(options["url"], login, verify=False, limits=unbounded) as client:
        counted = Counter(partition.values[0] for partition in client.call("get_partitions", *TABLE.split("."), -1))
    assert len(counted) == DAYS
    return perf_counter() - begin, peak_resident_bytes(os.getpid())


def by_spark(spark: Any, options: dict[str, str], partitions: int, columns: str) -> tuple[float, int]:
    begin = perf_counter()
    read = spark.read.format("hms").options(**options, object="partitions", table=TABLE, columns=columns)
    counted = dict(map(tuple, read.load().groupBy("key.ds").count().collect()))
    assert (len(counted), sum(counted.values())) == (DAYS, partitions)
    return perf_counter() - begin, largest_worker(spark.sparkContext._gateway.proc.pid)


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.python.filterPushdown.enabled", "true")
    builder = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "2")
    return builder.getOrCreate()


def largest_worker(jvm: int) -> int:
    """The most memory that a Python process below the JVM has had."""
    return max(map(peak_of_a_worker, below(jvm)), default=0)


def peak_of_a_worker(pid: int) -> int:
    """0 for one that is ending meanwhile."""
    try:
        return peak_resident_bytes(pid)
    except (OSError, LookupError):
        return 0


def below(pid: int) -> list[int]:
    children = [
        int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit() and parent(process) == pid
    ]
    return children + [other for child in children for other in below(child)]


def parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main()
