"""Jobs whose driver, workers or gateway are killed, or whose disk becomes full, and which are resumed then."""

import contextlib
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.pipeline import below, parent
from hms_gateway.pipeline.errors import JobFailed, StateFailed
from hms_gateway.pipeline.jobs.options import JobOptions
from tests.support.server import GatewayServer
from tests.support.spark_variables import WORKER_PATH

VICTIMS = ("driver", "worker", "gateway", "disk")
SECONDS_MAX = 280
ROOT = Path(__file__).parents[3]
_STEPS = ("*/plan/*/made/*.json", "*/done/*/*.json")


@dataclass(frozen=True, kw_only=True)
class Given:
    """A job and what it is given; pickled to a program of its own.

    job        its function: `crawl.job.crawl`
    constants  by the same kind of name, numbers that are other ones in the test, so that there are many batches
    """

    job: str
    options: JobOptions
    arguments: Any
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return Path(self.options.state)

    @property
    def run_id(self) -> str:
        [run] = [path.name for path in self.state.iterdir() if (path / "run.json").exists()]
        return run

    def run(self, spark: Any = None, resume: str | None = None) -> dict[str, Any]:
        """The job's result. Raises JobFailed."""
        module, name = _named(self.job)
        with contextlib.ExitStack() as stack:
            for constant, number in self.constants.items():
                stack.enter_context(mock.patch.object(*_named(constant), number))
            result = getattr(module, name)(replace(self.options, resume=resume), self.arguments, spark=spark)
        found: dict[str, Any] = json.loads(result.as_json())
        return found


def _named(place: str) -> tuple[Any, str]:
    module, _, name = place.rpartition(".")
    return import_module(f"hms_gateway.pipeline.{module}"), name


def steps_done(state: Path) -> int:
    """How many batches of all stages have left their files behind."""
    return sum(1 for pattern in _STEPS for _ in state.glob(pattern))


@contextlib.contextmanager
def when(state: Path, steps: int, act: Callable[[], None], later_seconds: float = 0.0) -> Iterator[None]:
    """`act` once, in a thread, as soon as so many batches are done, or somewhat later."""
    ended = threading.Event()
    problems: list[BaseException] = []

    def watch() -> None:
        while not ended.wait(0.01):
            if steps_done(state) >= steps:
                ended.wait(later_seconds)
                try:
                    act()
                except BaseException as problem:
                    problems.append(problem)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert problems == []


@dataclass(frozen=True)
class Blow:
    """What is hit, once so many batches are done and a moment has passed."""

    victim: str
    steps: int
    later_seconds: float = 0.0

    def on(self, given: Given, spark: Any, server: GatewayServer) -> dict[str, Any]:
        """The result of the job, which is resumed where it did not survive."""
        if self.victim == "driver":
            return self._on_driver(given, spark)
        if self.victim == "disk":
            return self._on_disk(given, spark)
        act = {"worker": lambda: kill_workers(spark), "gateway": lambda: restart(server)}[self.victim]
        with when(given.state, self.steps, act, self.later_seconds):
            try:
                return given.run(spark)
            except JobFailed:
                pass
        return given.run(spark, given.run_id)

    def _on_driver(self, given: Given, spark: Any) -> dict[str, Any]:
        """The resume begins while tasks of the killed driver may still be at work."""
        process = start(given)
        with when(given.state, self.steps, process.kill, self.later_seconds):
            result = outcome(process)
        return given.run(spark, given.run_id) if result is None else result

    def _on_disk(self, given: Given, spark: Any) -> dict[str, Any]:
        with small_disk(given.state) as ballast:
            with when(given.state, self.steps, ballast.fill, self.later_seconds):
                result = _unless_full(given, spark)
            ballast.remove()
            return given.run(spark, given.run_id) if result is None else result


def _unless_full(given: Given, spark: Any) -> dict[str, Any] | None:
    """None where the disk became full, which was said."""
    try:
        return given.run(spark)
    except StateFailed as failed:
        said = f"{failed}; {failed.hint}"
    assert re.search(r"state file .+ cannot be written: No space left on device; .*the run can be resumed", said), said
    return None


def start(given: Given) -> subprocess.Popen[bytes]:
    """The job in a program of its own."""
    file = given.state.with_name(f"{given.state.name}.pickle")
    file.write_bytes(pickle.dumps(given))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.faults.program", str(file)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": WORKER_PATH},
        start_new_session=True,
    )


def outcome(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """What the program has printed, None where it was killed or has failed."""
    with process:
        try:
            out, _ = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return json.loads(out) if process.returncode == 0 else None


def kill_workers(spark: Any) -> None:
    """All Python workers of a session; not the daemons above them, without which Spark would take the dead for idle."""
    jvm = spark.sparkContext._gateway.proc.pid
    for process in below(jvm):
        with contextlib.suppress(OSError):
            is_daemon = parent(Path(f"/proc/{process}")) == jvm
            if not is_daemon and Path(f"/proc/{process}/comm").read_text().startswith("python"):
                os.kill(process, signal.SIGKILL)


def restart(server: GatewayServer) -> None:
    server.kill()
    server.start()


@dataclass(frozen=True)
class Ballast:
    """What fills a disk."""

    file: Path

    def fill(self) -> None:
        with contextlib.suppress(OSError), self.file.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)


class DiskUnavailable(Exception):
    """The account may not mount a file system."""


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Ballast]:
    """A file system of 64 MiB at a folder, whose files are in the folder afterwards. Raises DiskUnavailable."""
    folder.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder], capture_output=True).returncode:
        raise DiskUnavailable
    kept = folder.with_name(f"{folder.name}-kept")
    try:
        yield Ballast(folder / ".ballast")
        shutil.copytree(folder, kept)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()
    kept.rename(folder)
