"""Files of a table's directories: listed, read, written so that they last, and removed."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from hms_gateway.pipeline.listing import Files, ListingProblem, files_of, is_hidden
from hms_gateway.pipeline.storage import Storage, open_files, scheme_of


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

    files: Files
    remote: Any

    @classmethod
    def of(cls, location: str, storage: Storage) -> "Filing":
        """Raises OptionError."""
        scheme = scheme_of(location)
        return cls(files_of(location, storage), open_files(scheme, storage) if scheme else None)

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
        with open(path, "rb") if self.remote is None else self.remote.open(path, "rb") as file:
            yield file

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """A new file; it is on the disk when the body has ended."""
        if self.remote is not None:
            with self.remote.open(path, "wb") as file:
                yield file
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def settle(self, path: str) -> None:
        """The names in a new directory are on the disk, and its own name is."""
        if self.remote is not None:
            return
        for folder in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove_file(self, path: str) -> None:
        """One that is gone is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path) if self.remote is None else self.remote.rm_file(path)

    def remove_if_empty(self, path: str) -> None:
        """A directory; object stores have none."""
        with contextlib.suppress(OSError):
            os.rmdir(path) if self.remote is None else self.remote.rmdir(path)

    def remove_tree(self, path: str) -> None:
        """A directory that this job has made, with everything in it."""
        for entry in list(self.files.scan(path)):
            inner = f"{path}/{entry.name}"
            self.remove_tree(inner) if entry.is_directory else self.remove_file(inner)
        self.remove_if_empty(path)
