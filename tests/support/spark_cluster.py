"""A standalone Spark cluster on loopback: a master and workers of one core each, as processes of their own.

Each worker has an address of its own: Spark runs no task twice at the same time on one.
"""

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from time import monotonic, sleep
from typing import Self

from benchmarks.pipeline import below
from tests.support.ending import end
from tests.support.server import free_port
from tests.support.spark_variables import SHORT_LIFE

START_SECONDS_MAX = 250
STOP_SECONDS_MAX = 20
POLL_SECONDS = 0.2
HOST = "127.0.0.1"
# Of all processes: what goes between them is encrypted, since options of a data source do.
CONFIGURATION = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "between the processes of a test",
    "spark.network.crypto.enabled": "true",
    "spark.executor.extraJavaOptions": SHORT_LIFE,
    "spark.sql.codegen.wholeStage": "false",
}
JAVA_OPTIONS = f"{SHORT_LIFE} -Dspark.master.rest.enabled=false"


class ClusterDidNotStart(Exception):
    """The text ends with what the processes have written."""


class SparkCluster:
    """Usable as a context manager. Logs and the workers' folders are in `folder`."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._workers = workers
        self._ports = free_port(), free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{name} {value}\n" for name, value in CONFIGURATION.items()]
        # Not as the folder of Spark's configuration, which is on the class path: the archive of classes fits one path.
        (folder / "cluster.conf").write_text("".join(lines))

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self._ports[0]}"

    def __enter__(self) -> Self:
        port, page = map(str, self._ports)
        try:
            self._start("master", HOST, "master.Master", "--port", port, "--webui-port", page)
            for number in range(self._workers):
                place = ("--work-dir", str(self._folder / f"worker-{number}"), "--webui-port", "0")
                size = ("--cores", "1", "--memory", "1g")
                self._start(f"worker-{number}", f"127.0.0.{number + 1}", "worker.Worker", *place, *size, self.url)
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Workers first; they end their executors."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            end(process, STOP_SECONDS_MAX)
        self._processes.clear()

    def log_text(self) -> str:
        """Of master, workers and executors."""
        files = [*self._folder.glob("*.log"), *self._folder.glob("worker-*/*/*/std*")]
        return "\n".join(f"{file}:\n{file.read_text(errors='replace')}" for file in files)

    def executors(self) -> list[int]:
        """The processes of executors, which are below those of workers."""
        return [process for worker in self._processes[1:] for process in below(worker.pid) if _is_java(process)]

    def unpacked(self, archive: str) -> int:
        """How many executors there have been with an archive of this name."""
        return sum(1 for _ in self._folder.glob(f"worker-*/*/*/{archive}"))

    def _start(self, log: str, host: str, name: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        variables = {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "192m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
        with (self._folder / f"{log}.log").open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [
                        *(home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", host),
                        *("--properties-file", str(self._folder / "cluster.conf"), *arguments),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self._folder,
                    env={**os.environ, "SPARK_HOME": str(home), **variables},
                )
            )

    def _wait(self) -> None:
        end = monotonic() + START_SECONDS_MAX
        while monotonic() < end and all(process.poll() is None for process in self._processes):
            try:
                with urllib.request.urlopen(f"http://{HOST}:{self._ports[1]}/json/", timeout=5) as answer:
                    if json.load(answer)["aliveworkers"] == self._workers:
                        return
            except OSError:
                pass
            sleep(POLL_SECONDS)
        raise ClusterDidNotStart(self.log_text())


def _is_java(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip() == "java"
    except OSError:
        return False
