"""Tables and partitions as places, directories as areas: the values that an audit compares and finds."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import takewhile
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.locations import LocationError, file_system_of, normalize_location, parse_location
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, make_name, name_to_values, unescape
from hms_gateway.metastore.vocabulary.table_types import PROVIDER, is_external, is_transactional, is_view, logged_format
from hms_gateway.pipeline.catalog import REPLACES, SPARK_NO_LOCATION
from hms_gateway.pipeline.footers.footer import Column
from hms_gateway.pipeline.storage import is_hidden as is_hidden_entry
from hms_gateway.rpc.structs import FieldSchema, Partition, StorageDescriptor, Table

# Values that an audit compares and finds.


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
    """Kinds of findings; docs/pipeline.md describes each."""

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
    """Actions that a plan can take about a finding."""

    DROP_PARTITION = "drop_partition"
    ADD_PARTITION = "add_partition"
    DELETE_LEFTOVER = "delete_leftover"
    DELETE_ORPHAN = "delete_orphan"
    SET_COUNTS = "set_counts"


class FileOwner(StrEnum):
    """Owners of the decision which files belong to a table.

    PLAIN    the directory: every visible file in it is data
    ACID     Hive's transactions: directories `base_N` and `delta_N_M`
    LOGGED   a log of the table's own: `logged_format`
    NONE     another system; nothing is said about the directory but whose it is
    """

    PLAIN = "plain"
    ACID = "acid"
    LOGGED = "logged"
    NONE = "none"


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
    storage: FileOwner = FileOwner.PLAIN
    is_managed: bool = True
    keys: tuple[Column, ...] = ()
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
        """True if it is a table whose data is in partitions."""
        return self.partition is None and bool(self.keys)

    @property
    def full_name(self) -> str:
        name = f"{self.database}.{self.table}"
        return name if self.partition is None else f"{name}/{self.partition}"


class Directory(msgspec.Struct, frozen=True):
    """The files directly in one directory; hidden ones (`_SUCCESS`, `.crc`) are not counted in a visible directory.

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
    """A directory around a group of places and directories: that of a table, or of a database.

    around  the tables in whose directory this one is
    known   locations of tables, and directories that lead to them: they are not orphans themselves
    """

    location: str
    table: Place | None = None
    database: str = ""
    around: tuple[Place, ...] = ()
    known: frozenset[str] = frozenset()


class Thresholds(msgspec.Struct, frozen=True):
    """Limits for young and for small.

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
        """The object's name; a database alone for a directory of no table."""
        name = f"{self.database}.{self.table}" if self.table else self.database
        return name if self.partition is None else f"{name}/{self.partition}"


def location_of(text: str | None) -> str | None:
    """A location in the one form in which they are compared here; None where it cannot be used."""
    try:
        location = parse_location(normalize_location(text))
    except LocationError:
        return None
    changed = msgspec.structs.replace(location, scheme=file_system_of(location.scheme))
    return str(changed).rstrip("/") or "/"


def below(parent: str, child: str) -> str | None:
    """The rest of `child`, empty where they are the same; None where it does not lie there."""
    if child == parent:
        return ""
    return child[len(parent) + 1 :] if child.startswith(f"{parent}/") else None


def upwards(location: str) -> Iterator[str]:
    """A location and those around it, the innermost first."""
    yield location
    while "/" in location:
        location = location.rpartition("/")[0]
        yield location


# Meanings of a directory's name: hidden, left over by an engine, a part of a partition's name.


# Where engines put what is not yet, or no longer, data: Hadoop's committers, Hive, Spark, Impala, distcp.
_LEFTOVER: Final = re.compile(
    r"_temporary|_temporary_.*|_tmp\..*|_task_tmp\..*|\.hive-staging.*|\.spark-staging.*|_impala_insert_staging"
    r"|\.distcp\.tmp\..*|-ext-[0-9]+|_hive_tmp.*|\.hive-staging_hive.*|__magic.*|_scratchdir.*"
)
# Where Hive puts the branches of a UNION ALL, and the values of a skewed column, inside of a table or partition.
_BRANCH: Final = re.compile(r"HIVE_UNION_SUBDIR_[0-9]+|HIVE_DEFAULT_LIST_BUCKETING_DIR_NAME|[0-9]+")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BITS: Final = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


is_hidden: Final = partial(is_hidden_entry, is_directory=True)


def is_leftover(name: str) -> bool:
    """True if an engine has made it for work in progress and should have removed it."""
    return _LEFTOVER.fullmatch(name) is not None


def is_branch(name: str) -> bool:
    """True if it is a part of a table or partition that Hive makes by itself."""
    return _BRANCH.fullmatch(name) is not None


def leftover_in(path: Sequence[str]) -> int | None:
    """The number of names of a path up to the first leftover in it."""
    return next((number for number, name in enumerate(path, 1) if is_leftover(name)), None)


def spec_of(path: Sequence[str]) -> list[tuple[str, str]] | None:
    """Keys, in lower case, and values of `key=value` names; None where one of them is something else."""
    found = [name.partition("=") for name in path]
    if not all(head and mark and rest for head, mark, rest in found):
        return None
    return [(unescape(head).lower(), unescape(rest)) for head, _, rest in found]


def is_written_well(value: str, type: str) -> bool:
    """True if the value of a key reads back as it is written: `01` is the same int as `1`, and `x` is none."""
    if value == DEFAULT_PARTITION_NAME:
        return True
    if type == "date":
        return _is_date(value)
    if type not in _BITS:
        return True
    found = _INTEGER.fullmatch(value)
    return found is not None and value != "-0" and -(1 << _BITS[type]) <= int(value) < 1 << _BITS[type]


def partition_name(keys: Sequence[Column], values: Sequence[str]) -> str:
    """The name of the partition with these values."""
    return make_name([key.name for key in keys], values)


def _is_date(value: str) -> bool:
    try:
        return _DATE.fullmatch(value) is not None and date.fromisoformat(value) is not None
    except ValueError:
        return False


# Areas and their parts: what is compared together, in one task.


class Group(msgspec.Struct, frozen=True):
    """`part` is a directory of the area, or empty: for the area's own, and for all of one that is not partitioned."""

    area: str | None
    part: str = ""


class Areas:
    """The directories of all tables and databases. Made on the driver, used on executors.

    Only what lies in a partitioned table's or a database's directory is cut into parts, so that no part is a large
    share of the catalog; whatever has to be compared is in one part.
    """

    def __init__(self, tables: Iterable[Place], databases: Mapping[str, Sequence[str]]) -> None:
        """`databases` has the locations of each, as `location_of` makes them."""
        self._tables: dict[str, list[Place]] = {}
        for table in tables:
            self._tables.setdefault(table.location, []).append(table)
        self._databases = {location: name for name, locations in databases.items() for location in locations}
        self._known = frozenset(_with_ancestors(self._tables))

    def group_of(self, location: str) -> Group | None:
        """None for what lies in no known directory."""
        area = self._innermost(location)
        if area is None:
            return None
        if area in self._tables and not any(_is_cut(table) for table in self._tables[area]):
            return Group(area)
        return Group(area, (below(area, location) or "").partition("/")[0])

    def area(self, location: str) -> Area:
        """The area that `group_of` names."""
        tables = self._tables.get(location, [])
        table = next(filter(_is_cut, tables), tables[0] if tables else None)
        database = table.database if table else self._databases.get(location, "")
        return Area(location, table, database, self._around(location) if table else (), self._known)

    def leads_to_areas(self, location: str) -> bool:
        """True if the directory of a table is at or below a location."""
        return location in self._known

    def _innermost(self, location: str) -> str | None:
        return next((at for at in upwards(location) if at in self._tables or at in self._databases), None)

    def _around(self, location: str) -> tuple[Place, ...]:
        """The tables of the innermost directory of a table around another one."""
        around = (at for at in upwards(location) if at != location and at in self._tables)
        return tuple(self._tables.get(next(around, ""), ()))


def _is_cut(table: Place) -> bool:
    return table.is_partitioned and table.storage is not FileOwner.LOGGED


def _with_ancestors(locations: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for location in locations:
        found.update(takewhile(lambda at: at not in found, upwards(location)))
    return found


class Roots:
    """Directories that are listed."""

    def __init__(self, locations: Iterable[str]) -> None:
        self._locations = frozenset(locations)

    def group_of(self, location: str) -> Group | None:
        """The innermost of them that a location lies in."""
        return next((Group(at) for at in upwards(location) if at in self._locations), None)

    def reach(self, location: str) -> bool:
        """True if a location is listed with one of them: what lies in hidden directories is not."""
        root = self.group_of(location)
        names = (below(root.area or "", location) or "").split("/") if root else []
        return root is not None and not any(map(is_hidden, names))


def outermost(locations: Iterable[str]) -> list[str]:
    """Without those that lie below others."""
    kept: list[str] = []
    # A slash sorts before most characters: what lies below a location need not follow it without one.
    for location in sorted(set(locations), key=lambda one: f"{one}/"):
        if not kept or below(kept[-1], location) is None:
            kept.append(location)
    return kept


# Tables and partitions of the catalog as places: whose files are in their directories, and in which format.


_PARTITION_COLUMNS: Final = "spark.sql.sources.schema.numPartCols"
_FILE_PROVIDERS: Final = {
    "hive": "",
    "parquet": "parquet",
    "orc": "orc",
    "avro": "avro",
    "csv": "text",
    "json": "text",
    "text": "text",
    "xml": "text",
}
_FORMATS: Final = (
    ("parquet", "parquet"),
    ("orc", "orc"),
    ("avro", "avro"),
    ("sequencefile", "sequence"),
    ("rcfile", "rcfile"),
    ("textinputformat", "text"),
)


def table_place(table: Table, bases: Sequence[str], is_audited: bool = True) -> Place | None:
    """The place of a table; None without a location, as for views. `bases` are the locations of its database."""
    sd, parameters = table.sd or StorageDescriptor(), table.parameters or {}
    path = (sd.serdeInfo.parameters or {}).get("path") if sd.serdeInfo else None
    location = location_of(path if (sd.location or "").endswith(SPARK_NO_LOCATION) else sd.location)
    if location is None or is_view(table.tableType):
        return None
    is_managed = not is_external(parameters)
    keys = columns_of(table.partitionKeys)
    return Place(
        database=table.dbName or "",
        table=table.tableName or "",
        location=location,
        storage=storage_of(parameters, sd.inputFormat),
        is_managed=is_managed,
        keys=keys,
        format=format_of(sd.inputFormat, parameters),
        base=tuple(bases) if is_managed else (),
        has_branches=_PARTITION_COLUMNS in parameters and not keys,
        num_files=_count(parameters, "numFiles"),
        total_bytes=_count(parameters, "totalSize"),
        is_audited=is_audited,
    )


def partition_place(partition: Partition, table: Place) -> Place | None:
    """The place of a partition; None where its location cannot be used."""
    sd, parameters = partition.sd or StorageDescriptor(), partition.parameters or {}
    location = location_of(sd.location)
    if location is None:
        return None
    name = partition_name(table.keys, partition.values or [])
    is_of_hive = table.format == _format_of_hive(sd.inputFormat) or not sd.inputFormat
    return msgspec.structs.replace(
        table,
        location=location,
        partition=name,
        values=tuple(name_to_values(name)),
        format=table.format if is_of_hive or table.format == "text" else _format_of_hive(sd.inputFormat),
        base=(table.location,),
        num_files=_count(parameters, "numFiles"),
        total_bytes=_count(parameters, "totalSize"),
    )


def replaced_place(place: Place, parameters: Mapping[str, str]) -> Place | None:
    """The directory that a compaction has left, and will remove: it belongs to the place, which lies elsewhere now."""
    location = location_of(parameters.get(REPLACES)) if REPLACES in parameters else None
    if location is None or location == place.location:
        return None
    return msgspec.structs.replace(place, location=location, storage=FileOwner.NONE, keys=(), is_audited=False)


def columns_of(fields: Sequence[FieldSchema] | None) -> tuple[Column, ...]:
    """Columns or keys, in lower case."""
    return tuple(Column((field.name or "").lower(), (field.type or "").lower()) for field in fields or ())


def storage_of(parameters: Mapping[str, str], input_format: str | None) -> FileOwner:
    """The owner of the decision which files belong to a table."""
    provider = parameters.get(PROVIDER, "").lower()
    if logged_format(parameters, input_format):
        return FileOwner.LOGGED
    if parameters.get("storage_handler") or (provider and provider not in _FILE_PROVIDERS):
        return FileOwner.NONE
    return FileOwner.ACID if is_transactional(parameters) else FileOwner.PLAIN


def format_of(input_format: str | None, parameters: Mapping[str, str]) -> str:
    """The format of a table's files: what Spark says, else what Hive's input format means; empty if unknown."""
    return _FILE_PROVIDERS.get(parameters.get(PROVIDER, "").lower(), "") or _format_of_hive(input_format)


def _format_of_hive(input_format: str | None) -> str:
    name = (input_format or "").lower()
    return next((format for word, format in _FORMATS if word in name), "")


def _count(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name) or ""
    return int(text) if text.isdecimal() and text.isascii() else None
