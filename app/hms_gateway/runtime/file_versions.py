"""Files of this machine: versions of those that are read again when they change, and the data folder."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

FileVersion: TypeAlias = tuple[int, int, int]

LOOK_EVERY_SECONDS: Final = 1.0


def file_version(path: str | os.PathLike[str]) -> FileVersion | None:
    """Something that differs after each change; None where the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class WatchedFile:
    """Says when to read a file: looked at once a second, or at once. The first look always says so."""

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self.path = path
        self._monotonic = monotonic
        self._version: FileVersion | None = None
        self._was_seen = False
        self._next_look = 0.0

    @property
    def size(self) -> int:
        """In bytes, at the last look; 0 where there was no file."""
        return 0 if self._version is None else self._version[1]

    def look_again(self) -> None:
        """The file could not be read: the next look says that it has changed."""
        self._was_seen = False

    def has_changed(self, *, at_once: bool) -> bool:
        """True if the version changed since the last look; without `at_once`, False within a second of it."""
        now = self._monotonic()
        if now < self._next_look and not at_once:
            return False
        self._next_look = now + LOOK_EVERY_SECONDS
        version = file_version(self.path)
        if version == self._version and self._was_seen:
            return False
        self._version, self._was_seen = version, True
        return True


_MODE = 0o755


def make_data_folder(folder: Path) -> None:
    """Make it and those above it that are missing; other accounts cannot write them, whatever the umask.

    Raises OSError.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        with suppress(FileExistsError):
            missing.mkdir(_MODE)
    folder.mkdir(exist_ok=True)


def is_open_to_all(folder: Path) -> bool:
    """True if every account of the machine can replace files in the folder."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX
