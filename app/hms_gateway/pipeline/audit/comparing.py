"""Brings places and directories of one area together in one task, and applies the rules there."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.rules.areas import Areas, Group
from hms_gateway.pipeline.audit.rules.contents import Sorter
from hms_gateway.pipeline.audit.rules.finding import find
from hms_gateway.pipeline.audit.rules.values import Area, Directory, Finding, Place, Storage, Thresholds
from hms_gateway.pipeline.jobs.arrow import map_in_arrow

# A row is a finding, or, where `kind` is null, the content of a table or partition.
FOUND: Final = (
    "severity string, kind string, database string, `table` string, `partition` string, location string, text string,"
    " files bigint, total_bytes bigint, newest_seconds double, fix string, format string"
)
_FOUND_SCHEMA: Final = pyarrow.schema(
    [
        *(
            (name, pyarrow.string())
            for name in ("severity", "kind", "database", "table", "partition", "location", "text")
        ),
        ("files", pyarrow.int64()),
        ("total_bytes", pyarrow.int64()),
        ("newest_seconds", pyarrow.float64()),
        ("fix", pyarrow.string()),
        ("format", pyarrow.string()),
    ]
)
_GROUPED: Final = "area string, part string, tag int, location string, payload binary"
_GROUPED_SCHEMA: Final = pyarrow.schema(
    [
        ("area", pyarrow.string()),
        ("part", pyarrow.string()),
        ("tag", pyarrow.int32()),
        ("location", pyarrow.string()),
        ("payload", pyarrow.binary()),
    ]
)
_PLACE, _DIRECTORY = 0, 1
_ROWS_A_BATCH: Final = 10_000

_encode = msgspec.msgpack.encode
_place = msgspec.msgpack.Decoder(Place).decode
_directory = msgspec.msgpack.Decoder(Directory).decode


def compared(
    places: DataFrame,
    directories: DataFrame,
    areas: Any,
    limits: Thresholds,
    unreadable: tuple[str, ...],
    alone: DataFrame | None,
) -> DataFrame:
    """FOUND: what is wrong with places (location, place) and directories (location, payload).

    areas  a broadcast Areas
    alone  the locations of places that lie in no area; None where there are none
    """
    owned = _with_tops(map_in_arrow(places, _Grouper(areas, _PLACE), _GROUPED), alone)
    lying = _with_tops(map_in_arrow(directories, _Grouper(areas, _DIRECTORY), _GROUPED), alone)
    grouped = owned.unionByName(lying).repartition("area", "part").sortWithinPartitions("area", "part", "tag")
    return map_in_arrow(grouped, _Comparer(areas, limits, unreadable), FOUND)


def outermost_of(locations: DataFrame) -> DataFrame:
    """Locations (location) without those that lie in others."""
    tops = locations.withColumnRenamed("location", "top")
    found = _above(locations).join(tops, f.col("above") == f.col("top")).groupBy("location")
    # The shortest of several locations around one is the first in order.
    return found.agg(f.min("top").alias("top")).select(f.col("top").alias("location")).distinct()


def _with_tops(rows: DataFrame, alone: DataFrame | None) -> DataFrame:
    """What lies in no area goes to the outermost place around it; what is around no place is left out."""
    if alone is None:
        return rows.where("area is not null")
    tops = alone.distinct().withColumnRenamed("location", "top")
    lonely = _above(rows.where("area is null"))
    found = lonely.join(tops, lonely["above"] == tops["top"]).groupBy("location", "part", "tag", "payload")
    # The shortest of several locations around one is the first in order.
    outer = found.agg(f.min("top").alias("area")).select("area", "part", "tag", "location", "payload")
    return rows.where("area is not null").unionByName(outer)


def _above(rows: DataFrame) -> DataFrame:
    """With a row for each directory at or above a location."""
    names = f.split("location", "/")
    above = f.transform(f.sequence(f.lit(1), f.size(names)), lambda n: f.array_join(f.slice(names, 1, n), "/"))
    return rows.withColumn("above", f.explode(above))


# Kinds of ALONE: in none of the directories that are listed; in no area.
ELSEWHERE, LONELY = 0, 1
ALONE: Final = pyarrow.schema([("kind", pyarrow.int8()), ("location", pyarrow.string())])


class Alone:
    """Places of a batch to those that lie apart; `areas` and `roots` are broadcast."""

    def __init__(self, areas: Any, roots: Any) -> None:
        self._areas = areas
        self._roots = roots

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        areas, roots = self._areas.value, self._roots.value
        rows = list(zip(batch.column("location").to_pylist(), batch.column("is_audited").to_pylist(), strict=True))
        elsewhere = {location for location, is_audited in rows if is_audited and not roots.reach(location)}
        lonely = {location for location, _ in rows if areas.group_of(location) is None}
        for kind, found in ((ELSEWHERE, elsewhere), (LONELY, lonely)):
            if found:
                columns = [pyarrow.array([kind] * len(found), pyarrow.int8()), pyarrow.array(sorted(found))]
                yield pyarrow.RecordBatch.from_arrays(columns, schema=ALONE)


class _Grouper:
    """Rows of places or directories with the group that they belong to; `area` is null where there is none."""

    def __init__(self, areas: Any, tag: int) -> None:
        self._areas = areas
        self._tag = tag

    def __call__(self, pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        areas: Areas = self._areas.value
        for piece in pieces:
            locations = piece.column("location").to_pylist()
            groups = [areas.group_of(location) or Group(None) for location in locations]
            columns = [
                pyarrow.array([group.area for group in groups], pyarrow.string()),
                pyarrow.array([group.part for group in groups], pyarrow.string()),
                pyarrow.array([self._tag] * len(locations), pyarrow.int32()),
                piece.column("location"),
                piece.column(1),
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=_GROUPED_SCHEMA)


class _Comparer:
    """The rules, group by group, in the order of the rows: places first. A group's directories are not kept."""

    def __init__(self, areas: Any, limits: Thresholds, unreadable: tuple[str, ...]) -> None:
        self._areas = areas
        self._limits = limits
        self._unreadable = unreadable

    def __call__(self, pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        rows = chain.from_iterable(map(_rows, pieces))
        found = (row for (area, _), of_group in groupby(rows, itemgetter(0, 1)) for row in self._group(area, of_group))
        while some := list(islice(found, _ROWS_A_BATCH)):
            yield pyarrow.RecordBatch.from_pylist(some, schema=_FOUND_SCHEMA)

    def _group(self, location: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        places: list[Place] = []
        sorter = None
        for _, _, tag, payload in rows:
            if tag == _PLACE:
                places.append(_place(payload))
                continue
            sorter = sorter or Sorter(self._area(location, places), places)
            sorter.add(_directory(payload))
        sorter = sorter or Sorter(self._area(location, places), places)
        yield from map(_finding_row, find(sorter, self._limits, self._unreadable))
        yield from _contents(sorter)

    def _area(self, location: str, places: list[Place]) -> Area:
        area: Area = self._areas.value.area(location)
        if area.table is None and not area.database:
            # A partition that lies in no table's directory is an area of its own.
            return msgspec.structs.replace(area, table=next(one for one in places if one.location == location))
        return area


def _rows(piece: pyarrow.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(piece.column(name).to_pylist() for name in ("area", "part", "tag", "payload")), strict=True)


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in finding.__struct_fields__}


def _contents(sorter: Sorter) -> Iterator[dict[str, Any]]:
    for location, places in sorter.places.items():
        content, place = sorter.contents[location], places[0]
        if content.is_there and place.is_audited and place.storage is Storage.PLAIN and not place.is_partitioned:
            counts = {name: getattr(content.heap, name) for name in ("files", "total_bytes", "newest_seconds")}
            names: Mapping[str, Any] = {
                name: getattr(place, name) for name in ("database", "table", "partition", "format")
            }
            yield {**names, **counts, "location": location}
