"""The state folder, on a local disk or anything fsspec speaks: small files that appear whole, and Parquet files."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import fsspec
import msgspec

from hms_gateway.pipeline.errors import JobFailed, StateFailed
from hms_gateway.pipeline.storage import StorageOptions, open_files, scheme_of
from hms_gateway.storage.files.places import options_of

_HINT = "make room or give another --state; the run can be resumed"


@dataclass(frozen=True)
class State:
    """A folder; names of files in it are relative and have slashes. Picklable. Methods raise StateFailed."""

    location: str
    storage: StorageOptions = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, location: str, storage: StorageOptions) -> "State":
        """A local folder becomes absolute: executors have another working directory."""
        scheme = scheme_of(location)
        if not scheme:
            return cls(str(Path(location.removeprefix("file:")).absolute()))
        return cls(location.rstrip("/"), {scheme: options_of(scheme, storage)})

    @property
    def is_local(self) -> bool:
        return "://" not in self.location

    def path(self, name: str) -> str:
        """The whole path or URL of a file."""
        return f"{self.location}/{name}"

    def write(self, name: str, content: bytes) -> None:
        """A file appears whole or not at all, and replaces the one that was there."""
        with self._translated(name, "written"):
            if self.is_local:
                self._write_local(self.path(name), content)
            else:
                self._files.pipe_file(self.path(name), content)

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, msgspec.json.format(msgspec.json.encode(value), indent=1))

    def read(self, name: str) -> bytes | None:
        """None where there is no such file."""
        with self._translated(name, "read"):
            try:
                content: bytes = self._files.cat_file(self.path(name))
                return content
            except FileNotFoundError:
                return None

    def read_json(self, name: str) -> Any:
        """None where there is no such file, or it was cut off by a power failure."""
        try:
            return msgspec.json.decode(self.read(name) or b"null")
        except msgspec.DecodeError:
            return None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, without those that are still being written; empty where there is none."""
        with self._translated(folder, "listed"):
            try:
                found = self._files.ls(self.path(folder), detail=False)
            except FileNotFoundError:
                return []
        names = (str(path).rstrip("/").rpartition("/")[2] for path in found)
        return sorted(name for name in names if not name.startswith("."))

    @contextlib.contextmanager
    def output(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to in pieces. It may be cut off: a name counts only once another file names it."""
        with self._translated(name, "written"):
            if self.is_local:
                os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with self._files.open(self.path(name), "wb") as file:
                yield file

    @contextlib.contextmanager
    def input(self, name: str) -> Iterator[IO[bytes]]:
        with self._translated(name, "read"), self._files.open(self.path(name), "rb") as file:
            yield file

    def remove(self, name: str) -> None:
        """A file or folder with everything in it; absent is fine."""
        with self._translated(name, "removed"), contextlib.suppress(FileNotFoundError):
            self._files.rm(self.path(name), recursive=True)

    def _write_local(self, path: str, content: bytes) -> None:
        folder, _, last = path.rpartition("/")
        temporary = f"{folder}/.{last}.{uuid.uuid4().hex}"
        os.makedirs(folder, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    @property
    def _files(self) -> Any:
        return fsspec.filesystem("file") if self.is_local else open_files(scheme_of(self.location), self.storage)

    @contextlib.contextmanager
    def _translated(self, name: str, done: str) -> Iterator[None]:
        try:
            yield
        except JobFailed:
            raise
        except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StateFailed(f"state file {self.path(name)} cannot be {done}: {said}", _HINT) from error
