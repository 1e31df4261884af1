"""One directory: its entries with sizes and times. This machine's disks are read without fsspec, which is slower."""

import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from hms_gateway.pipeline.storage import Storage, local_path, open_files, scheme_of

_TIMES: Final = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class ListingProblem(Exception):
    """A directory cannot be listed; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


class Entry(NamedTuple):
    """`modified_ms` is 0 where the file system does not know."""

    name: str
    is_directory: bool
    bytes: int
    modified_ms: int


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

    @property
    def waits(self) -> bool:
        """Whether a listing mostly waits for a network, so that several at once are faster."""


def files_of(location: str, storage: Storage) -> Files:
    """The file system of a location. Raises OptionError."""
    scheme = scheme_of(location)
    return RemoteFiles(scheme, open_files(scheme, storage)) if scheme else LocalFiles()


def is_hidden(name: str, *, is_directory: bool) -> bool:
    """What Hive and Spark do not look at; a directory `_a=1` is a partition all the same."""
    return name.startswith(".") or (name.startswith("_") and not (is_directory and "=" in name))


class LocalFiles:
    """This machine's disks."""

    waits = False

    def root(self, location: str) -> str:
        return local_path(location)

    def location(self, path: str) -> str:
        return f"file:{path}"

    def scan(self, path: str) -> Iterator[Entry]:
        with _translated(path, os.scandir, path) as entries:
            for entry in entries:
                try:
                    found = entry.stat()
                except OSError:
                    continue
                yield Entry(entry.name, stat.S_ISDIR(found.st_mode), found.st_size, found.st_mtime_ns // 1_000_000)

    def is_directory(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ListingProblem(path, _reason(error)) from error

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def read(self, path: str, offset: int, length: int) -> bytes:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(file, length, offset)
        finally:
            os.close(file)


class RemoteFiles:
    """What fsspec speaks."""

    waits = True

    def __init__(self, scheme: str, files: Any) -> None:
        self._scheme, self._files = scheme, files

    def root(self, location: str) -> str:
        """With the authority, as fsspec names paths; the top of an HDFS is empty."""
        path: str = self._files._strip_protocol(location)
        return path.rstrip("/")

    def location(self, path: str) -> str:
        return f"{self._scheme}://{path}"

    def scan(self, path: str) -> Iterator[Entry]:
        for found in _translated(path, self._files.ls, path, detail=True):
            name = str(found["name"]).rstrip("/").rpartition("/")[2]
            # Object stores have an empty object for a directory, by its own name.
            if str(found["name"]).strip("/") != path.strip("/"):
                yield Entry(name, found["type"] == "directory", int(found.get("size") or 0), _milliseconds(found))

    def is_directory(self, path: str) -> bool:
        return bool(_translated(path, self._files.isdir, path))

    def size(self, path: str) -> int:
        return int(self._files.size(path))

    def read(self, path: str, offset: int, length: int) -> bytes:
        return bytes(self._files.cat_file(path, start=offset, end=offset + length))


def _translated(path: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return call(*arguments, **named)
    except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
        raise ListingProblem(path, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there (any more)"
    if isinstance(error, NotADirectoryError):
        return "is not a directory (any more)"
    if isinstance(error, PermissionError):
        return "may not be listed: permission denied"
    return f"cannot be listed: {getattr(error, 'strerror', None) or error or type(error).__name__}"


def _milliseconds(found: dict[str, Any]) -> int:
    for name in _TIMES:
        value = found.get(name)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0
