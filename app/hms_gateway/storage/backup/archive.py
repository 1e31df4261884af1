"""Backups as files of one folder, without a database.

A backup is a zip file. Its member `inventory.json` lists the rows of each table as chunks of lines of JSON, named by
their SHA-256. A chunk that an earlier file of the folder has is not written again: a later backup is an increment.
Which rows a chunk has depends on the rows only, so rows that change elsewhere leave it as it is.
"""

import errno
import fcntl
import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.metastore.ports.store import StoreError

FORMAT: Final = 1
_INVENTORY: Final = "inventory.json"
# A chunk ends behind every so manieth row, by its checksum, or where it would be too long.
_ROWS: Final = 1_024
_ROWS_MAX: Final = 8 * _ROWS
_CHUNK_BYTES: Final = 4 * 1024 * 1024
# A folder may have more files than a process may open.
_OPEN_MAX: Final = 64
# What zipfile raises about files that are cut off or changed.
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, NotImplementedError, RuntimeError)


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So many rows, and the file of the folder that has them."""

    sha256: str
    rows: int
    file: str


class TableRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows of a table in the order of its primary key."""

    columns: list[str]
    chunks: list[Chunk]

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(chunk.rows for chunk in self.chunks)


class Inventory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a catalog at its event `event_id`. `files` are others that were asked for, with their SHA-256."""

    format: int
    program: str
    revision: str
    event_id: int
    time_ms: int
    tables: dict[str, TableRows]
    files: dict[str, str]

    @property
    def time(self) -> str:
        """The time in UTC, to the millisecond."""
        return datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")[:23] + "Z"

    @property
    def order(self) -> tuple[int, int]:
        """Time and event, greater for the newer of two states."""
        return self.time_ms, self.event_id

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        return self.tables[table].count if table in self.tables else 0


class Backup(NamedTuple):
    """A file of the folder."""

    name: str
    inventory: Inventory


class Point(NamedTuple):
    """The newest state that is asked for: by its event, by its time, or any."""

    event_id: int | None = None
    time_ms: int | None = None

    def includes(self, inventory: Inventory) -> bool:
        """True if the state is no later than the point."""
        return (self.event_id is None or inventory.event_id <= self.event_id) and (
            self.time_ms is None or inventory.time_ms <= self.time_ms
        )

    def __str__(self) -> str:
        if self.event_id is not None:
            return f"at event {self.event_id} or before"
        return "at that time or before" if self.time_ms is not None else "at all"


class BackupFolder:
    """The backups in `path`. Raises StoreError for what cannot be read, written or found there.

    `unreadable` has a text for each file that `backups` passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: list[str] = []
        # The one that was read last is the last.
        self._open: dict[str, zipfile.ZipFile] = {}

    def __enter__(self) -> "BackupFolder":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def backups(self) -> Iterator[Backup]:
        """All backups that can be read, one at a time, in the order of their names."""
        if not self.path.is_dir():
            raise StoreError(f"folder {self.path} not found; name the folder that hms-gateway backup wrote to")
        self.unreadable = []
        for name in sorted(path.name for path in self.path.glob("*.zip")):
            try:
                yield Backup(name, self._inventory(name))
            except StoreError as error:
                self.unreadable.append(str(error))

    def newest(self) -> Backup | None:
        """The newest backup; None where there is none that can be read."""
        names = sorted(path.name for path in self.path.glob("*.zip"))
        try:
            return Backup(names[-1], self._inventory(names[-1])) if names else None
        except StoreError:
            return None

    def choose(self, point: Point) -> Backup:
        """The newest backup that the point includes.

        Raises StoreError where later ones cannot be read, unless the point says that an earlier one is wanted.
        """
        first: Backup | None = None
        chosen: Backup | None = None
        unread_before = 0
        for backup in self.backups():
            first = first or backup
            if point.includes(backup.inventory) and (
                chosen is None or chosen.inventory.order <= backup.inventory.order
            ):
                chosen, unread_before = backup, len(self.unreadable)
        if chosen is None:
            text = f"; the first one is of event {first.inventory.event_id}, {first.inventory.time}" if first else ""
            problem = "".join(f"; {one}" for one in self.unreadable[-1:])
            raise StoreError(f"folder {self.path} has no backup {point}{text}{problem}")
        if point == Point() and len(self.unreadable) > unread_before:
            advice = f"--event {chosen.inventory.event_id} restores the newest backup that can be read"
            raise StoreError(f"{self.unreadable[-1]}; {advice}")
        return chosen

    def chunk(self, chunk: Chunk) -> bytes:
        """The lines of a chunk, as they were written."""
        return self._member(chunk.file, f"chunks/{chunk.sha256}", chunk.sha256)

    def has(self, chunk: Chunk) -> bool:
        """True if the chunk can be read, and is what was written."""
        try:
            self.chunk(chunk)
        except StoreError:
            return False
        return True

    def file(self, backup: Backup, name: str) -> bytes:
        """One of the other files."""
        return self._member(backup.name, f"files/{name}", backup.inventory.files[name])

    def verify(self, backup: Backup) -> None:
        """Read all of a backup. Raises StoreError for the first part that is damaged or gone."""
        for table in backup.inventory.tables.values():
            for chunk in table.chunks:
                self.chunk(chunk)
        for name in backup.inventory.files:
            self.file(backup, name)

    def _member(self, file: str, name: str, sha256: str) -> bytes:
        content = self._read(file, name)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"{self.path / file} is damaged: {name} is not what was written")
        return content

    def _inventory(self, name: str) -> Inventory:
        content = self._read(name, _INVENTORY)
        try:
            known = msgspec.json.decode(content, type=_AnyInventory)
            if known.format != FORMAT:
                raise StoreError(
                    f"{self.path / name} has format {known.format}, this program knows {FORMAT}: use a newer program"
                )
            return msgspec.json.decode(content, type=Inventory)
        except msgspec.DecodeError as error:
            raise StoreError(f"{self.path / name} is damaged: {error}") from error

    def _read(self, file: str, name: str) -> bytes:
        try:
            opened = self._open.pop(file, None)
            if opened is None:
                if os.path.basename(file) != file:
                    raise StoreError(f"{self.path} has a backup that names the file {file!r} elsewhere")
                if len(self._open) == _OPEN_MAX:
                    self._open.pop(next(iter(self._open))).close()
                opened = zipfile.ZipFile(self.path / file)
            self._open[file] = opened
            return opened.read(name)
        except FileNotFoundError as error:
            raise StoreError(f"{self.path / file} is gone; later backups of the folder need it") from error
        except OSError as error:
            raise StoreError(f"{self.path / file} cannot be read: {error.strerror or error}") from error
        except _DAMAGE as error:
            raise StoreError(f"{self.path / file} is damaged or cut off: {error}") from error


class _AnyInventory(msgspec.Struct):
    format: int


class BackupWriter:
    """Writes one backup, which is in the folder when `finish` has ended, or not at all.

    Chunks that `known` has, by their SHA-256, stay in the files that have them. Raises StoreError.
    """

    def __init__(self, folder: BackupFolder, name: str, known: Mapping[str, Chunk]) -> None:
        self._folder = folder
        self._target = folder.path / name
        self._known = dict(known)
        self.written = 0
        try:
            folder.path.mkdir(mode=0o700, exist_ok=True)
            _remove_left(folder.path)
            self._descriptor, temporary = _locked_file(folder.path, f".{name}-")
        except OSError as error:
            raise StoreError(f"{folder.path} cannot be written: {error.strerror}") from error
        self._temporary = Path(temporary)
        self._zip = zipfile.ZipFile(os.fdopen(self._descriptor, "wb", closefd=False), "w", zipfile.ZIP_DEFLATED)

    def __enter__(self) -> "BackupWriter":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it is closed already, or not wanted
            self._zip.close()
        os.close(self._descriptor)
        self._temporary.unlink(missing_ok=True)

    def add_rows(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> TableRows:
        """Add the rows of a table."""
        return TableRows(list(columns), [self._chunk(lines, count) for lines, count in chunks_of(rows)])

    def add_file(self, name: str, content: bytes) -> str:
        """Add another file; returns its SHA-256."""
        self._write(f"files/{name}", content)
        return hashlib.sha256(content).hexdigest()

    def finish(self, inventory: Inventory, owner: os.stat_result | None) -> int:
        """Add the inventory and give the file its name. Returns its size in bytes.

        Its group may read it where that of `owner` may read the database, unless it has other files; others may not.
        """
        self._write(_INVENTORY, msgspec.json.encode(inventory))
        try:
            self._zip.close()
            if owner is not None:
                if os.geteuid() == 0:
                    os.fchown(self._descriptor, owner.st_uid, owner.st_gid)
                if not inventory.files:
                    os.fchmod(self._descriptor, owner.st_mode & 0o660)
            os.fsync(self._descriptor)
            if self._target.exists():
                raise StoreError(f"{self._target} exists already; another backup was made at the same time")
            os.replace(self._temporary, self._target)
            _sync(self._folder.path)
            return self._target.stat().st_size
        except OSError as error:
            raise StoreError(f"{self._target} cannot be written: {error.strerror}") from error

    def _chunk(self, lines: bytes, count: int) -> Chunk:
        sha256 = hashlib.sha256(lines).hexdigest()
        known = self._known.get(sha256)
        if known is None or (known.file != self._target.name and not self._folder.has(known)):
            self._write(f"chunks/{sha256}", lines)
            self.written += 1
            known = self._known[sha256] = Chunk(sha256, count, self._target.name)
        return known

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._zip.writestr(name, content, compresslevel=1)
        except OSError as error:
            raise StoreError(f"{self._target} cannot be written: {error.strerror}") from error


def _locked_file(folder: Path, prefix: str) -> tuple[int, str]:
    """A new file, locked where the file system has locks: `_remove_left` leaves it alone. Raises OSError."""
    while True:
        descriptor, path = tempfile.mkstemp(dir=folder, prefix=prefix)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, path
        os.close(descriptor)  # another backup has deleted it before it was locked


def _remove_left(folder: Path) -> None:
    """Delete files of killed backups: nobody holds a lock on them."""
    for left in folder.glob(".hms-*.zip-*"):
        with suppress(OSError), left.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of file systems that have nothing to do for it
            raise
    finally:
        os.close(descriptor)


def backup_name(time_ms: int, event_id: int) -> str:
    """The name of a file, by which files are in the order of time."""
    stamp = datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S")
    return f"hms-{stamp}.{time_ms % 1000:03}Z-{event_id}.zip"


def chunks_of(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[bytes, int]]:
    """Rows as lines of JSON, many at a time, with their number."""
    encode = msgspec.json.Encoder().encode
    lines: list[bytes] = []
    size = 0
    for row in rows:
        line = encode(tuple(row))
        lines.append(line)
        size += len(line)
        if zlib.crc32(line) % _ROWS == 0 or len(lines) == _ROWS_MAX or size >= _CHUNK_BYTES:
            yield b"\n".join(lines), len(lines)
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines), len(lines)


def sums_of(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, int]]:
    """The SHA-256 of each chunk of rows, with their number."""
    for lines, count in chunks_of(rows):
        yield hashlib.sha256(lines).hexdigest(), count


def rows_of(lines: bytes) -> list[list[Any]]:
    """The reverse of `chunks_of`, where binary values are texts in base64. Raises StoreError."""
    try:
        return msgspec.json.Decoder(list[Any]).decode_lines(lines)
    except msgspec.DecodeError as error:
        raise StoreError(f"a chunk of the backup is no list of rows: {error}") from error
