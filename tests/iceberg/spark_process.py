"""PySpark 3.5 with Iceberg's runtime in a process of its own (`scripts/peers all`), which runs statements."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.iceberg.java_library import PYTHON, library_jars
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import PASSWORD, USER

_SESSION: Final = Path(__file__).with_name("spark_session.py")
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def rest_catalog(uri: str, **more: str) -> dict[str, str]:
    """Properties of Iceberg's RESTCatalog."""
    login = {"type": "basic", "basic.username": USER, "basic.password": PASSWORD}
    return {"type": "rest", "uri": uri, **{f"rest.auth.{key}": value for key, value in login.items()}, **more}


def hive_catalog(uri: str, warehouse: Path) -> dict[str, str]:
    """Properties of Iceberg's HiveCatalog."""
    return {"type": "hive", "uri": uri, "warehouse": f"file:{warehouse}"}


class SparkProcess:
    """A session that runs statements."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def together(self, *statements: str | tuple[str, str, Mapping[str, str]]) -> list[Any]:
        """Run statements (spark_session.py) at once; the rows of each, or the text of its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statements).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._log.read_text(errors="replace")[-5000:]
        found: list[Any] = json.loads(line)
        return found


@contextmanager
def spark_process(
    folder: Path, catalogs: Mapping[str, Mapping[str, str]], java_options: str = "", **settings: str
) -> Iterator[SparkProcess]:
    """A session with catalogs by their names and properties. Skips where PySpark or Iceberg's runtime is missing."""
    named = {
        f"spark.sql.catalog.{name}.{key}": value
        for name, given in catalogs.items()
        # With a cache a session sees what others commit up to half a minute later.
        for key, value in {**given, "cache-enabled": "false"}.items()
    }
    given = {
        **named,
        **{f"spark.sql.catalog.{name}": _CATALOG for name in catalogs},
        "spark.sql.extensions": _EXTENSIONS,
        "spark.jars": ",".join(map(str, library_jars())),
        "spark.driver.extraJavaOptions": f"{java_options} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": str(folder),
        "spark.log.level": "ERROR",
        **settings,
    }
    log = folder / "spark.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [str(PYTHON), str(_SESSION), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": "pyspark-shell"},
        ) as process,
    ):
        try:
            yield SparkProcess(process, log)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE_SECONDS)
