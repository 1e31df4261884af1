"""Which version of a file is there, for what reads files again when they change."""

import os
from typing import TypeAlias

FileVersion: TypeAlias = tuple[int, int, int]


def file_version(path: str | os.PathLike[str]) -> FileVersion | None:
    """Something that differs after each change; None where the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
