"""Directories in everything fsspec speaks but disks and S3: HDFS, the object stores of Azure and Google, memory."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from glob import has_magic
from importlib.util import find_spec
from typing import Any, Final, Self

import fsspec

from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.metastore.vocabulary.locations import file_system_of

# By the names of our extras, which are fsspec's of the schemes.
_PACKAGES: Final = {"s3": "s3fs", "abfs": "adlfs", "gs": "gcsfs", "hdfs": "pyarrow"}


def missing_extra(scheme: str) -> str | None:
    """The extra that a scheme needs and that is not installed."""
    extra = file_system_of(scheme)
    return extra if extra in _PACKAGES and find_spec(_PACKAGES[extra]) is None else None


def is_pattern(scheme: str, path: str) -> bool:
    """True if fsspec, asked to remove or move this path, does so with all that fit it as a pattern."""
    return scheme != "hdfs" and has_magic(path)


class UnknownFileSystem(Exception):
    """No library for this scheme is installed."""


class RemoteDirectories:
    """The `Backend` for one root. Raises whatever the library raises, and UnknownFileSystem.

    In object stores a directory exists as long as something lies in it, so making one mostly changes nothing and who
    made it cannot be known; `make` then says "not this call", which keeps it from being deleted by mistake.
    """

    def __init__(self, scheme: str, authority: str, root: str, options: Mapping[str, Any]) -> None:
        """`root` is a path that begins with a slash and ends with none."""
        self._base = f"{file_system_of(scheme)}://{authority}"
        self._root = root
        self._scheme = scheme
        try:
            # A cached listing would hide what other servers do.
            self._files, _ = fsspec.url_to_fs(
                f"{self._base}/", **{"use_listings_cache": False, "skip_instance_cache": True, **options}
            )
        except (ImportError, ValueError) as error:
            raise UnknownFileSystem(scheme) from error

    def is_directory(self, path: str) -> bool:
        return bool(self._files.isdir(self._full(path)))

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._full(path)))

    def make(self, path: str) -> bool:
        full = self._full(path)
        if self._files.isdir(full):
            return False
        if self._files.exists(full):
            raise FileExistsError(path)
        self._files.makedirs(full, exist_ok=True)
        return bool(self._files.isdir(full))

    def maker(self) -> Callable[[str], bool]:
        return self.make

    def delete(self, path: str) -> None:
        full = self._without_pattern(path)
        if self._files.exists(full):
            self._files.rm(full, recursive=True)

    def delete_if_empty(self, path: str) -> bool:
        full = self._full(path)
        if not self._files.isdir(full) or self._files.ls(full, detail=False):
            return False
        self._files.rmdir(full)
        return True

    def move(self, source: str, target_root: Self, target: str) -> None:
        full_target = target_root._without_pattern(target)
        if self._files.exists(full_target):
            raise FileExistsError(f"{target} exists already")
        self._files.makedirs(self._files._parent(full_target), exist_ok=True)
        self._files.mv(self._without_pattern(source), full_target, recursive=True)

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]:
        full = self._full(path).rstrip("/")
        for name, details in self._files.find(full, detail=True).items():
            yield name[len(full) :].lstrip("/"), int(details.get("size") or 0)

    def read(self, path: str, bytes_max: int) -> bytes:
        return bytes(self._files.cat_file(self._full(path), start=0, end=bytes_max + 1))

    def write(self, path: str, content: bytes) -> None:
        full = self._full(path)
        self._files.makedirs(self._files._parent(full), exist_ok=True)
        self._files.pipe_file(full, content)

    def delete_file(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._files.rm_file(self._full(path))

    def _without_pattern(self, path: str) -> str:
        full = self._full(path)
        if is_pattern(self._scheme, full):
            raise FileSystemError(
                f"{path} has one of '*?[' in it, which this file system's library takes for a pattern"
            )
        return full

    def _full(self, path: str) -> str:
        return str(self._files._strip_protocol(f"{self._base}{self._root}/{path}"))
