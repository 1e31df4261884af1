"""Writes a file of passwords or tokens: a reader sees the old one or the new one, and other accounts see neither."""

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hms_gateway.runtime.file_versions import make_data_folder


@contextmanager
def writing_alone(path: Path) -> Iterator[None]:
    """No other process that asks for it changes the file meanwhile. Raises OSError."""
    make_data_folder(path.parent)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_private(path: Path, lines: Iterable[str]) -> None:
    """Replace the file; a first one is readable for its owner alone.

    A later one keeps its owner: root may change what a server under an account of its own has to read. Raises OSError.
    """
    make_data_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            _keep_access(path, file.fileno())
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _keep_access(path: Path, descriptor: int) -> None:
    """Give a new file the owner of the one it replaces, and what that owner and its group may; others may nothing.

    Root gives a first one the folder's owner.
    """
    is_root = os.geteuid() == 0
    try:
        before = path.stat()
    except FileNotFoundError:
        if is_root:
            folder = path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
        return
    if is_root:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o660)
