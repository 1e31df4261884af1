"""The check that the pages of a SQLite database hold together."""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from hms_gateway.storage.dialects.base import BUSY_SECONDS_MAX
from hms_gateway.storage.dialects.kinds import dialect_of_url, parse_url

_log = logging.getLogger(__name__)

# Up to this size a start waits for the check: 2.4 ms for each MiB.
CHECKED_AT_START_BYTES: Final = 8 * 1024 * 1024
CHECKED_EVERY_SECONDS: Final = 86_400.0
_STOP_SECONDS_MAX: Final = 30.0


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database, None for other databases. Raises StoreError."""
    parsed = parse_url(url)
    return dialect_of_url(parsed).file(parsed)


class IntegrityCheck:
    """Looks through a whole database file. `stop` ends a check that is under way."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._connection: sqlite3.Connection | None = None
        self._wants_stop = False

    def is_short(self) -> bool:
        """Whether the check takes no longer than a start may wait for."""
        try:
            return self.file.stat().st_size <= CHECKED_AT_START_BYTES
        except OSError:
            return True

    def find_damage(self) -> str | None:
        """What is wrong first, in SQLite's words; None also for a file that cannot be opened, or after `stop`."""
        if self._wants_stop or not self.file.exists():
            return None
        try:
            with _opened(self.file) as connection:
                self._connection = connection
                return _damage(connection)
        except sqlite3.OperationalError:
            return None
        except sqlite3.DatabaseError as error:
            return str(error)
        finally:
            self._connection = None

    def stop(self) -> None:
        """From any thread."""
        self._wants_stop = True
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it was closed just now
                connection.interrupt()


class IntegrityWatch:
    """Checks the database once a day in a thread of its own; a large one at once, since the start did not wait for it.

    The log names damage, and `checked` hears after each check whether there is some.
    """

    def __init__(self, check: IntegrityCheck, checked: Callable[[bool], None]) -> None:
        self._check = check
        self._checked = checked
        self._is_short = check.is_short()
        if self._is_short:
            checked(False)  # or the start would have refused
        self._wants_stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="integrity", daemon=True)

    def start(self) -> None:
        """Once."""
        self._thread.start()

    def stop(self) -> None:
        """End a check that is under way, and do no more."""
        self._wants_stop.set()
        self._check.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS_MAX)

    def _run(self) -> None:
        seconds = CHECKED_EVERY_SECONDS if self._is_short else 0.0
        while not self._wants_stop.wait(seconds):
            damage = self._check.find_damage()
            if self._wants_stop.is_set():
                return
            if damage is not None:
                _log.error("the database %s is damaged: %s; restore a backup", self._check.file, damage)
            self._checked(damage is not None)
            seconds = CHECKED_EVERY_SECONDS


def _damage(connection: sqlite3.Connection) -> str | None:
    [(found,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return None if found == "ok" else str(found).replace("\n", " ")


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """For reading; but only a connection that might write reads what a crash left in the write-ahead log."""
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS_MAX, check_same_thread=False
    )
    try:
        yield connection
    finally:
        connection.close()
