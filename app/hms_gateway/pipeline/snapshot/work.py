"""What a task reads: pieces of the catalog of a bounded size, as rows of a plan."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow

from hms_gateway.pipeline.snapshot.objects import LISTED
from hms_gateway.pipeline.snapshot.units import CONTENTS, DATABASE, DEFINITION, PARTITION, TABLE, Unit

DATABASES: Final = "databases"
TABLES: Final = "tables"
DEFINITIONS: Final = "definitions"
PARTITIONS: Final = "partitions"
OF_KIND: Final = "listed"
# Not to be read, but to be known: `database`.`table` has a foreign key of the table in `names`.
REFERENCE: Final = "reference"

NAMES_A_PIECE: Final = {DATABASES: 500, TABLES: 200, DEFINITIONS: 200, PARTITIONS: 5_000}

SCHEMA: Final = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("packed", pyarrow.binary()),
    ]
)


class Work(NamedTuple):
    """`what` is to be read of which names; names are packed, since the driver holds those of all partitions."""

    what: str
    database: str
    table: str
    packed: bytes

    @property
    def names(self) -> list[str]:
        """A line break in a value is escaped in the name of a partition."""
        return zlib.decompress(self.packed).decode().split("\n")

    def as_row(self) -> dict[str, Any]:
        return self._asdict()


def work(what: str, names: Sequence[str], database: str = "", table: str = "") -> Work:
    return Work(what, database, table, zlib.compress("\n".join(names).encode(), 1))


def pieces(what: str, names: Sequence[str], database: str = "", table: str = "") -> Iterator[Work]:
    """Work of a size that one task does at once."""
    size = NAMES_A_PIECE[what]
    return (work(what, names[at : at + size], database, table) for at in range(0, len(names), size))


def listed() -> list[Work]:
    """The kinds of objects that are read whole."""
    return [work(OF_KIND, [kind]) for kind in LISTED]


def works_of(units: Iterable[Unit], tables: Mapping[str, Sequence[str]]) -> Iterator[Work]:
    """How to read units other than the catalog; `tables` has the tables of databases that are read with contents."""
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
