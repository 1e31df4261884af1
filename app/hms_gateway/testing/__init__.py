"""Metastores for tests: `with metastore() as catalog:`, and in pytest the fixtures of `testing/plugin.py`.

One process of the test's process (`testing/host.py`) forks a gateway for each metastore. Nothing is loaded before the
first one is asked for.
"""

import atexit
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    from hms_gateway.client.metastore_client import MetastoreClient

__all__ = ["RunningMetastore", "MetastoreDidNotStart", "metastore"]

STOPPING_SECONDS_MAX = 20.0
_PREFIX = "HMS_GATEWAY_"


class MetastoreDidNotStart(Exception):
    """The gateway of a test could not be started; the text says why."""


class RunningMetastore:
    """A running metastore with an empty catalog.

    url          HTTPS address, for TJSON, binary and compact Thrift
    thrift_url   `thrift://127.0.0.1:PORT`, for engines; local clients need no login, and act as `user`
    warehouse    the folder of managed tables
    user, password   a login of an administrator
    certificate  PEM file of the self-signed certificate that both ports show
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.url: str = told["url"]
        self.port: int = told["port"]
        self.thrift_port: int = told["thrift_port"]
        self.thrift_url = f"thrift://127.0.0.1:{self.thrift_port}"
        self.warehouse = Path(told["warehouse"])
        self.user: str = told["user"]
        self.password: str = told["password"]
        self.certificate = Path(told["certificate"])

    @cached_property
    def client(self) -> "MetastoreClient":
        """A client at `url`, logged in as `user`; it is closed with the metastore."""
        from hms_gateway.client.metastore_client import MetastoreClient

        return MetastoreClient(self.url, (self.user, self.password), self.ssl_context())

    def ssl_context(self) -> "ssl.SSLContext":
        """A context of a client that trusts this metastore and nobody else."""
        import ssl  # pytest loads this module in every session

        return ssl.create_default_context(cafile=self.certificate)

    @property
    def spark_settings(self) -> dict[str, str]:
        """Settings of a Spark session whose catalog this is."""
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": self.thrift_url,
            # Spark, not the metastore, says where a new database lies.
            "spark.sql.warehouse.dir": self.warehouse.as_uri(),
        }

    @property
    def iceberg_properties(self) -> dict[str, str]:
        """Properties of a PyIceberg catalog: `load_catalog("test", **metastore.iceberg_properties)`."""
        return {"type": "hive", "uri": self.thrift_url, "warehouse": self.warehouse.as_uri()}


def metastore(**settings: object) -> contextlib.AbstractContextManager[RunningMetastore]:
    """A metastore with an empty catalog, until the end of the block. Any number may run at once.

    `settings` are those of docs/settings.md (`authorization="grants"`); rights are off by default. Addresses, ports and
    folders are chosen here. Raises MetastoreDidNotStart, naming the setting that is wrong.
    """
    return running(settings)


@contextlib.contextmanager
def running(settings: Mapping[str, object], place: str | None = None) -> Iterator[RunningMetastore]:
    """A metastore with the settings. One after the other at a `place` have its ports and its warehouse."""
    host = _host()
    told = host.ask(do="start", place=place, settings=settings)
    started = RunningMetastore(told)
    try:
        yield started
    finally:
        if "client" in vars(started):
            started.client.close()
        host.ask(do="stop", place=told["place"])


class _Host:
    """The process that metastores are forked from; it ends with this one, however that ends."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        # What somebody has set for a gateway of their own is not meant for those of tests.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
        self._process = subprocess.Popen(
            # -P: modules beside the tests are not ours.
            [sys.executable, "-P", "-m", "hms_gateway.testing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
            # Ctrl-C at the terminal is for the tests, which still have to clean up.
            start_new_session=True,
        )
        atexit.register(self.close)

    def ask(self, **request: object) -> dict[str, Any]:
        """Raises MetastoreDidNotStart."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            number = next(self._numbers)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps({"number": number, **request}, default=str) + "\n")
                self._process.stdin.flush()
            for line in self._process.stdout:
                answer: dict[str, Any] = json.loads(line)
                # Ctrl-C and timeouts of tests interrupt those who wait for one.
                if answer["number"] == number:
                    break
            else:
                raise MetastoreDidNotStart("the process of the metastores ended; standard error says why")
        if "error" in answer:
            raise MetastoreDidNotStart(answer["error"])
        return answer

    def close(self) -> None:
        if self.pid != os.getpid():
            return
        with self._process as process:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(STOPPING_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


_hosts: list[_Host] = []


def _host() -> _Host:
    """The host of this process; a fork of a process gets its own."""
    if not _hosts or _hosts[0].pid != os.getpid():
        _hosts[:] = [_Host()]
    return _hosts[0]


def end_host() -> None:
    """End the process that metastores are forked from, if there is one."""
    while _hosts:
        host = _hosts.pop()
        atexit.unregister(host.close)
        host.close()
