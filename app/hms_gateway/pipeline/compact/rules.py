"""Rules of a compaction: plain tables, files that become one, new directories, the change of a swap."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.parameters import DDL_TIME, FILE_COUNT, ROW_COUNT, SPARK, TOTAL_BYTES, says_true
from hms_gateway.metastore.vocabulary.table_types import FORMATS, PROVIDER, is_view, logged_format
from hms_gateway.pipeline.catalog import REPLACES
from hms_gateway.pipeline.storage import Files, ListingProblem, is_hidden
from hms_gateway.rpc.structs import Partition, StorageDescriptor, Table

# Files of a table's directories: listed, read, written so that they last, and removed.


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
    """The content of a directory cannot be compacted; the text says what and why."""


def data_files(files: Files, path: str) -> list[DataFile]:
    """The files of a directory, sorted by name. Raises ListingProblem, and NotPlain for directories among them."""
    found = []
    for entry in files.scan(path):
        if is_hidden(entry.name, is_directory=entry.is_directory):
            continue
        if entry.is_directory:
            raise NotPlain(f"has the directory {entry.name} in it")
        found.append(DataFile(entry.name, entry.bytes, entry.modified_ms))
    return sorted(found)


def names_in(files: Files, path: str) -> list[str]:
    """All names in a directory; none where it is not there."""
    with suppress(ListingProblem):
        return sorted(entry.name for entry in files.scan(path))
    return []


# Directories that are worth it, and files that become one.


TARGET_BYTES: Final = 128 << 20
# A file of so much of the target is large enough.
_LARGE: Final = 0.75


class Gain(NamedTuple):
    """Files before and, by their sizes alone, after."""

    before: int
    after: int
    bytes: int

    @property
    def is_worth_it(self) -> bool:
        return self.after < self.before


def gain(files: Sequence[DataFile], target_bytes: int) -> Gain:
    """Empty files go."""
    return Gain(len(files), len(bins(files, target_bytes)), sum(file.bytes for file in files))


def is_large(file: DataFile, target_bytes: int) -> bool:
    return file.bytes >= _LARGE * target_bytes


def bins(files: Sequence[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Files that become one, in their order; a large one stays as it is. No bin is over the target by its sizes."""
    found: list[list[DataFile]] = []
    filled = 0
    for file in files:
        if file.bytes == 0:
            continue
        if is_large(file, target_bytes):
            found.append([file])
            filled = target_bytes
        elif not found or filled + file.bytes > target_bytes:
            found.append([file])
            filled = file.bytes
        else:
            found[-1].append(file)
            filled += file.bytes
    return found


# Where new files go: below a hidden directory, so that neither MSCK nor a reader of the table's directory finds them,
# and in a directory of the old one's name, which readers of the partition do not take for hidden.


HIDDEN: Final = ".hms-compact"


def base_of(table_location: str, *, is_partitioned: bool) -> str:
    """The directory that has the hidden one of a table: its own, or the one around it where the table itself moves."""
    if is_partitioned:
        return table_location.rstrip("/")
    return before_hidden(table_location).rpartition("/")[0]


def before_hidden(location: str) -> str:
    """The location of something before it was compacted for the first time."""
    head, hidden, rest = location.rstrip("/").partition(f"/{HIDDEN}/")
    return f"{head}/{rest.partition('/')[2]}" if hidden else head


def is_of_one(one: str, other: str) -> bool:
    """True if two directories are of one partition, before and after it was compacted."""
    return before_hidden(one) == before_hidden(other)


def target_of(base: str, run: str, location: str) -> str:
    """The new directory for `location`; empty for one that does not lie in `base`."""
    inside = before_hidden(location)
    if not inside.startswith(f"{base}/"):
        return ""
    return f"{base}/{HIDDEN}/{run}/{inside[len(base) + 1 :]}"


# The change of a partition or table by a swap.


# What is known of the directory that was left; the cleaning removes it, and these with it.
FILES: Final = "hms.compact.files"
AT: Final = "hms.compact.at"
RUN: Final = "hms.compact.run"
# In place of the fingerprint once files are being removed.
REMOVING: Final = "removing"
_OWN: Final = (REPLACES, FILES, AT, RUN)


Described = TypeVar("Described", bound=Partition | Table)


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The files written to `location`."""

    location: str
    files: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Left:
    """A compacted directory that is still there: its location, the fingerprint of its files, and when it was left."""

    location: str
    fingerprint: str
    at: float
    run: str


def left(parameters: Mapping[str, str] | None) -> Left | None:
    """None where nothing waits to be cleaned."""
    found = parameters or {}
    if REPLACES not in found:
        return None
    at = found.get(AT, "")
    return Left(
        found[REPLACES],
        found.get(FILES, ""),
        float(at) if at.replace(".", "", 1).isdecimal() else time.time(),
        found.get(RUN, ""),
    )


def swapped(before: Described, new: NewFiles, old: Left) -> Described:
    """Puts in the new directory, its statistics, and notes about the old one. The server sets the DDL time."""
    parameters = {key: value for key, value in (before.parameters or {}).items() if key != DDL_TIME}
    counted = {FILE_COUNT: new.files, TOTAL_BYTES: new.bytes, ROW_COUNT: new.rows}
    counted |= {name: number for name, number in _of_spark(new).items() if name in parameters}
    noted = {REPLACES: old.location, FILES: old.fingerprint, AT: f"{old.at:.3f}", RUN: old.run}
    parameters = {**parameters, **{name: str(number) for name, number in counted.items()}, **noted}
    return msgspec.structs.replace(before, parameters=parameters, sd=_moved(before.sd, new.location))


def cleaned(before: Described) -> Described:
    """Without what was known of the old directory."""
    parameters = {key: value for key, value in (before.parameters or {}).items() if key not in _OWN}
    return msgspec.structs.replace(before, parameters=parameters)


def marked(before: Described) -> Described:
    """Puts in the note that the files of the old directory are being removed."""
    return msgspec.structs.replace(before, parameters={**(before.parameters or {}), FILES: REMOVING})


def same_path(one: str, other: str) -> bool:
    """`file:/a`, `file:///a` and `/a` are one."""
    return _path(one) == _path(other)


def _path(location: str) -> str:
    found = location.rstrip("/")
    return "/" + found.removeprefix("file:").lstrip("/") if found.startswith(("file:", "/")) else found


def _of_spark(new: NewFiles) -> dict[str, int]:
    return {SPARK + TOTAL_BYTES: new.bytes, SPARK + ROW_COUNT: new.rows}


def _moved(sd: Any, location: str) -> Any:
    """Spark's own tables have their location a second time."""
    serde = sd.serdeInfo
    path = (serde.parameters or {}).get("path") if serde is not None else None
    if path and same_path(path, sd.location):
        serde = msgspec.structs.replace(serde, parameters={**serde.parameters, "path": location})
    return msgspec.structs.replace(sd, location=location, serdeInfo=serde)


# Plain tables and partitions: files of rows that every reader finds by the location alone.


PARQUET: Final = "parquet"
ORC: Final = "orc"
TEXT: Final = "text"

_FORMATS: Final = {
    FORMATS["PARQUET"].input_format: PARQUET,
    FORMATS["ORC"].input_format: ORC,
    FORMATS["TEXTFILE"].input_format: TEXT,
}
_PROVIDERS: Final = ("", "hive", "parquet", "orc", "csv", "json", "text")
_SPARK_BUCKETS: Final = "spark.sql.sources.schema.numBuckets"
# Of text: lines that are not rows, and other ends of lines.
_UNSAFE_TEXT: Final = (
    "skip.header.line.count",
    "skip.footer.line.count",
    "line.delim",
    "header",
    "multiline",
    "lineSep",
)


def left_alone(table: Table) -> str:
    """The reason to compact nothing of a table, with the table as subject; else empty."""
    parameters = table.parameters or {}
    provider = parameters.get(PROVIDER, "").lower()
    if is_view(table.tableType):
        return "is a view"
    if says_true(parameters, "transactional"):
        return "is transactional"
    owner = logged_format(parameters, table.sd.inputFormat if table.sd else None) or parameters.get("storage_handler")
    if owner or provider not in _PROVIDERS:
        return f"is kept by {owner or provider}"
    if _SPARK_BUCKETS in parameters or _is_bucketed(table.sd):
        return "is bucketed: its files are its buckets"
    if provider and table.partitionKeys and parameters.get("spark.sql.partitionProvider") != "catalog":
        return "is read by Spark without asking for its partitions"
    return "" if table.sd and table.sd.location else "has no location"


def unsafe(sd: StorageDescriptor | None, table: Table) -> str:
    """The reason to leave out a partition, or a table without any; else empty."""
    if sd is None or not sd.location:
        return "has no location"
    format = format_of(sd)
    if not format:
        return f"has the input format {sd.inputFormat}; Parquet, ORC and text are compacted"
    if _is_bucketed(sd):
        return "is bucketed"
    if sd.storedAsSubDirectories:
        return "has directories for skewed values"
    if format == TEXT:
        said = {*(table.parameters or {}), *((sd.serdeInfo.parameters if sd.serdeInfo else None) or {})}
        if named := next((name for name in _UNSAFE_TEXT if name.lower() in {each.lower() for each in said}), ""):
            return f"is text with {named}, which belongs to each file"
    path = ((sd.serdeInfo.parameters if sd.serdeInfo else None) or {}).get("path")
    if path and not table.partitionKeys and not same_path(path, sd.location):
        return "has another path for Spark than its location"
    return ""


def format_of(sd: StorageDescriptor) -> str:
    return _FORMATS.get(sd.inputFormat or "", "")


def _is_bucketed(sd: StorageDescriptor | None) -> bool:
    return sd is not None and ((sd.numBuckets or 0) > 0 or bool(sd.bucketCols))
