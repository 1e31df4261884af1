"""Hive's concurrency model without transactions: which locks a command needs (semantics §8).

The model
    Shared (S) and exclusive (X) locks on databases, tables, partitions and partition prefixes (`ds=1` of a table that
    has two partition keys). Whatever is locked in any mode, its parents up to the table are locked S. Locks are taken
    in the order of their names, which is the same for everybody.

The rules
    `HIVE_PAGE` is the table on Hive's page about the model, and the default; `HIVE_CODE` is what Hive's own lock
    manager does where it decides otherwise. For what the page does not list both say what Hive does. The page names
    for `alter table T1 partition P1 concatenate` the partition alone; the rule above the table adds its table.

As a lock request
    The metastore's locks know the hierarchy themselves: what conflicts with a partition's lock conflicts with its
    table's. So a request leaves out S on a table or database it holds something in; two writers of different
    partitions would otherwise stop each other. S on a prefix stays: to other metastores it is one more partition.

Known gaps
    * S on a whole table waits for X on one of its partitions, which in the model it does not: there, who reads a
      partitioned table locks each partition that is read. A statement says which one that is where its WHERE has
      a value for each key; other conditions, joins and subqueries lock the table.
    * A WHERE names a partition of integers by its usual spelling. One that was made as `hr=01` is another object.
    * Only this gateway knows that X on a prefix excludes locks below it. On other metastores it is seen by those who
      lock through here, and not by clients that lock the partitions below it alone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from hms_gateway.rpc.structs import DataOperationType, LockComponent, LockLevel, LockType


class Mode(StrEnum):
    SHARED = "S"
    EXCLUSIVE = "X"


class LockPlace(NamedTuple):
    """What a lock is on; `partition` has the components of a partition's name, fewer than all for a prefix."""

    db_name: str
    table_name: str | None = None
    partition: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the database down; locks are taken in the order of these."""
        return (self.db_name, *(() if self.table_name is None else (self.table_name,)), *self.partition)

    @property
    def partition_name(self) -> str | None:
        return "/".join(self.partition) if self.partition else None

    @property
    def table(self) -> "LockPlace":
        return LockPlace(self.db_name, self.table_name)

    def parents(self) -> list["LockPlace"]:
        """What contains it, up to its table; databases and tables have none."""
        if self.table_name is None or not self.partition:
            return []
        return [
            LockPlace(self.db_name, self.table_name, self.partition[:length]) for length in range(len(self.partition))
        ]

    def __str__(self) -> str:
        return ".".join(self.path)


class NeededLock(NamedTuple):
    place: LockPlace
    mode: Mode


class Operation(StrEnum):
    """What a command does. Those up to DROP_TABLE are the page's; the texts are how EXPLAIN names them."""

    SELECT = "select"
    INSERT = "insert"
    RENAME_TABLE = "rename table"
    ADD_COLUMNS = "add columns"
    REPLACE_COLUMNS = "replace columns"
    CHANGE_COLUMN = "change column"
    CONCATENATE = "concatenate"
    ADD_PARTITION = "add partition"
    DROP_PARTITION = "drop partition"
    TOUCH = "touch"
    SET_SERDE_PROPERTIES = "set serdeproperties"
    SET_SERDE = "set serializer"
    SET_FILE_FORMAT = "set file format"
    SET_TABLE_PROPERTIES = "set tblproperties"
    DROP_TABLE = "drop table"
    UNSET_TABLE_PROPERTIES = "unset tblproperties"
    RENAME_PARTITION = "rename partition"
    PARTITION_COLUMN = "partition column"
    SET_LOCATION = "set location"
    SET_STORAGE = "clustered, sorted or skewed by"
    ARCHIVE = "archive"
    TRUNCATE = "truncate"
    CONSTRAINT = "constraint"
    COMPACT = "compact"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"
    ANALYZE = "analyze"
    REPAIR = "msck repair"
    EXPORT = "export"
    CREATE_TABLE = "create table"
    CREATE_DATABASE = "create database"
    DROP_DATABASE = "drop database"
    LOCK_SHARED = "lock shared"
    LOCK_EXCLUSIVE = "lock exclusive"


class Command(msgspec.Struct, frozen=True):
    """A command: what it does to `places`, and what it reads.

    Where not all partitions are known (dynamic partitions, ranges), the place is the prefix that is, or the table.
    `where` is what the rows of the only table that is read, or else changed, are equal to, in partition keys or others.
    """

    operation: Operation
    places: tuple[LockPlace, ...] = ()
    reads: tuple[LockPlace, ...] = ()
    where: tuple["Equal", ...] = ()


class Equal(NamedTuple):
    """`column = value` of a WHERE; `part` is how the name of a partition says it."""

    column: str
    part: str
    value: str
    is_quoted: bool


class Level(StrEnum):
    """What is locked of a place."""

    ITSELF = "itself"
    TABLE = "table"
    DATABASE = "database"


class LockRule(NamedTuple):
    """The mode for a table or database as a whole, and for partitions; None means without a lock."""

    mode: Mode | None
    partition_mode: Mode | None = Mode.EXCLUSIVE
    level: Level = Level.ITSELF


_S, _X = Mode.SHARED, Mode.EXCLUSIVE

HIVE_PAGE: Final[Mapping[Operation, LockRule]] = MappingProxyType(
    {
        **dict.fromkeys(Operation, LockRule(_X)),
        Operation.SELECT: LockRule(_S, _S),
        Operation.SET_SERDE_PROPERTIES: LockRule(_S),
        Operation.SET_SERDE: LockRule(_S),
        Operation.SET_FILE_FORMAT: LockRule(_S),
        Operation.COMPACT: LockRule(None, None),
        Operation.ANALYZE: LockRule(_S, _S),
        Operation.REPAIR: LockRule(_S),
        Operation.CREATE_TABLE: LockRule(_S, level=Level.DATABASE),
        Operation.CREATE_DATABASE: LockRule(None),
        Operation.LOCK_SHARED: LockRule(_S, _S),
    }
)

HIVE_CODE: Final[Mapping[Operation, LockRule]] = MappingProxyType(
    {
        **HIVE_PAGE,
        Operation.ADD_PARTITION: LockRule(_S, level=Level.TABLE),
        Operation.TOUCH: LockRule(None, None),
        Operation.SET_SERDE: LockRule(_X),
        Operation.SET_FILE_FORMAT: LockRule(_X),
        Operation.SET_TABLE_PROPERTIES: LockRule(_S),
    }
)


# A table's partition keys in their order with their types, None when they are unknown.
KeysOf = Callable[[LockPlace], Mapping[str, str] | None]

# By the type of a key: whether a value is how the name of a partition spells it, if it is quoted, and if it is not.
_INTEGER: Final = re.compile(r"0|-?[1-9]\d*").fullmatch
_SPELT: Final[Mapping[str, tuple[Callable[[str], object], Callable[[str], object]]]] = MappingProxyType(
    {
        **dict.fromkeys(("string", "varchar"), (bool, lambda value: False)),
        **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (_INTEGER, _INTEGER)),
        "date": (re.compile(r"\d{4}-\d\d-\d\d").fullmatch, lambda value: False),
    }
)


class NotAKey(ValueError):
    """A partition is described by something that is not a partition key of its table; the text says so."""


def in_key_order(command: Command, keys_of: KeysOf) -> Command:
    """The command with its partitions named as the catalog names them; tables are asked for only where it matters.

    A statement may have the keys in any order, and leave some out. Only the values of the leading ones make a prefix:
    `hr=2` of a table with the keys ds and hr may be anywhere in it, so it means the table. Raises NotAKey.
    """
    places = tuple(_in_key_order(place, keys_of) for place in command.places)
    reads = tuple(_in_key_order(place, keys_of) for place in command.reads)
    if command.where and len(reads) == 1:
        reads = (_selected(reads[0], command.where, keys_of),)
    elif command.where and not reads:
        places = tuple(_selected(place, command.where, keys_of) for place in places)
    return msgspec.structs.replace(command, places=places, reads=reads, where=())


def needed_locks(command: Command, rules: Mapping[Operation, LockRule] = HIVE_PAGE) -> list[NeededLock]:
    """The locks that a command needs, in the order in which they are taken; X where an object is wanted in both modes.

    Under HIVE_CODE the databases are locked S as well, as Hive does.
    """
    direct = [NeededLock(place, Mode.SHARED) for place in command.reads]
    rule = rules[command.operation]
    for place in command.places:
        mode = rule.partition_mode if place.partition and rule.level is Level.ITSELF else rule.mode
        if mode is not None:
            direct.append(NeededLock(_at(place, rule.level), mode))
    modes: dict[LockPlace, Mode] = {}
    for place, mode in direct:
        for parent in _parents(place, with_database=rules is HIVE_CODE):
            modes.setdefault(parent, Mode.SHARED)
        if modes.get(place) is not Mode.EXCLUSIVE:
            modes[place] = mode
    return [NeededLock(place, modes[place]) for place in sorted(modes, key=lambda place: place.path)]


def lock_components(locks: Sequence[NeededLock]) -> list[LockComponent]:
    """The locks as the components of a lock request."""
    places = [place for place, _ in locks]
    return [
        LockComponent(
            type=LockType.EXCLUSIVE if mode is Mode.EXCLUSIVE else LockType.SHARED_READ,
            level=_lock_level(place),
            dbname=place.db_name,
            tablename=place.table_name,
            partitionname=place.partition_name,
            operationType=DataOperationType.NO_TXN,
        )
        for place, mode in locks
        if mode is Mode.EXCLUSIVE or place.partition or not _contains_any(place, places)
    ]


def _in_key_order(place: LockPlace, keys_of: KeysOf) -> LockPlace:
    """Partitions without keys, as in the short forms of Hive's page, stay what they are."""
    keys = keys_of(place.table) if place.partition and all("=" in part for part in place.partition) else None
    if keys is None:
        return place
    given = {part.partition("=")[0].lower(): part for part in place.partition}
    unknown = next((key for key in given if key not in keys), None)
    if unknown is not None:
        raise NotAKey(f"{unknown} is not a partition key of {place.table}, which has {', '.join(keys) or 'none'}")
    return place._replace(partition=tuple(given[key] for key in takewhile(given.__contains__, keys)))


def _selected(place: LockPlace, where: Sequence[Equal], keys_of: KeysOf) -> LockPlace:
    """The partition of a table that a condition is about; the table, unless each key has one value."""
    keys = {} if place.partition else keys_of(place) or {}
    parts: dict[str, str] = {}
    for column, part, value, is_quoted in where:
        spelt, spelt_plainly = _SPELT.get(keys.get(column, "").partition("(")[0], (None, None))
        is_spelt = spelt if is_quoted else spelt_plainly
        if column in parts or (is_spelt is not None and not is_spelt(value)):
            return place
        if is_spelt is not None:
            parts[column] = part
    return place._replace(partition=tuple(parts[key] for key in keys)) if keys and len(parts) == len(keys) else place


def _at(place: LockPlace, level: Level) -> LockPlace:
    if level is Level.DATABASE:
        return LockPlace(place.db_name)
    return place.table if level is Level.TABLE else place


def _parents(place: LockPlace, *, with_database: bool) -> list[LockPlace]:
    database = [LockPlace(place.db_name)] if with_database and place.table_name is not None else []
    return database + place.parents()


def _contains_any(place: LockPlace, places: Iterable[LockPlace]) -> bool:
    length = len(place.path)
    return any(other != place and other.path[:length] == place.path for other in places)


def _lock_level(place: LockPlace) -> LockLevel:
    if place.partition:
        return LockLevel.PARTITION
    return LockLevel.DB if place.table_name is None else LockLevel.TABLE
