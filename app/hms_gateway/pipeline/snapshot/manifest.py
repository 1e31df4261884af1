"""What a snapshot says about itself: the event it is of, what it has, and which files are its own."""

from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec
import pyarrow.parquet

from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.pipeline.jobs.state import State

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
        """Of a snapshot whose files are there, all with the rows that it names. Raises StateFailed, UsageRefused."""
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
