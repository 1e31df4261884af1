"""A snapshot's statement about itself, and the folder that it is written to."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import msgspec
import pyarrow.parquet

from hms_gateway.pipeline.errors import StateFailed, UsageRefused
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.storage import StorageOptions

# Readers of Parquet leave out names with an underscore.
FILE: Final = "_manifest.json"
FORMAT: Final = 1


class KindFile(msgspec.Struct, frozen=True):
    """A Parquet file, by its name in the folder of the snapshot."""

    name: str
    rows: int


class KindPart(msgspec.Struct, frozen=True):
    """The objects of one kind; the digest does not depend on their order or on how they are cut into files."""

    rows: int
    digest: str
    files: tuple[KindFile, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Written last: a folder without it is not a snapshot.

    event    the newest event that the snapshot has; every change up to it is in, and none after it
    rounds   how often something was read again
    digest   of everything: equal snapshots have the same
    """

    format: int = FORMAT
    event: int
    metastore: str
    version: str
    began: str
    taken: str
    run: str
    rounds: int
    only: tuple[str, ...]
    digest: str
    kinds: Mapping[str, KindPart]

    @classmethod
    def find(cls, folder: State) -> Self | None:
        """None where there is none. Raises StateFailed, UsageRefused."""
        said: Any = folder.read_json(FILE)
        if said is None:
            return None
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            text = f"snapshot {folder.location} has format {said.get('format') if isinstance(said, dict) else None}"
            raise UsageRefused(text, f"this version reads format {FORMAT}; use the version that wrote it")
        return msgspec.convert(said, cls)

    @classmethod
    def of(cls, folder: State) -> Self:
        """The manifest of a snapshot whose files all have the rows that it names. Raises StateFailed, UsageRefused."""
        manifest = cls.find(folder)
        if manifest is None:
            raise UsageRefused(f"{folder.location} is not a snapshot: it has no {FILE}", "take it again")
        for part in manifest.kinds.values():
            for file in part.files:
                _check(folder, file)
        return manifest

    def write(self, folder: State) -> None:
        folder.write_json(FILE, self)


def _check(folder: State, file: KindFile) -> None:
    rows = _rows(folder, file)
    if rows != file.rows:
        raise UsageRefused(f"file {file.name} of snapshot {folder.location} has {rows} rows; it had {file.rows}")


def _rows(folder: State, file: KindFile) -> int:
    with folder.input(file.name) as opened:
        try:
            rows: int = pyarrow.parquet.ParquetFile(opened).metadata.num_rows
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise UsageRefused(f"file {file.name} of snapshot {folder.location} is damaged: {error}") from error
    return rows


# The folder of a snapshot: it is written beside the folder until it is whole, then gets its name.


@dataclass(frozen=True)
class SnapshotFolder:
    """`target` is the snapshot, `partial` what is written; elsewhere than on a local disk both are one folder, and the
    manifest makes it a snapshot.
    """

    target: State
    partial: State

    @classmethod
    def of(cls, path: str, storage: StorageOptions) -> "SnapshotFolder":
        target = State.of(path, storage)
        if not target.is_local:
            return cls(target, target)
        parent, _, name = target.location.rpartition("/")
        return cls(target, State(f"{parent}/.{name}.partial"))

    def completed(self, run: str) -> Manifest | None:
        """The snapshot, if this run has taken it. Raises StateFailed, UsageRefused."""
        manifest = Manifest.find(self.target)
        return manifest if manifest is not None and manifest.run == run else None

    def check_free(self, run: str) -> None:
        """Raises UsageRefused where something else is."""
        if self.completed(run) is not None:
            return
        path = self.target.location
        if (manifest := Manifest.find(self.target)) is not None:
            raise UsageRefused(f"{path} is the snapshot of event {manifest.event}", "give the path of a new folder")
        # What a run that was killed has left in a store without renaming.
        own = [] if self.target.is_local else [name for name in self.target.names("") if name.startswith("kind=")]
        if set(self.target.names("")) - set(own):
            raise UsageRefused(f"{path} is not empty", "give the path of a new folder")

    def clear(self) -> None:
        """Remove what a run that was killed has written. Raises StateFailed."""
        for name in self.partial.names(""):
            self.partial.remove(name)

    def publish(self, manifest: Manifest) -> None:
        """From now on it is there, whole. Raises StateFailed, UsageRefused."""
        manifest.write(self.partial)
        Manifest.of(self.partial)
        if self.partial is self.target:
            return
        try:
            os.rename(self.partial.location, self.target.location)
        except OSError as error:
            raise StateFailed(f"snapshot {self.target.location} cannot be named: {error.strerror}") from error
