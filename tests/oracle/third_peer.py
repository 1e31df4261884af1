"""Apache Hive 3.1.3's metastore on Derby, out of the jars that come with Iceberg's (requirements/iceberg-java.txt).

Thrift binary over TCP, and TJSON over HTTP. Its transaction tables, the classes of formats that the rules for
transactional tables look for, and the listener that writes the notification log are made of the sources in `third`.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Final, Self
from xml.sax.saxutils import escape

from tests.oracle.peer import SHORT_LIVES, PeerDidNotStart, PeerUnavailable
from tests.support.ending import end
from tests.support.server import free_port

SOURCES: Final = Path(__file__).parent
LIBRARIES: Final = Path(sys.prefix) / "iceberg-java" / "bodo_iceberg_connector" / "jars" / "libs"
METASTORE: Final = "org.apache.hadoop.hive.metastore"
SHORT_LIFE: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dderby.system.durability=test")
LOGGING: Final = """\
log4j.rootLogger=WARN, A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c: %m%n
"""
COMPILE_SECONDS_MAX: Final = 240
START_SECONDS_MAX: Final = 240
STOP_SECONDS_MAX: Final = 20
POLL_SECONDS: Final = 0.2


def compiled(folder: Path) -> str:
    """The class path of what is compiled into `folder` and 3.1.3's jars. Raises PeerUnavailable, PeerDidNotStart."""
    if shutil.which("java") is None or shutil.which("javac") is None or not LIBRARIES.is_dir():
        raise PeerUnavailable("no JDK, or no jars of Hive 3 (requirements/iceberg-java.txt)")
    sources = [SOURCES / "HmsPeer.java", *(SOURCES / "third").rglob("*.java")]
    options = ("-nowarn", "-proc:none", "-Xlint:none", "-d", str(folder), "-cp", f"{LIBRARIES}/*")
    command = ["javac", *options, *map(str, sources)]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, env=os.environ | SHORT_LIVES
    )
    if finished.returncode:
        raise PeerDidNotStart(finished.stdout + finished.stderr)
    return f"{folder}:{LIBRARIES}/*"


class ThirdMetastore:
    """One metastore over a database of its own below `folder`. Usable as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.port, self.http_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return when it answers. Raises PeerUnavailable and PeerDidNotStart."""
        settings = self.folder / "settings"
        settings.mkdir(parents=True)
        (settings / "metastore-site.xml").write_text(self._settings())
        (settings / "log4j.properties").write_text(LOGGING)
        class_path = f"{settings}:{compiled(self.folder / 'classes')}"
        command = ["java", *SHORT_LIFE, "-cp", class_path, "ThirdPeer", str(self.port), str(self.http_port)]
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
            "metastore.support.concurrency": "true",
            "hive.support.concurrency": "true",
            "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            "metastore.hmshandler.retry.interval": "0ms",
            "metastore.transactional.event.listeners": "NotificationLog3",
            "metastore.metastore.event.db.notification.api.auth": "false",
            # What it would else look for is in Hive's own jars.
            "metastore.expression.proxy": f"{METASTORE}.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": f"{METASTORE}.events.EventCleanerTask",
            "metastore.task.threads.remote": f"{METASTORE}.events.EventCleanerTask",
        }
        lines = (
            f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in values.items()
        )
        return f"<configuration>{''.join(lines)}</configuration>"
