"""One directory: its entries with sizes and times. This machine's disks are read without fsspec, which is slower.

Nothing outside of a job's roots is looked at (`Storage`).
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from hms_gateway.pipeline.storage import OUTSIDE, Storage, local_path, open_files, same_file_system, scheme_of
from hms_gateway.storage.files.handles import LISTING, REACHING, Handle, open_top

_TIMES: Final = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class ListingProblem(Exception):
    """A directory cannot be listed; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


class Entry(NamedTuple):
    """`modified_ms` is 0 where the file system does not know.

    A link counts as a directory that cannot be listed, so that a look for files in it names it.
    """

    name: str
    is_directory: bool
    bytes: int
    modified_ms: int
    is_link: bool = False


class Files(Protocol):
    """A file system. Paths are those of `root`; executors make their own from a location."""

    def root(self, location: str) -> str:
        """The path of a location, without a slash at the end."""

    def location(self, path: str) -> str:
        """The location of a path, as a table has it."""

    def scan(self, path: str) -> Iterator[Entry]:
        """What is in a directory; what vanishes meanwhile is left out. Raises ListingProblem."""

    def is_directory(self, path: str) -> bool:
        """Raises ListingProblem where that cannot be known."""

    def size(self, path: str) -> int:
        """The bytes of a file. Raises OSError."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        """As many bytes of a file as there are. Raises OSError."""

    def delete(self, path: str) -> None:
        """A directory with everything in it. Raises OSError."""

    @property
    def waits(self) -> bool:
        """Whether a listing mostly waits for a network, so that several at once are faster."""


def files_of(location: str, storage: Storage) -> "LocalFiles | RemoteFiles":
    """The file system of a location. Raises OptionError for one outside of the roots, or that does not open."""
    storage.check(location)
    scheme = scheme_of(location)
    if not scheme:
        return LocalFiles(storage)
    roots = [root for root in storage.roots if same_file_system(root, location)]
    return RemoteFiles(scheme, open_files(scheme, storage.options), roots)


def is_hidden(name: str, *, is_directory: bool) -> bool:
    """What Hive and Spark do not look at; a directory `_a=1` is a partition all the same."""
    return name.startswith(".") or (name.startswith("_") and not (is_directory and "=" in name))


class LocalFiles:
    """This machine's disks, by handles of directories."""

    waits = False

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def root(self, location: str) -> str:
        return local_path(location)

    def location(self, path: str) -> str:
        return f"file:{path}"

    def scan(self, path: str) -> Iterator[Entry]:
        for name, found in self.entries(path):
            is_link = stat.S_ISLNK(found.st_mode)
            is_directory = is_link or stat.S_ISDIR(found.st_mode)
            yield Entry(name, is_directory, found.st_size, found.st_mtime_ns // 1_000_000, is_link)

    def entries(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """The entries by their names; of a link the link itself, unless it leads nowhere. Raises ListingProblem."""
        with (
            _translated(path, self.open, path, LISTING) as folder,
            _translated(path, os.scandir, folder.number) as entries,
        ):
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISLNK(found.st_mode):
                        entry.stat()
                except OSError:
                    continue
                yield entry.name, found

    def is_directory(self, path: str) -> bool:
        try:
            self.open(path).close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ListingProblem(path, _reason(error)) from error
        return True

    def size(self, path: str) -> int:
        with self.around(path) as (folder, name):
            return os.stat(name, dir_fd=folder.number, follow_symlinks=False).st_size

    def read(self, path: str, offset: int, length: int) -> bytes:
        file = self.open_file(path, os.O_RDONLY)
        try:
            return os.pread(file, length, offset)
        finally:
            os.close(file)

    def open_file(self, path: str, flags: int) -> int:
        """The number of a file that is opened or, with the flags for it, made. Raises OSError."""
        with self.around(path) as (folder, name):
            return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666, dir_fd=folder.number)

    def make(self, path: str) -> None:
        """A directory with those above it; one that is there is fine. Raises OSError."""
        directories, rest = self._storage.local(path)
        directories.make(rest)

    def delete(self, path: str) -> None:
        directories, rest = self._storage.local(path)
        if not rest:
            raise OSError(errno.EPERM, "is a root, which is not deleted")
        directories.delete(rest)

    @contextmanager
    def around(self, path: str) -> Iterator[tuple[Handle, str]]:
        """The directory in which something lies, and its name there. Raises OSError."""
        folder, _, name = path.rpartition("/")
        with self.open(folder) as handle:
            yield handle, name

    def open(self, path: str, flags: int = REACHING) -> Handle:
        """A directory; a link on the way from the root is ELOOP. Raises OSError."""
        directories, rest = self._storage.local(path)
        # The root is without links already, so that one call does.
        return open_top(f"{directories.root.rstrip('/')}/{rest}", flags)


class RemoteFiles:
    """A file system that fsspec speaks; `system` is its own."""

    waits = True

    def __init__(self, scheme: str, system: Any, roots: list[str]) -> None:
        self._scheme, self.system = scheme, system
        self._tops = [self.root(location) for location in roots]

    def root(self, location: str) -> str:
        """With the authority, as fsspec names paths; the top of an HDFS is empty."""
        path: str = self.system._strip_protocol(location)
        return path.rstrip("/")

    def location(self, path: str) -> str:
        return f"{self._scheme}://{path}"

    def checked(self, path: str) -> str:
        """A path below the roots. Raises OSError for another one."""
        if ".." in path.split("/") or not any(f"{path}/".startswith(f"{top}/") for top in self._tops):
            raise OSError(errno.EXDEV, OUTSIDE)
        return path

    def scan(self, path: str) -> Iterator[Entry]:
        for found in _translated(path, lambda: self.system.ls(self.checked(path), detail=True)):
            name = str(found["name"]).rstrip("/").rpartition("/")[2]
            # Object stores have an empty object for a directory, by its own name.
            if str(found["name"]).strip("/") != path.strip("/"):
                yield Entry(name, found["type"] == "directory", int(found.get("size") or 0), _milliseconds(found))

    def is_directory(self, path: str) -> bool:
        return bool(_translated(path, lambda: self.system.isdir(self.checked(path))))

    def size(self, path: str) -> int:
        return int(_as_os_error(lambda: self.system.size(self.checked(path))))

    def read(self, path: str, offset: int, length: int) -> bytes:
        return bytes(_as_os_error(lambda: self.system.cat_file(self.checked(path), start=offset, end=offset + length)))

    def delete(self, path: str) -> None:
        _as_os_error(lambda: self.system.rm(self.checked(path), recursive=True))


def _as_os_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except OSError:
        raise
    except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
        raise OSError(f"{type(error).__name__}: {error}") from error


def _translated(path: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
        raise ListingProblem(path, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there (any more)"
    if isinstance(error, NotADirectoryError):
        return "is not a directory (any more)"
    if isinstance(error, PermissionError):
        return "may not be listed: permission denied"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "leads through a symbolic link, which is not followed below a root; --root names the link itself"
    return f"cannot be listed: {getattr(error, 'strerror', None) or error or type(error).__name__}"


def _milliseconds(found: dict[str, Any]) -> int:
    for name in _TIMES:
        value = found.get(name)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0
