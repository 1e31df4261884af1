"""Directories of this machine.

Through the operating system and not through fsspec: only `mkdir` itself can tell which of two racing calls made a
directory, and the loser must not delete it.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

_ATTEMPTS: Final = 5


class LocalDirectories:
    """The `Backend` for `file:`. Raises OSError."""

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def make(self, path: str) -> bool:
        """True when this call made it. A parent somebody removes meanwhile is made again, a few times."""
        for attempt in range(_ATTEMPTS):
            try:
                os.mkdir(path)
                return True
            except FileExistsError:
                if os.path.isdir(path):
                    return False
                raise
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                os.makedirs(os.path.dirname(path), exist_ok=True)
        return False

    def maker(self) -> Callable[[str], bool]:
        """`make` for many paths: parents of earlier ones are taken to be there, and whatever is unusual goes to `make`.

        Of a new partition with three keys no more is asked than to make three directories.
        """
        known: set[str] = set()

        def make(path: str) -> bool:
            missing = []
            parent = path.rpartition("/")[0]
            while parent and parent not in known:
                missing.append(parent)
                parent = parent.rpartition("/")[0]
            if parent:
                try:
                    while missing:
                        _make_unless_there(missing[-1])
                        known.add(missing.pop())
                    os.mkdir(path)
                    return True
                except OSError:
                    known.clear()
            is_new = self.make(path)
            known.update(_ancestors(path))
            return is_new

        return make

    def delete(self, path: str) -> None:
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        elif os.path.lexists(path):
            shutil.rmtree(path)

    def delete_if_empty(self, path: str) -> bool:
        try:
            os.rmdir(path)
        except OSError:
            return False
        return True

    def move(self, source: str, target: str) -> None:
        """Refuses to replace anything; `rename` alone would replace an empty directory."""
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists already")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]:
        """Path relative to `path`, and size, of every file below."""
        for folder, folders, files in os.walk(path):
            folders[:] = [name for name in folders if name[0] not in "._"]
            for name in files:
                full = os.path.join(folder, name)
                yield os.path.relpath(full, path), os.lstat(full).st_size

    def resolve(self, path: str) -> str:
        """`path` with symbolic links followed as far as it exists, for comparing it with the roots."""
        return os.path.realpath(path)


def _ancestors(path: str) -> Iterator[str]:
    """Upwards, without the top."""
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


def _make_unless_there(path: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(path)
