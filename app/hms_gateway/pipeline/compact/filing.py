"""Files of a table's directories: listed, read, written so that they last, and removed."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from hms_gateway.pipeline.listing import ListingProblem, LocalFiles, RemoteFiles, files_of, is_hidden
from hms_gateway.pipeline.storage import Storage
from hms_gateway.storage.files.handles import LISTING


class DataFile(NamedTuple):
    """A file that a table's readers see."""

    name: str
    bytes: int
    modified_ms: int


def fingerprint(files: Sequence[DataFile]) -> str:
    """Another one when a file comes, goes, or is written again."""
    text = "\n".join(f"{file.bytes} {file.modified_ms} {file.name}" for file in sorted(files))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class NotPlain(Exception):
    """What a directory holds cannot be compacted; the text says what and why."""


@dataclass(frozen=True)
class Filing:
    """The file system of a location. Methods raise ListingProblem and OSError."""

    files: LocalFiles | RemoteFiles

    @classmethod
    def of(cls, location: str, storage: Storage) -> "Filing":
        """Raises OptionError."""
        return cls(files_of(location, storage))

    def data_files(self, path: str) -> list[DataFile]:
        """Sorted by name. Raises NotPlain where directories are among them."""
        found = []
        for entry in self.files.scan(path):
            if is_hidden(entry.name, is_directory=entry.is_directory):
                continue
            if entry.is_directory:
                raise NotPlain(f"has the directory {entry.name} in it")
            found.append(DataFile(entry.name, entry.bytes, entry.modified_ms))
        return sorted(found)

    def names(self, path: str) -> list[str]:
        """All names in a directory; none where it is not there."""
        with contextlib.suppress(ListingProblem):
            return sorted(entry.name for entry in self.files.scan(path))
        return []

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        with self._opened(path, "rb", os.O_RDONLY) as file:
            yield file

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """A new file; it is on the disk when the body has ended."""
        if isinstance(self.files, LocalFiles):
            self.files.make(os.path.dirname(path))
        with self._opened(path, "wb", os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
            yield file
            if isinstance(self.files, LocalFiles):
                file.flush()
                os.fsync(file.fileno())

    def _opened(self, path: str, mode: str, flags: int) -> Any:
        if isinstance(self.files, LocalFiles):
            return open(self.files.open_file(path, flags), mode)
        return self.files.system.open(self.files.checked(path), mode)

    def settle(self, path: str) -> None:
        """The names in a new directory are on the disk, and its own name is."""
        if isinstance(self.files, LocalFiles):
            for folder in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
                with self.files.open(folder, LISTING) as handle:
                    os.fsync(handle.number)

    def remove_file(self, path: str) -> None:
        """One that is gone is fine."""
        with contextlib.suppress(FileNotFoundError):
            if isinstance(self.files, RemoteFiles):
                self.files.system.rm_file(self.files.checked(path))
                return
            with self.files.around(path) as (folder, name):
                os.unlink(name, dir_fd=folder.number)

    def remove_if_empty(self, path: str) -> None:
        """A directory; object stores have none."""
        with contextlib.suppress(OSError):
            if isinstance(self.files, RemoteFiles):
                self.files.system.rmdir(self.files.checked(path))
                return
            with self.files.around(path) as (folder, name):
                os.rmdir(name, dir_fd=folder.number)
