"""Metadata files: read once, since none is ever changed, and written for a commit.

The last one of each table or view stays in memory; the ones before it are of no use.
"""

import gzip
import re
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from hms_gateway.iceberg.errors import IcebergError, commit_failed, invalid
from hms_gateway.iceberg.json_values import Json, decoded, decoded_bytes
from hms_gateway.iceberg.manifest_lists import LIST_BYTES_MAX, Manifest, read_manifests
from hms_gateway.metastore.ports.store import FileSystemAway, FileSystemError
from hms_gateway.rpc.memory import DecodedMemory
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound
from hms_gateway.storage.files.directories import Directories

_KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
# Objects of a decoded file take several times the bytes of their text.
_BYTES_PER_BYTE: Final = 6
_GZIP: Final = b"\x1f\x8b"
# Longer files are read one at a time.
_SHORT_BYTES: Final = 16 * 1024 * 1024
# An object store takes thousands of requests a second, each of some tens of milliseconds.
_WRITES_AT_ONCE: Final = 32
_METADATA_FOLDER: Final = "write.metadata.path"
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
METADATA_NAME: Final = re.compile(rf"\d{{5,}}-{_UUID}(?:\.gz)?\.metadata\.json")
"""Names that `next_location` makes."""
LIST_NAME: Final = re.compile(rf"snap-(\d+)-{_UUID}\.avro")
"""Names that `list_location` makes; clients put the number of their attempt before the last part."""
StoredName: TypeAlias = tuple[str, str]
"""The key of a database and the name of a table or view, as rows have them."""


class MetadataFile(msgspec.Struct, frozen=True):
    """A file of metadata: its place, its JSON text, and the value, which nobody changes."""

    location: str
    text: bytes
    value: Json


class MetadataFiles:
    """Reads and writes metadata files below the roots. Safe to use from several threads."""

    def __init__(self, files: Directories, limits: Limits, memory: DecodedMemory | None = None) -> None:
        """`memory` counts what calls read; by default that of the limits."""
        self._files = files
        self._limits = limits
        self._memory = memory or DecodedMemory(limits)
        own = Bound("iceberg_decoded_bytes_max", limits.iceberg_decoded_bytes_max)
        self._decoded_max = min(own, self._memory.most, key=lambda bound: bound.value)
        self._one_long = threading.Lock()
        self._lock = threading.Lock()
        self._kept: OrderedDict[StoredName, MetadataFile] = OrderedDict()
        self._kept_bytes = 0

    def of(self, name: StoredName, location: str) -> MetadataFile:
        """The file that the row of this name points to, kept in place of the one before it. Raises as `read`."""
        with self._lock:
            known = self._kept.get(name)
            if known is not None and known.location == location:
                self._kept.move_to_end(name)
                return known
        found = self.read(location)
        self.keep(name, found)
        return found

    def read(self, location: str) -> MetadataFile:
        """Raises IcebergError for a file that is missing, outside of the roots, too long, or no metadata.

        Raises Unavailable while others' files take the memory that it needs.
        """
        text = self._text(location)
        try:
            value: Any = decoded(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise invalid(f"the metadata file {location} is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise invalid(f"the metadata file {location} is no JSON object")
        return MetadataFile(location, text, value)

    def _text(self, location: str) -> bytes:
        """The text of a file, counted for the call. Raises IcebergError, Unavailable."""
        limit = self._limits.iceberg_file_bytes_max
        text = self._whole(location, min(_SHORT_BYTES, limit))
        if text is not None:
            self._hold(text, location)
            return text
        # Of what is not counted yet there is one text at most.
        with self._one_long:
            text = self._whole(location, limit)
            if text is None:
                raise _too_long(f"the metadata file {location}", limit)
            self._hold(text, location)
        return text

    def _hold(self, text: bytes, location: str) -> None:
        size = self._check_size(text, f"the metadata file {location}")
        # A call has one state of a table at a time.
        self._memory.hold(location.rpartition("/")[0], size)

    def write(self, values: Sequence[tuple[str, Json]], lists: Sequence[tuple[str, bytes]] = ()) -> list[MetadataFile]:
        """Write metadata and manifest lists to their places at once, all or none. Raises IcebergError."""
        files = [self._new(*one) for one in values]
        contents = [*lists, *((file.location, _packed(file)) for file in files)]
        try:
            self._write_all(contents)
        except FileSystemError as error:
            for location, _ in contents:
                with suppress(FileSystemError):
                    self._files.delete_file(location)
            raise _not_written(error) from error
        return files

    def _new(self, location: str, value: Json) -> MetadataFile:
        text = msgspec.json.encode(value)
        self._check_size(text, "the new metadata")
        return MetadataFile(location, text, value)

    def _write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        if len(contents) == 1:
            self._files.write_file(*contents[0])
            return
        with ThreadPoolExecutor(min(len(contents), _WRITES_AT_ONCE), thread_name_prefix="metadata") as threads:
            for each in [threads.submit(self._files.write_file, *one) for one in contents]:
                each.result()

    def manifests(self, location: str) -> list[Manifest]:
        """The entries of a manifest list, counted for the call. Raises IcebergError, Unavailable."""
        content = self._content(location, "the manifest list", LIST_BYTES_MAX)
        if len(content) > LIST_BYTES_MAX:
            raise invalid(f"the manifest list {location} is longer than {LIST_BYTES_MAX} bytes")
        return read_manifests(content, partial(self._memory.hold, location))

    def _content(self, location: str, what: str, bytes_max: int) -> bytes:
        """The content, or a byte more than `bytes_max` of it.

        Raises IcebergError, 404 only for a file that is not there or may not be read.
        """
        try:
            return self._files.read_file(location, bytes_max)
        except FileSystemAway as error:
            raise IcebergError("ServiceUnavailableException", f"{what} cannot be read now: {error}") from error
        except FileSystemError as error:
            raise IcebergError("NotFoundException", f"{what} cannot be read: {error}") from error

    def _check_size(self, text: bytes, what: str) -> int:
        """The memory that its values take. Raises IcebergError for metadata that could not be read again."""
        if len(text) > self._limits.iceberg_file_bytes_max:
            raise _too_long(what, self._limits.iceberg_file_bytes_max)
        size, limit = decoded_bytes(text), self._decoded_max
        if size > limit.value:
            bound = f"{limit.value} bytes of memory (limit {limit.name})"
            raise invalid(f"{what} has values that take more than {bound}; expire snapshots")
        return size

    def _whole(self, location: str, bytes_max: int) -> bytes | None:
        """The text of a file that may be compressed, whatever its name says; None for a longer one."""
        content = self._content(location, "the metadata file", bytes_max)
        if len(content) > bytes_max or not content.startswith(_GZIP):
            return content if len(content) <= bytes_max else None
        unpacked = zlib.decompressobj(wbits=31)
        try:
            text = unpacked.decompress(content, bytes_max + 1)
        except zlib.error as error:
            raise invalid(f"the metadata file {location} is cut off or damaged: {error}") from error
        if len(text) > bytes_max:
            return None
        if not unpacked.eof:
            raise invalid(f"the metadata file {location} is cut off")
        return text

    def delete(self, location: str) -> None:
        """Raises FileSystemError."""
        self._files.delete_file(location)

    def keep(self, name: StoredName, file: MetadataFile) -> None:
        """Have reads of a file that the row of this name points to find it in memory."""
        size = _memory_bytes(file)
        with self._lock:
            self._drop(name)
            if size > _KEPT_BYTES_MAX // 2:
                return
            self._kept[name] = file
            self._kept_bytes += size
            while self._kept_bytes > _KEPT_BYTES_MAX:
                self._drop(next(iter(self._kept)))

    def forget(self, name: StoredName) -> None:
        """Free the memory of the file of a table or view that is gone."""
        with self._lock:
            self._drop(name)

    def _drop(self, name: StoredName) -> None:
        gone = self._kept.pop(name, None)
        if gone is not None:
            self._kept_bytes -= _memory_bytes(gone)


def _memory_bytes(file: MetadataFile) -> int:
    return len(file.text) * _BYTES_PER_BYTE


def _too_long(what: str, limit: int) -> IcebergError:
    return invalid(f"{what} is longer than {limit} bytes (limit iceberg_file_bytes_max); expire snapshots")


def _packed(file: MetadataFile) -> bytes:
    return gzip.compress(file.text, 1, mtime=0) if file.location.endswith(".gz.metadata.json") else file.text


def _not_written(error: FileSystemError) -> IcebergError:
    """Nothing has happened, so that a client may try again where that can help."""
    text = f"the metadata cannot be written: {error}"
    return commit_failed(text) if isinstance(error, FileSystemAway) else invalid(text)


def next_location(metadata: Json, before: str | None) -> str:
    """The place of the next metadata file of a table or view, as Iceberg's Java library names it."""
    folder = _folder(metadata)
    is_packed = metadata["properties"].get("write.metadata.compression-codec", "none").lower() == "gzip"
    return f"{folder}/{_version(before):05}-{uuid.uuid4()}{'.gz' if is_packed else ''}.metadata.json"


def list_location(metadata: Json, snapshot_id: int) -> str:
    """A new place for the manifest list of a snapshot."""
    return f"{_folder(metadata)}/snap-{snapshot_id}-{uuid.uuid4()}.avro"


def _folder(metadata: Json) -> str:
    """Raises IcebergError for a place that is not the table's own: others' files may lie there."""
    folder: str = metadata["properties"].get(_METADATA_FOLDER) or f"{metadata['location'].rstrip('/')}/metadata"
    if not is_own(metadata, folder):
        raise invalid(f"{_METADATA_FOLDER} {folder} does not lie below the table's location")
    return folder.rstrip("/")


def is_own(metadata: Json, place: str) -> bool:
    """True if a place lies below the location of a table or view; what it names elsewhere is not its own."""
    return place.startswith(f"{metadata['location'].rstrip('/')}/") and "/.." not in place


def _version(before: str | None) -> int:
    """The number behind that of the file before, from 0 on."""
    if before is None:
        return 0
    number = before.rpartition("/")[2].partition("-")[0]
    return int(number) + 1 if number.isdecimal() and len(number) < 10 else 0
