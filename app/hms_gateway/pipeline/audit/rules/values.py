"""What an audit compares and what it finds, as values."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.locations import LocationError, normalize_location, parse_location

# One store under three names: clients of different ages write different ones.
_SAME_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


class Severity(StrEnum):
    """ERROR: data is lost, cannot be read, or belongs to two owners. WARNING: data is not read, or read wrongly.
    NOTE: nothing is wrong with the data."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return _RANKS[self]


_RANKS: Final = {Severity.NOTE: 1, Severity.WARNING: 2, Severity.ERROR: 3}


class Kind(StrEnum):
    """What a finding is about; docs/pipeline.md describes each."""

    UNREADABLE = "unreadable"
    PASSED_OVER = "passed_over"
    CORRUPT = "corrupt"
    MISSING = "missing"
    SHARED = "shared"
    MIXED_FORMATS = "mixed_formats"
    DRIFT = "drift"
    ORPHAN = "orphan"
    LEFTOVER = "leftover"
    MISPLACED = "misplaced"
    OUTSIDE = "outside"
    EMPTY = "empty"
    SMALL_FILES = "small_files"
    STALE_COUNTS = "stale_counts"


class Fix(StrEnum):
    """What a plan can do about a finding."""

    DROP_PARTITION = "drop_partition"
    ADD_PARTITION = "add_partition"
    DELETE_LEFTOVER = "delete_leftover"
    DELETE_ORPHAN = "delete_orphan"
    SET_COUNTS = "set_counts"


class Storage(StrEnum):
    """Who decides which files belong to a table.

    PLAIN    the directory: every visible file in it is data
    ACID     Hive's transactions: directories `base_N` and `delta_N_M`
    LOGGED   a log of the table's own: Iceberg, Delta, Hudi
    NONE     another system; nothing is said about the directory but whose it is
    """

    PLAIN = "plain"
    ACID = "acid"
    LOGGED = "logged"
    NONE = "none"


class Key(msgspec.Struct, frozen=True):
    """A partition key; `name` in lower case."""

    name: str
    type: str


class Place(msgspec.Struct, frozen=True):
    """A table or partition, and where the catalog says that it lies.

    location       as `location_of` makes it
    format         `parquet`, `orc`, `avro`, `sequence`, `rcfile`, `text`, or empty where it is not known
    base           what a managed table or a partition should lie below: one of these locations
    has_branches   directories below are part of the data, although they are not partitions of the catalog
    num_files, total_bytes   what the parameters numFiles and totalSize say
    is_audited     findings about it are wanted
    passed_over    why its directory is not looked at, else empty: then nothing is said about what is in it
    """

    database: str
    table: str
    location: str
    partition: str | None = None
    storage: Storage = Storage.PLAIN
    is_managed: bool = True
    keys: tuple[Key, ...] = ()
    values: tuple[str, ...] = ()
    format: str = ""
    base: tuple[str, ...] = ()
    has_branches: bool = False
    num_files: int | None = None
    total_bytes: int | None = None
    is_audited: bool = True
    passed_over: str = ""

    @property
    def is_listed(self) -> bool:
        """True if its directory is looked at for findings about it."""
        return self.is_audited and not self.passed_over

    @property
    def is_partitioned(self) -> bool:
        """Whether it is a table whose data is in partitions."""
        return self.partition is None and bool(self.keys)

    @property
    def full_name(self) -> str:
        name = f"{self.database}.{self.table}"
        return name if self.partition is None else f"{name}/{self.partition}"


class Directory(msgspec.Struct, frozen=True):
    """What lies directly in one directory; hidden files (`_SUCCESS`, `.crc`) are not counted in a visible one.

    formats  number of files by format, as their first bytes say: those of all files, or of a few
    error    why it cannot be listed, else empty
    """

    location: str
    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    formats: Mapping[str, int] = {}
    error: str = ""


class Area(msgspec.Struct, frozen=True):
    """What a group of places and directories lies in: a table's directory, or that of a database.

    around  the tables in whose directory this one is
    known   locations of tables, and directories that lead to them: they are not orphans themselves
    """

    location: str
    table: Place | None = None
    database: str = ""
    around: tuple[Place, ...] = ()
    known: frozenset[str] = frozenset()


class Thresholds(msgspec.Struct, frozen=True):
    """What counts as young, and as small.

    now_seconds       when the directories were listed
    quiet_seconds     what changed since then may be work that goes on
    small_bytes       mean size below which files are small
    small_files_min   so many of them, at least
    """

    now_seconds: float
    quiet_seconds: float = 86_400.0
    small_bytes: int = 16 * 1024 * 1024
    small_files_min: int = 10


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be.

    partition  its name; of an orphan the one that it would have
    fix        what can be done about it without a person's decision
    """

    severity: Severity
    kind: Kind
    database: str
    table: str
    partition: str | None
    location: str
    text: str
    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    fix: Fix | None = None

    @property
    def full_name(self) -> str:
        """Of the object; a database alone where it is about a directory of no table."""
        name = f"{self.database}.{self.table}" if self.table else self.database
        return name if self.partition is None else f"{name}/{self.partition}"


def location_of(text: str | None) -> str | None:
    """A location in the one form in which they are compared here; None where it cannot be used."""
    try:
        location = parse_location(normalize_location(text))
    except LocationError:
        return None
    scheme = location.scheme.lower()
    changed = msgspec.structs.replace(location, scheme=_SAME_SCHEMES.get(scheme, scheme))
    return str(changed).rstrip("/") or "/"


def below(parent: str, child: str) -> str | None:
    """The rest of `child`, empty where they are the same; None where it does not lie there."""
    if child == parent:
        return ""
    return child[len(parent) + 1 :] if child.startswith(f"{parent}/") else None
