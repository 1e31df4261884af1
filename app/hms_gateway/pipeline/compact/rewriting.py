"""Writes the files of a directory to another one as fewer files, and reads both again before it says that it has."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from types import ModuleType
from typing import Any, Final, NamedTuple

from hms_gateway.pipeline.compact import orc_files, parquet_files, text_files
from hms_gateway.pipeline.compact.rules import ORC, PARQUET, TEXT, DataFile, NotPlain, bins
from hms_gateway.pipeline.storage import Files

_COPY_BYTES: Final = 8 << 20
_MODULES: Final[dict[str, ModuleType]] = {PARQUET: parquet_files, ORC: orc_files, TEXT: text_files}
_ENDINGS: Final = {PARQUET: ".parquet", ORC: ".orc", TEXT: ".txt"}


class RewrittenFile(NamedTuple):
    files: int
    bytes: int
    rows: int


class Rewriting(NamedTuple):
    """From one directory to another; `alive` is called between two files."""

    filing: Files
    format: str
    source: str
    target: str
    run: str
    target_bytes: int
    alive: Callable[[], None]

    def write(self, files: Sequence[DataFile]) -> RewrittenFile:
        """Raises NotPlain for what cannot be kept as it is, OSError, ListingProblem."""
        rows, names = 0, []
        for number, some in enumerate(self._bins(files)):
            name = f"part-{number:05}-{self.run}{_ENDINGS[self.format]}"
            rows += self._one([f"{self.source}/{file.name}" for file in some], f"{self.target}/{name}")
            names.append(name)
            self.alive()
        self.filing.settle(self.target)
        sizes = [self.filing.size(f"{self.target}/{name}") for name in names]
        return RewrittenFile(len(names), sum(sizes), rows)

    def _bins(self, files: Sequence[DataFile]) -> list[list[DataFile]]:
        """Only files of one kind become one."""
        of_kind: dict[bytes, list[DataFile]] = {}
        for file in files:
            if file.bytes:
                of_kind.setdefault(self._format.kind_of(self.filing, f"{self.source}/{file.name}"), []).append(file)
        found = [one for some in of_kind.values() for one in bins(some, self.target_bytes)]
        if len(found) >= len(files):
            raise NotPlain("has files of different columns or writers, which cannot become fewer")
        return found

    @property
    def _format(self) -> Any:
        return _MODULES[self.format]

    def _one(self, paths: list[str], target: str) -> int:
        """The number of rows."""
        if len(paths) == 1:
            self._copy(paths[0], target)
            rows: int = self._format.content(self.filing, [target]).rows
            return rows
        wanted = self._format.merge(self.filing, paths, target)
        found = self._format.content(self.filing, [target])
        if (found.rows, found.digest) != (wanted.rows, wanted.digest):
            raise NotPlain(f"has rows that pyarrow writes otherwise than it reads them ({found.rows} of {wanted.rows})")
        if self.format == PARQUET and parquet_files.has_times_to_compare(self.filing, paths[0]):
            self._compare_times(paths, target)
        return int(found.rows)

    def _compare_times(self, paths: list[str], target: str) -> None:
        before, after = (parquet_files.content(self.filing, some, "us") for some in (paths, [target]))
        if before.digest != after.digest:
            raise NotPlain("has INT96 timestamps before 1677 or after 2262, which pyarrow cannot write")

    def _copy(self, source: str, target: str) -> None:
        before = sha256()
        with self.filing.reading(source) as old, self.filing.writing(target) as new:
            while piece := old.read(_COPY_BYTES):
                before.update(piece)
                new.write(piece)
        after = sha256()
        with self.filing.reading(target) as copied:
            while piece := copied.read(_COPY_BYTES):
                after.update(piece)
        if before.digest() != after.digest():
            raise OSError(f"{target} is not what was written to it")
