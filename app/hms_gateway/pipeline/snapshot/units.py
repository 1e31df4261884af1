"""Units of reading: those that an event makes necessary to read again, the reading that counts, pieces for tasks."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import pyarrow

from hms_gateway.pipeline.catalog import cut
from hms_gateway.pipeline.events import OF_PARTITIONS, alteration, partition_names
from hms_gateway.pipeline.jobs.stored import texts
from hms_gateway.pipeline.snapshot.objects import LISTED
from hms_gateway.rpc.structs import NotificationEvent, Table

# Units to read again after an event, and the choice among several readings of an object.
#
# A **unit** is what is read at once: the whole catalog, a database with all that is in it, a database's own entry, a
# table with its partitions, a table's own definition (with columns, constraints and statistics), one partition.


CATALOG: Final = "catalog"
CONTENTS: Final = "contents"
DATABASE: Final = "database"
TABLE: Final = "table"
DEFINITION: Final = "definition"
PARTITION: Final = "partition"


class Unit(NamedTuple):
    """Names that a kind does not need are empty."""

    kind: str
    database: str = ""
    table: str = ""
    partition: str = ""

    def overlaps(self, other: "Unit") -> bool:
        """True if some object is part of both."""
        return bool(_PARTS[self.kind] & _PARTS[other.kind]) and all(
            not mine or not theirs or mine == theirs for mine, theirs in zip(self[1:], other[1:], strict=True)
        )


# What a unit has: entries of databases, definitions of tables, partitions.
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    CATALOG: frozenset((DATABASE, DEFINITION, PARTITION)),
    CONTENTS: frozenset((DATABASE, DEFINITION, PARTITION)),
    DATABASE: frozenset((DATABASE,)),
    TABLE: frozenset((DEFINITION, PARTITION)),
    DEFINITION: frozenset((DEFINITION,)),
    PARTITION: frozenset((PARTITION,)),
}
# Events of what is not part of a table or database, or only says that data were written.
_WITHOUT_UNITS: Final = frozenset(
    (
        *("INSERT", "RELOAD", "OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "ACID_WRITE"),
        *("BATCH_ACID_WRITE", "COMMIT_COMPACTION", "CREATE_FUNCTION", "ALTER_FUNCTION", "DROP_FUNCTION"),
        "CHANGE_RIGHTS",
    )
)
_OF_DEFINITIONS: Final = frozenset(
    (
        *("UPDATE_TBL_COL_STAT_EVENT", "DELETE_TBL_COL_STAT_EVENT", "CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX"),
        *("ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT"),
        *("ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT"),
    )
)
# Fields of a table that say nothing about its partitions.
_OWN_FIELDS: Final = ("parameters", "lastAccessTime", "owner", "ownerType", "retention", "privileges")


def units_of(event: NotificationEvent) -> frozenset[Unit]:
    """Units to read again after an event. More than is needed where the event does not say, never less."""
    database, table = (event.dbName or "").lower(), (event.tableName or "").lower()
    if event.eventType in _WITHOUT_UNITS:
        return frozenset()
    if not database:
        return frozenset((Unit(CATALOG),))
    if not table:
        return frozenset((Unit(DATABASE if event.eventType == "ALTER_DATABASE" else CONTENTS, database),))
    if event.eventType in _OF_DEFINITIONS:
        return frozenset((Unit(DEFINITION, database, table),))
    whole = frozenset((Unit(TABLE, database, table),))
    if event.eventType in OF_PARTITIONS:
        partitions = partition_names(event)
        return whole if partitions is None else frozenset(Unit(PARTITION, database, table, name) for name in partitions)
    if event.eventType != "ALTER_TABLE" or (altered := alteration(event)) is None:
        return whole
    before, after, is_truncated = altered
    both = {((one.dbName or "").lower(), (one.tableName or "").lower()) for one in (before, after)}
    tables = whole | {Unit(TABLE, *names) for names in both}
    if len(tables) > 1 or is_truncated or _but_own(before) != _but_own(after):
        return tables
    return frozenset(unit._replace(kind=DEFINITION) for unit in tables)


def _but_own(table: Table) -> list[Any]:
    return [getattr(table, name) for name in table.__struct_fields__ if name not in _OWN_FIELDS]


Tables = Set[tuple[str, str]]


def to_read(units: Iterable[Unit], children: Mapping[tuple[str, str], Tables]) -> frozenset[Unit]:
    """Units to read: adds the definitions of tables that refer to a table in `units`, since their foreign keys change
    with it, and without what is part of another unit.

    `children` are tables by the table that they refer to.
    """
    found = set(units)
    for unit in tuple(found):
        for parent, referring in children.items():
            if DEFINITION in _PARTS[unit.kind] and unit.database in ("", parent[0]) and unit.table in ("", parent[1]):
                found |= {Unit(DEFINITION, *table) for table in referring}
    return frozenset(unit for unit in found if not any(_around(unit, found)))


def _around(unit: Unit, units: Set[Unit]) -> Iterator[Unit]:
    """The ones of `units` that may have `unit` as a part."""
    for kind, names in ((CATALOG, ()), (CONTENTS, unit[1:2]), (TABLE, unit[1:3])):
        if (larger := Unit(kind, *names)) in units and larger != unit:
            yield larger


class Reading(NamedTuple):
    """A round of reading: what it read, and the newest event when it began."""

    event: int
    units: frozenset[Unit]


def is_settled(last: Reading, since: Iterable[Unit]) -> bool:
    """True if the catalog was read as of `last.event`: nothing that `last` read changed while it did.

    What else changed meanwhile was not read after it changed, so that the rows are still those of that event.
    """
    return not any(one.overlaps(unit) for one in since for unit in last.units)


class Rounds:
    """Decides which reading of an object counts: the last one that covered it."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._last = {unit: number for number, reading in enumerate(readings) for unit in reading.units}

    def counts(self, number: int, database: str, table: str = "", partition: str = "") -> bool:
        """True if round `number`'s reading of an object is still to be used."""
        return number >= max(self._last.get(unit, -1) for unit in _covering(database, table, partition))


def _covering(database: str, table: str, partition: str) -> tuple[Unit, ...]:
    around = (Unit(CATALOG), Unit(CONTENTS, database))
    if not table:
        return (*around, Unit(DATABASE, database))
    own = Unit(PARTITION, database, table, partition) if partition else Unit(DEFINITION, database, table)
    return (*around, Unit(TABLE, database, table), own)


# Work of tasks: pieces of the catalog of a bounded size, as rows of a plan.


DATABASES: Final = "databases"
TABLES: Final = "tables"
DEFINITIONS: Final = "definitions"
PARTITIONS: Final = "partitions"
OF_KIND: Final = "listed"
# Not to be read, but to be known: `database`.`table` has a foreign key of the table in `names`.
REFERENCE: Final = "reference"

NAMES_A_PIECE: Final = {DATABASES: 500, TABLES: 200, DEFINITIONS: 200, PARTITIONS: 5_000}

WORK: Final = pyarrow.schema(
    [
        *texts("what", "database", "table"),
        ("packed", pyarrow.binary()),
    ]
)


class Work(NamedTuple):
    """`what` is to be read of which names; names are packed, since the driver holds those of all partitions."""

    what: str
    database: str
    table: str
    packed: bytes

    @classmethod
    def of(cls, what: str, names: Sequence[str], database: str = "", table: str = "") -> "Work":
        return cls(what, database, table, zlib.compress("\n".join(names).encode(), 1))

    @property
    def names(self) -> list[str]:
        """A line break in a value is escaped in the name of a partition."""
        return zlib.decompress(self.packed).decode().split("\n")

    def as_row(self) -> dict[str, Any]:
        return self._asdict()


def pieces(what: str, names: Sequence[str], database: str = "", table: str = "") -> Iterator[Work]:
    """Work of a size that one task does at once."""
    return (Work.of(what, some, database, table) for some in cut(names, NAMES_A_PIECE[what]))


def listed() -> list[Work]:
    """The kinds of objects that are read whole."""
    return [Work.of(OF_KIND, [kind]) for kind in LISTED]


def works_of(units: Iterable[Unit], tables: Mapping[str, Sequence[str]]) -> Iterator[Work]:
    """Work to read units other than the catalog; `tables` has the tables of databases that are read with contents."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for unit in sorted(units):
        if unit.kind in (DATABASE, CONTENTS):
            names.setdefault((DATABASES, "", ""), []).append(unit.database)
        if unit.kind == CONTENTS:
            names.setdefault((TABLES, unit.database, ""), []).extend(tables[unit.database])
        elif unit.kind in (TABLE, DEFINITION):
            what = TABLES if unit.kind == TABLE else DEFINITIONS
            names.setdefault((what, unit.database, ""), []).append(unit.table)
        elif unit.kind == PARTITION:
            names.setdefault((PARTITIONS, unit.database, unit.table), []).append(unit.partition)
    for (what, database, table), found in names.items():
        yield from pieces(what, list(dict.fromkeys(found)), database, table)
