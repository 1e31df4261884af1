"""The Spark session of pytest's fixture: one JVM, and for each test a session on its own catalog."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hms_gateway.testing import RunningMetastore

JVM_SECONDS_MAX = 30
# Tables of tests are small. The catalog of the last test is gone: its connection is replaced at once, without a pause.
SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "metastore_spark",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.hadoop.hive.metastore.client.connect.retry.delay": "0",
}


class SparkUnavailable(Exception):
    """The session cannot be started; the text says what to do."""


class SharedSpark:
    """Starts Spark with the first test that asks for it."""

    def __init__(self, settings: Mapping[str, str], folder: Path) -> None:
        """Raises SparkUnavailable."""
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            raise SparkUnavailable("metastore_spark needs Java 17 or newer; install it, or set JAVA_HOME")
        if SparkContext._active_spark_context is not None:
            raise SparkUnavailable(
                "a SparkSession runs already, with another catalog; make it with metastore.spark_settings, or stop it "
                "before the first test with metastore_spark"
            )
        self._settings = settings
        self._folder = folder
        self._first: Any = None

    @contextmanager
    def session(self, metastore: RunningMetastore) -> Iterator[SparkSession]:
        """A session on the catalog, the active one. All catalogs have the ports and the warehouse of the first."""
        if self._first is None:
            self._first = self._start(metastore)
        self._first.sparkContext._jvm.SparkSession.clearActiveSession()
        session = self._first.newSession()
        _make_active(session)
        try:
            yield session
        finally:
            # All sessions of a context have these together.
            session.catalog.clearCache()
            session._jsparkSession.sharedState().globalTempViewManager().clear()
            _make_active(self._first)

    def stop(self) -> None:
        """End Spark and its JVM, so that nothing of it stays behind."""
        if self._first is None:
            return
        gateway = SparkContext._gateway
        self._first.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(JVM_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, metastore: RunningMetastore) -> SparkSession:
        scratch = {
            "spark.local.dir": str(self._folder),
            "spark.hadoop.hive.exec.scratchdir": self._folder.joinpath("scratch").as_uri(),
            "spark.hadoop.hive.exec.local.scratchdir": str(self._folder / "local-scratch"),
        }
        builder = SparkSession.builder
        for name, value in {**SETTINGS, **scratch, **self._settings, **metastore.spark_settings}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def _make_active(session: Any) -> None:
    """`SparkSession.builder.getOrCreate()` in the code under test gives this one."""
    classes = session.sparkContext._jvm.SparkSession
    classes.setDefaultSession(session._jsparkSession)
    classes.setActiveSession(session._jsparkSession)
    type(session)._instantiatedSession = session
