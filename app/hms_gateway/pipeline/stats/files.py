"""The data files of a partition: which there are, and a digest that changes when one of them does."""

import os
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import fsspec
import msgspec

from hms_gateway.files.places import Place, parse_place
from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.pipeline.footers import file_reader, local_reader

_FSSPEC_NAMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
_HIDDEN: Final = ("_", ".")
# What file systems call the version of a file or the time of its last change.
_VERSIONS: Final = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated")

Read = Callable[[int, int], bytes]


class File(msgspec.Struct, frozen=True):
    """A data file; `path` is as reports name it, `version` changes with its content."""

    path: str
    size: int
    version: str


class NotListed(Exception):
    """A location cannot be listed; the text begins with it."""


class Files:
    """Lists locations and reads from them. One for a task; `storage` has options of fsspec by scheme."""

    def __init__(self, storage: Mapping[str, Mapping[str, Any]]) -> None:
        self._storage = storage
        self._opened: dict[tuple[str, str], Any] = {}

    def list(self, location: str) -> list[File]:
        """Data files below a location, in the order of their paths; a location that is not there raises NotListed.

        Names that begin with `_` or `.` are not data, as in Hive and Spark.
        """
        try:
            place = parse_place(location)
            found = _local(place.path or "/") if place.is_local else self._remote(place)
            return sorted(found, key=lambda file: file.path)
        except FileSystemError as error:
            raise NotListed(f"{location} is not a location: {error}") from error
        except OSError as error:
            raise NotListed(f"{location} cannot be listed: {error.strerror or error}") from error

    def reader(self, location: str, file: File) -> Read:
        """Reads a file below a location."""
        place = parse_place(location)
        return local_reader(file.path) if place.is_local else file_reader(self._system(place), file.path)

    def _remote(self, place: Place) -> Iterator[File]:
        system = self._system(place)
        top = str(system._strip_protocol(str(place))).rstrip("/")
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
                yield File(path, int(details.get("size") or 0), version)

    def _system(self, place: Place) -> Any:
        known = self._opened.get(place.file_system)
        if known is None:
            name = _FSSPEC_NAMES.get(place.scheme, place.scheme)
            options = {"use_listings_cache": False, **self._storage.get(place.scheme, {})}
            try:
                known, _ = fsspec.url_to_fs(f"{name}://{place.authority}/", **options)
            except (ImportError, ValueError) as error:
                raise OSError(f"its file system is not known: {error}") from error
            self._opened[place.file_system] = known
        return known


def _local(folder: str) -> Iterator[File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_HIDDEN):
                continue
            if entry.is_dir():
                yield from _local(entry.path)
            else:
                status = entry.stat()
                yield File(entry.path, status.st_size, str(status.st_mtime_ns))


def digest(files: list[File], columns: str) -> str:
    """Of what statistics are taken: each file, and the table's columns."""
    found = blake2b(columns.encode(), digest_size=12)
    for file in files:
        found.update(f"\n{file.path}\n{file.size}\n{file.version}".encode(errors="surrogateescape"))
    return found.hexdigest()


def format_of(serde: str) -> str:
    """What a table's files are: `parquet`, `orc`, or "" for what has no footers."""
    name = serde.lower().rpartition(".")[2]
    return next((each for each in ("parquet", "orc") if name.startswith(each)), "")
