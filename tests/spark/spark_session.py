"""Spark sessions as tests hold them: the one of the run, and others in processes of their own."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.support.spark_variables import WORKER_PATH

RUNNER = Path(__file__).with_name("statement_runner.py")
STOP_SECONDS_MAX = 30
LOG_CHARACTERS_SHOWN = 4_000
# The owner of tables should not depend on who runs the tests.
OWNER = {"HADOOP_USER_NAME": "tester", "SPARK_USER": "tester"}
VARIABLES = OWNER | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""}
# A task is tried again, so that repeated calls can be seen; not many threads: there are others on the machine.
MASTER: Final = "local[2,4]"


class StatementFailed(Exception):
    """Spark refused a statement that should have worked."""


class Statements:
    """A session that answers the requests of `statement_runner`, one after the other."""

    def send(self, request: dict[str, Any]) -> None:
        """Begin a request; `receive` waits for its answer."""
        raise NotImplementedError

    def receive(self) -> dict[str, Any]:
        raise NotImplementedError

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request; its answer."""
        self.send(request)
        return self.receive()

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows of one statement. Raises StatementFailed."""
        return self._rows(statement, self.ask({"sql": statement}))

    def at_once(self, *statements: str) -> list[list[list[Any]]]:
        """The rows of statements that run at the same time in this session. Raises StatementFailed."""
        answers = self.ask({"parallel": list(statements)})["parallel"]
        return [self._rows(statement, answer) for statement, answer in zip(statements, answers, strict=True)]

    def _rows(self, statement: str, answer: dict[str, Any]) -> list[list[Any]]:
        if "error" in answer:
            raise StatementFailed(f"{statement}\n{answer['error']}: {answer['text']}")
        rows: list[list[Any]] = answer["rows"]
        return rows


class SharedSession(Statements):
    """Statements on the run's session, with settings, views and a current database of their own."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark.newSession()
        self._thread = ThreadPoolExecutor(1)
        self._answer: Future[dict[str, Any]] | None = None

    def send(self, request: dict[str, Any]) -> None:
        from tests.spark.statement_runner import answer

        self._answer = self._thread.submit(answer, self._spark, request)

    def receive(self) -> dict[str, Any]:
        assert self._answer is not None
        return self._answer.result()

    def close(self) -> None:
        self._thread.shutdown()


@contextmanager
def one_session(uri: str, warehouse: Path, folder: Path) -> Iterator[Any]:
    """PySpark against the metastore at `uri`, in this process; scratch space in `folder`."""
    from tests.spark.statement_runner import start

    os.environ.update(VARIABLES | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": WORKER_PATH})
    session = start(uri, str(warehouse), folder, MASTER, log_level="OFF")
    # Views and functions keep the settings that they were made with: other sessions of this JVM do not have it.
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    # Other programs of this process's tests are not Spark.
    for name in OWNER:
        del os.environ[name]
    jvm = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    try:
        yield session
    finally:
        session.stop()
        jvm.stdin.close()
        try:
            jvm.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            jvm.kill()
            jvm.wait()


class SparkSessionProcess(Statements):
    """PySpark against the metastore at `uri`; logs and scratch space in `folder`. A context manager."""

    def __init__(self, uri: str, warehouse: Path, folder: Path) -> None:
        self._arguments, self._folder = [uri, str(warehouse), str(folder)], folder
        self._log = folder / "spark.log"
        self._process: subprocess.Popen[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder,
                env=os.environ | VARIABLES,
                # The JVM is a child of the child; as a group they can be ended together.
                start_new_session=True,
            )
        try:
            self._read()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the session and its JVM."""
        process, self._process = self._process, None
        if process is None:
            return
        # Popen's own end closes the pipes and waits.
        with process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)

    def send(self, request: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        return self._read()

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the Spark session ended\n{self.log_text()[-LOG_CHARACTERS_SHOWN:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def why_not() -> str | None:
    """Why Spark cannot run here, None when it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "no PySpark (requirements/spark.txt)"
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        return "no Java (command `java`)"
    return None
