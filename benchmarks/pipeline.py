"""Partitions of a table counted by a key: `get_partitions` in one Python client beside `format("hms")` in Spark, over
HTTPS, taking turns. Spark's session is there before; planning counts.

    python -m benchmarks pipeline [--size PARTITIONS] [--runs N] [--only client|partitions|keys …] [--without-warm-up]

The CPU seconds are those of Spark's processes or of the client, and of the gateway: on a busy machine they say more.

Wants Java, PySpark and pyarrow. The one client has no limit on the length of a reply, without which it would read a
long one slowly or not at all; a million partitions take about 14 GB of its memory.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.report import print_table
from benchmarks.server import MIB, fill, peak_resident_bytes
from tests.support.server import GatewayServer

TABLE = "sales.parts"
DAYS = 28
WAYS = {
    "client": "one Python client, get_partitions",
    "partitions": "hms, whole partitions",
    "keys": "hms, columns=key",
}
Taken = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="how many partitions")
    parser.add_argument("--runs", type=int, default=3, help="turns of each, after one that is not counted")
    parser.add_argument("--only", nargs="+", choices=list(WAYS), default=list(WAYS), help="which ways of reading")
    parser.add_argument("--without-warm-up", action="store_true", help="the first turn counts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        fill(data_dir / "metastore.db", {"parts": arguments.size})
        # What a cache knows is not read.
        with GatewayServer(data_dir, limits={"cache_bytes_max": 1}) as server:
            measure(server, arguments.size, arguments.runs, arguments.only, not arguments.without_warm_up)


def measure(server: GatewayServer, partitions: int, runs: int, only: Sequence[str], warms_up: bool) -> None:
    options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
    spark = session()
    ways: dict[str, Callable[[], Taken]] = {
        "client": lambda: in_a_process(options),
        "partitions": lambda: by_spark(spark, options, partitions, columns="key,location,parameters"),
        "keys": lambda: by_spark(spark, options, partitions, columns="key"),
    }
    taken: dict[str, list[Taken]] = {name: [] for name in only}
    for turn in range(runs + warms_up):
        for name in only:
            gateway = cpu_seconds(server.pid)
            found = ways[name]()
            found["gateway"] = cpu_seconds(server.pid) - gateway
            if turn >= warms_up:
                taken[name].append(found)
    jvm = peak_resident_bytes(spark.sparkContext._gateway.proc.pid)
    spark.stop()
    medians = {name: statistics.median(each["seconds"] for each in taken[name]) for name in only}
    rows = []
    for name, each in taken.items():
        cpu = [f"{statistics.median(one[of] for one in each):.2f} s" for of in ("cpu", "gateway")]
        memory = f"{max(one['memory'] for one in each) / MIB:.0f} MiB"
        ratio = f"{medians['client'] / medians[name]:.1f} x" if "client" in medians else ""
        rows.append([WAYS[name], f"{medians[name]:.2f} s", ratio, *cpu, memory])
    heads = ["", "median", "as fast", "CPU", "CPU of the gateway", "largest Python process"]
    print_table(f"{partitions:,} partitions counted by a key", heads, rows)
    print(f"Spark's driver, a JVM that runs the tasks' JVM side as well: {jvm / MIB:.0f} MiB")


def in_a_process(options: dict[str, str]) -> Taken:
    """In a process of its own, whose start does not count; its time and its largest memory."""
    with get_context("spawn").Pool(1) as pool:
        result: Taken = pool.apply(by_client, (options,))
        return result


def by_client(options: dict[str, str]) -> Taken:
    from hms_gateway.client.metastore_client import MetastoreClient
    from hms_gateway.runtime.limits import Limits

    begin, cpu = perf_counter(), process_time()
    login = options["user"], options["password"]
    unbounded = Limits(body_bytes_max=1 << 40, string_bytes_max=1 << 40, container_elements_max=1 << 40)
    with MetastoreClient(options["url"], login, verify=False, limits=unbounded) as client:
        counted = Counter(partition.values[0] for partition in client.call("get_partitions", *TABLE.split("."), -1))
    assert len(counted) == DAYS
    seconds, cpu = perf_counter() - begin, process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "memory": peak_resident_bytes(os.getpid())}


def by_spark(spark: Any, options: dict[str, str], partitions: int, columns: str) -> Taken:
    jvm = spark.sparkContext._gateway.proc.pid
    begin, cpu = perf_counter(), cpu_below(jvm)
    read = spark.read.format("hms").options(**options, object="partitions", table=TABLE, columns=columns)
    counted = dict(map(tuple, read.load().groupBy("key.ds").count().collect()))
    assert (len(counted), sum(counted.values())) == (DAYS, partitions)
    return {"seconds": perf_counter() - begin, "cpu": cpu_below(jvm) - cpu, "memory": largest_worker(jvm)}


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


def cpu_below(pid: int) -> float:
    """Of a process and all below it."""
    return sum(map(cpu_seconds, (pid, *below(pid))))


def cpu_seconds(pid: int) -> float:
    """Of a process and of those below it that have ended; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


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
