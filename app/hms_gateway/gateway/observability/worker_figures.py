"""The figures of all workers: each leaves its own in a folder that they share, and whichever is asked adds them up.

Everybody reads the files only, its own too, and a file only ever grows: so no counter goes back from one answer to the
next, whichever worker gives it. The file of a worker that died stays, since what it has counted was counted.
"""

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path

import msgspec
import structlog

from hms_gateway.gateway.observability.figures import Figures, merged

_PREFIX = "workers"

_log = structlog.get_logger("hms_gateway.observability")


class WorkerFigures:
    """The place of one worker in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._left = 0.0

    def leave(self, figures: Figures) -> None:
        """Replace what the others see of this process; harmless when the disk refuses it."""
        path = self._folder / str(figures.pid)
        with self._lock:
            if figures.taken < self._left:
                return
            self._left = figures.taken
            self._write(path, figures)

    def _write(self, path: Path, figures: Figures) -> None:
        try:
            path.with_suffix(".new").write_bytes(msgspec.msgpack.encode(figures))
            path.with_suffix(".new").replace(path)
        except OSError as error:
            _log.warning("the figures of this worker cannot be shared", file=str(path), problem=str(error))

    def all(self, own: Figures) -> Figures:
        """The figures of all workers as one; `own` is left first."""
        self.leave(own)
        found = [figures for path in self._folder.iterdir() if (figures := _read(path)) is not None]
        alive = frozenset(figures.pid for figures in found if _is_alive(figures.pid))
        return merged(found or [own], alive or frozenset({own.pid}))


def make_folder(data_dir: Path) -> Path:
    """A folder for the workers of this process; those of processes that were killed are removed. Raises OSError."""
    host = socket.gethostname()
    for left in data_dir.glob(f"{_PREFIX}-{host}-*"):
        pid = left.name.rpartition("-")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or not _is_alive(int(pid))):
            remove_folder(left)
    folder = data_dir / f"{_PREFIX}-{host}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    return folder


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> Figures | None:
    if not path.name.isdigit():
        return None
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.msgpack.decode(path.read_bytes(), type=Figures)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
