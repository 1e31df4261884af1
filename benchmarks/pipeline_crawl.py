"""`crawl` of a tree of partition directories beside Spark's `MSCK REPAIR TABLE` against the real metastore 2.3.10, on
the same tree in memory; and synthetic entries of an fsspec file system, for the memory of the driver.

    python -m benchmarks pipeline-crawl
    python -m benchmarks.pipeline_crawl --size 1000000 --without-msck
    python -m benchmarks.pipeline_crawl --synthetic 10000000

Each side has a process of its own and a Spark session that is there before; the session's start does not count. Every
directory has one small Parquet file. Wants Java, PySpark and pyarrow, and for MSCK the jars of the real metastore.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.pipeline import below
from benchmarks.report import print_table
from benchmarks.server import MIB, peak_resident_bytes
from tests.oracle.peer import RealMetastore
from tests.pipeline.crawl.trees import SMALL
from tests.support.server import GatewayServer

TABLE = "events"
HOURS = 24
SAMPLE_SECONDS = 0.2
FILES_A_DIRECTORY = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000, help="partition directories")
    parser.add_argument("--runs", type=int, default=1, help="times that each side does it, from an empty catalog")
    parser.add_argument("--without-msck", action="store_true")
    parser.add_argument(
        "--synthetic", type=int, default=0, help="entries of a synthetic file system, instead of a tree"
    )
    parser.add_argument("--memory", default="/dev/shm", help="where the tree is made")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.memory) as name:
        folder = Path(name)
        if arguments.synthetic:
            synthetic(folder, arguments.synthetic)
            return
        plant(folder / "lake" / TABLE, arguments.size)
        ways: dict[str, Callable[[Path], dict[str, float]]] = {"crawl": crawled}
        if not arguments.without_msck:
            ways["MSCK REPAIR TABLE, Hive Metastore 2.3.10"] = repaired
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(arguments.runs):
            for way in ways:
                run = folder / f"{ways[way].__name__}-{number}"
                run.mkdir()
                taken[way].append(ways[way](run))
        show(f"{arguments.size:,} partition directories", taken)


def plant(table: Path, size: int) -> None:
    for number in range(size):
        day, hour = divmod(number, HOURS)
        directory = table / f"day={day:05}" / f"hour={hour}"
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").write_bytes(SMALL)


def crawled(folder: Path) -> dict[str, float]:
    """From an empty catalog: the table too is found."""
    with GatewayServer(folder / "gateway") as server:
        options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
        return in_a_process(crawl, options, str(folder.parent / "lake"), str(folder / "state"), {}, [])


def repaired(folder: Path) -> dict[str, float]:
    with RealMetastore(folder / "real", notifies=False, measured=True) as metastore:
        return in_a_process(repair, metastore.port, str(folder), str(folder.parent / "lake" / TABLE))


def synthetic(folder: Path, entries: int) -> None:
    """Two sizes: memory that is the same for both does not grow with the entries."""
    taken = {}
    for part in (entries // 10, entries):
        run = folder / str(part)
        run.mkdir()
        with GatewayServer(
            run / "gateway", settings={'file_systems."*"': "ignore", "file_systems.file": "manage"}
        ) as server:
            options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
            place = f"synthetic://{part // FILES_A_DIRECTORY}x{FILES_A_DIRECTORY}"
            storage = {"synthetic": {"implementation": "synthetic_files.SyntheticFiles"}}
            files = [str(Path(__file__).with_name("synthetic_files.py"))]
            taken[f"{part:,} entries"] = [in_a_process(crawl, options, place, str(run / "state"), storage, files)]
    show("synthetic directories of an fsspec file system, --dry-run", taken)


def in_a_process(work: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def crawl(
    connection: dict[str, str], location: str, state: str, storage: Mapping[str, Any], files: list[str]
) -> dict[str, float]:
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.crawl.job import CrawlArguments
    from hms_gateway.pipeline.crawl.job import crawl as job
    from hms_gateway.pipeline.jobs import spark as sessions
    from hms_gateway.pipeline.jobs.options import JobOptions

    given = Connection.of(connection)
    options = JobOptions(connection=given, state=state, storage=storage, dry_run=bool(storage))
    with sessions.session("benchmark", "", {}, None, is_light=True) as spark:
        for file in files:
            spark.sparkContext.addPyFile(file)
        with Peaks() as peaks:
            begin = perf_counter()
            result = job(options, CrawlArguments(location=location), spark=spark)
            seconds = perf_counter() - begin
    return {"seconds": seconds, "done": result.counts["partitions"], **peaks.found}


def repair(port: int, folder: str, location: str) -> dict[str, float]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    builder = SparkSession.builder.master("local[*]").config("spark.sql.catalogImplementation", "hive")
    settings = {
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        "spark.sql.warehouse.dir": f"file:{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "4g",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql(
        f"CREATE TABLE {TABLE} (id BIGINT, note STRING) USING parquet PARTITIONED BY (day STRING, hour INT)"
        f" LOCATION 'file:{location}'"
    )
    with Peaks() as peaks:
        begin = perf_counter()
        spark.sql(f"MSCK REPAIR TABLE {TABLE}")
        seconds = perf_counter() - begin
    done = spark.sql(f"SHOW PARTITIONS {TABLE}").count()
    spark.stop()
    return {"seconds": seconds, "done": done, **peaks.found}


class Peaks:
    """The largest memory of this process, of the JVM below it, and of the processes below that; a context manager."""

    def __init__(self) -> None:
        self.found = {"driver": 0.0, "jvm": 0.0, "worker": 0.0}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Peaks":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._look()
        self._look()

    def _look(self) -> None:
        own = os.getpid()
        self._note("driver", own)
        for process in below(own):
            name = Path(f"/proc/{process}/comm")
            self._note("jvm" if name.exists() and name.read_text().strip() == "java" else "worker", process)

    def _note(self, kind: str, process: int) -> None:
        try:
            self.found[kind] = max(self.found[kind], peak_resident_bytes(process))
        except (OSError, LookupError):
            return


def show(title: str, taken: dict[str, list[dict[str, float]]]) -> None:
    rows, last = [], statistics.median(each["seconds"] for each in list(taken.values())[-1])
    for way, each in taken.items():
        median = statistics.median(one["seconds"] for one in each)
        peaks = [f"{max(one[kind] for one in each) / MIB:.0f} MiB" for kind in ("driver", "jvm", "worker")]
        rows.append([way, f"{each[0]['done']:,.0f}", f"{median:.1f} s", f"{last / median:.1f} x", *peaks])
    print_table(title, ["", "partitions", "median", "as fast", "driver", "its JVM", "largest worker"], rows)


if __name__ == "__main__":
    main()
