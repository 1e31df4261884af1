"""The data files of a partition: which there are, and a digest that changes when one of them does."""

import stat
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import quote

import msgspec

from hms_gateway.pipeline.listing import ListingProblem, LocalFiles, RemoteFiles, files_of
from hms_gateway.pipeline.storage import Storage, local_path, scheme_of

_HIDDEN: Final = ("_", ".")
_KEPT_IN_PATHS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/:@!$&'()*+,;=-._~")
# What file systems call the version of a file or the time of its last change.
_VERSIONS: Final = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


class File(msgspec.Struct, frozen=True):
    """A data file; `path` is as reports name it, `version` changes with its content.

    `folder` is where it lies below the location, empty for the location itself.
    """

    path: str
    size: int
    version: str
    folder: str = ""


class NotListed(Exception):
    """A location cannot be listed; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


def data_files(location: str, storage: Storage) -> list[File]:
    """Data files below a location, in the order of their paths. Raises NotListed, also for one that is not there.

    Names that begin with `_` or `.` are not data, as in Hive and Spark. Raises OptionError for a location that the job
    does not look at.
    """
    files = files_of(location, storage)
    try:
        found = _remote(files, location) if isinstance(files, RemoteFiles) else _local(files, files.root(location))
        return sorted(found, key=lambda file: file.path)
    except ListingProblem as problem:
        raise NotListed(problem.path, problem.reason) from problem
    except OSError as error:
        raise NotListed(location, f"cannot be listed: {error.strerror or error}") from error


def reader(file: File, location: str, storage: Storage) -> Callable[[int, int], bytes]:
    """Reads a file below a location."""
    files = files_of(location, storage)
    return lambda offset, length: files.read(file.path, offset, length)


def _remote(files: RemoteFiles, location: str) -> Iterator[File]:
    system: Any = files.system
    top = files.checked(files.root(location))
    try:
        found = system.find(top, detail=True)
        if not found and not system.exists(top):
            raise FileNotFoundError(2, "No such file or directory")
    except OSError:
        raise
    except Exception as error:
        # Each library has exceptions of its own.
        raise OSError(f"{type(error).__name__}: {error}") from error
    for path, details in found.items():
        names = path[len(top) :].strip("/").split("/")
        if not any(name.startswith(_HIDDEN) for name in names):
            version = next((str(details[name]) for name in _VERSIONS if details.get(name) is not None), "")
            yield File(path, int(details.get("size") or 0), version, "/".join(names[:-1]))


def _local(files: LocalFiles, folder: str, below: str = "") -> Iterator[File]:
    for name, found in files.entries(folder):
        if name.startswith(_HIDDEN):
            continue
        if stat.S_ISREG(found.st_mode):
            yield File(f"{folder}/{name}", found.st_size, str(found.st_mtime_ns), below)
        else:
            # Of a link it says that it is one.
            yield from _local(files, f"{folder}/{name}", f"{below}/{name}" if below else name)


def uri_of(location: str, folder: str) -> str:
    """A folder below a location as Spark names it in `_metadata.file_path`: escaped as Java's URIs are."""
    scheme = scheme_of(location)
    if not scheme:
        base = "file:" + _escaped(local_path(location))
    else:
        authority, slash, path = location.partition("://")[2].partition("/")
        base = f"{scheme}://{authority}{slash}{_escaped(path.rstrip('/'))}".rstrip("/")
    return f"{base}/{_escaped(folder)}" if folder else base


def _escaped(path: str) -> str:
    """Java leaves letters of all languages as they are."""
    return "".join(
        each if each in _KEPT_IN_PATHS or (ord(each) > 159 and not each.isspace()) else quote(each) for each in path
    )


def digest(files: Sequence[File], columns: str) -> str:
    """Of what statistics are taken: each file, and the table's columns."""
    found = blake2b(columns.encode(), digest_size=12)
    for file in files:
        found.update(f"\n{file.path}\n{file.size}\n{file.version}".encode(errors="surrogateescape"))
    return found.hexdigest()
