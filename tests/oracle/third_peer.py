"""Apache Hive 3.1.3's metastore on Derby, out of the jars that come with Iceberg's (requirements/iceberg-java.txt).

It keeps no notification log: the class that would is not in these jars.
"""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Final, Self
from xml.sax.saxutils import escape

from tests.oracle.peer import PeerDidNotStart, PeerUnavailable
from tests.support.ending import end
from tests.support.server import free_port

LIBRARIES: Final = Path(sys.prefix) / "iceberg-java" / "bodo_iceberg_connector" / "jars" / "libs"
MAIN: Final = "org.apache.hadoop.hive.metastore.HiveMetaStore"
SHORT_LIFE: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
START_SECONDS_MAX: Final = 120
STOP_SECONDS_MAX: Final = 20
POLL_SECONDS: Final = 0.2


class ThirdMetastore:
    """One metastore over a database of its own below `folder`. Usable as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return when it answers. Raises PeerUnavailable and PeerDidNotStart."""
        if shutil.which("java") is None or not LIBRARIES.is_dir():
            raise PeerUnavailable("no Java, or no jars of Hive 3 (requirements/iceberg-java.txt)")
        settings = self.folder / "settings"
        settings.mkdir(parents=True)
        (settings / "metastore-site.xml").write_text(self._settings())
        command = ["java", *SHORT_LIFE, "-cp", f"{settings}:{LIBRARIES}/*", MAIN, "-p", str(self.port)]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        end = monotonic() + START_SECONDS_MAX
        while monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=POLL_SECONDS).close()
            except OSError:
                sleep(POLL_SECONDS)
            else:
                return self
        self.stop()
        raise PeerDidNotStart((self.folder / "log").read_text(errors="replace"))

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_SECONDS_MAX)

    def _settings(self) -> str:
        values = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder}/db;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "metastore.schema.verification": "false",
            "metastore.warehouse.dir": f"file://{self.warehouse}",
            "fs.defaultFS": "file:///",
            # What it would else look for is in Hive's own jars.
            "metastore.expression.proxy": f"{MAIN.rpartition('.')[0]}.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": f"{MAIN.rpartition('.')[0]}.events.EventCleanerTask",
        }
        lines = (
            f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in values.items()
        )
        return f"<configuration>{''.join(lines)}</configuration>"
