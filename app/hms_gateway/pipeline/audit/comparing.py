"""Brings places and directories of one area together in one task, and applies the rules there."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from hms_gateway.pipeline.audit.rules.areas import Areas, Group, Roots
from hms_gateway.pipeline.audit.rules.contents import Sorter
from hms_gateway.pipeline.audit.rules.finding import find
from hms_gateway.pipeline.audit.rules.values import Area, Directory, Finding, Limits, Place, Storage
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
    places: DataFrame, directories: DataFrame, areas: Any, limits: Limits, unreadable: tuple[str, ...]
) -> DataFrame:
    """FOUND: what is wrong with `places` (PLACES) and `directories` (DIRECTORIES); `areas` is a broadcast Areas."""
    owned = map_in_arrow(places, _Grouper(areas, _PLACE), _GROUPED)
    lying = map_in_arrow(directories, _Grouper(areas, _DIRECTORY), _GROUPED)
    alone = owned.where("area is null").select("location").distinct()
    rows = _with_tops(owned, alone).unionByName(_with_tops(lying, alone))
    grouped = rows.repartition("area", "part").sortWithinPartitions("area", "part", "tag")
    return map_in_arrow(grouped, _Comparer(areas, limits, unreadable), FOUND)


def outermost_elsewhere(places: DataFrame, roots: Any) -> DataFrame:
    """The locations of places that lie in none of some directories, a broadcast Roots, without those in others."""
    alone = map_in_arrow(places.select("location", "place"), _Grouper(roots, _PLACE), _GROUPED).where("area is null")
    tops = _with_tops(alone, alone.select("location").distinct())
    return tops.select(f.col("area").alias("location")).distinct()


def _with_tops(rows: DataFrame, alone: DataFrame) -> DataFrame:
    """What lies in no area goes to the outermost partition around it; what is around no partition is left out."""
    names = f.split("location", "/")
    above = f.transform(f.sequence(f.lit(1), f.size(names)), lambda n: f.array_join(f.slice(names, 1, n), "/"))
    lonely = rows.where("area is null").withColumn("above", f.explode(above))
    tops = alone.withColumnRenamed("location", "top")
    found = lonely.join(tops, lonely["above"] == tops["top"]).groupBy("location", "part", "tag", "payload")
    # The shortest of several locations around one is the first in order.
    outer = found.agg(f.min("top").alias("area")).select("area", "part", "tag", "location", "payload")
    return rows.where("area is not null").unionByName(outer)


class _Grouper:
    """Rows of places or directories with the group that they belong to; `area` is null where there is none."""

    def __init__(self, areas: Any, tag: int) -> None:
        self._areas = areas
        self._tag = tag

    def __call__(self, pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        areas: Areas | Roots = self._areas.value
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

    def __init__(self, areas: Any, limits: Limits, unreadable: tuple[str, ...]) -> None:
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
