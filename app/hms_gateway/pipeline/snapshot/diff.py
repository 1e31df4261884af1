"""The job `diff`: objects that one of two snapshots lacks, and fields that differ; computed by Spark."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow
import pyarrow.parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_gateway.pipeline.catalog import changed_fields, cut
from hms_gateway.pipeline.errors import JobFailed, UsageRefused
from hms_gateway.pipeline.jobs.options import EXIT_DONE, EXIT_FOUND, Only
from hms_gateway.pipeline.jobs.spark import map_in_arrow, session
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.snapshot.manifest import Manifest
from hms_gateway.pipeline.snapshot.objects import KEYS, KINDS

# Two versions of an object: what about it differs.


ADDED: Final = "added"
DROPPED: Final = "dropped"
CHANGED: Final = "changed"


class ObjectChange(NamedTuple):
    """An object that one snapshot has, or a field of an object of both. `field` is empty where it is the object."""

    kind: str
    change: str
    database: str
    table: str
    partition: str
    item: str
    field: str = ""
    before: str | None = None
    after: str | None = None

    @property
    def name(self) -> str:
        """`sales.orders/ds=1 column`, as far as the kind has these."""
        place = ".".join(part for part in (self.database, self.table) if part)
        place += f"/{self.partition}" if self.partition else ""
        return " ".join(part for part in (place, self.item) if part)


def differences(
    key: Mapping[str, str], before: str | None, after: str | None, ignored: Sequence[str] = ()
) -> Iterator[ObjectChange]:
    """Between the texts of one object in two snapshots; None where a snapshot does not have it.

    `ignored` are patterns of fields that may differ.
    """
    names = (key["database"], key["table"], key["partition"], key["item"])
    if before is None or after is None:
        yield ObjectChange(key["kind"], ADDED if before is None else DROPPED, *names)
        return
    # Columns of a table are objects of their own.
    left_out = ("sd.cols[", "partitionKeys[") if key["kind"] == "tables" else ()
    for path, old, new in changed_fields(json.loads(before), json.loads(after)):
        if not path.startswith(left_out) and not any(_matches(pattern, path) for pattern in ignored):
            yield ObjectChange(key["kind"], CHANGED, *names, path, old, new)


def _matches(pattern: str, field: str) -> bool:
    """`*` is anything; brackets are those of the path."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), field, re.DOTALL) is not None


SHOWN: Final = 1_000
_ROWS_A_PIECE: Final = 10_000
_TEXTS: Final = (*KEYS, "object")
_SCHEMA: Final = pyarrow.schema([(name, pyarrow.string()) for name in ObjectChange._fields])
_SPARK_SCHEMA: Final = ", ".join(f"`{name}` string" for name in ObjectChange._fields)


@dataclass(frozen=True, kw_only=True)
class DiffArguments:
    """Two folders or fsspec URLs of snapshots.

    only     patterns of `database.table`; empty is everything
    ignored  patterns of fields that may differ, such as `parameters.transient_lastDdlTime`
    output   where Spark writes all differences as Parquet; empty is nowhere
    shown    how many differences the result has itself
    """

    before: str
    after: str
    only: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    output: str = ""
    shown: int = SHOWN
    storage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the snapshots."""

    path: str
    event: int
    taken: str


@dataclass(frozen=True, kw_only=True)
class DiffResult:
    """`counts` are objects by kind and change; `differences` are the first ones, in order."""

    before: Side
    after: Side
    counts: Mapping[str, Mapping[str, int]]
    differences: Sequence[ObjectChange] = ()
    total: int = 0
    output: str = ""

    @property
    def exit_status(self) -> int:
        """0: they are the same. 1: they differ."""
        return EXIT_FOUND if self.total else EXIT_DONE

    def as_json(self) -> str:
        shown = [{key: value for key, value in each._asdict().items() if value} for each in self.differences]
        values = {**msgspec.to_builtins(self), "differences": shown}
        return msgspec.json.format(msgspec.json.encode(values), indent=2).decode()


def diff(
    arguments: DiffArguments,
    *,
    master: str = "",
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> DiffResult:
    """Compare two snapshots. Raises JobFailed."""
    old, new = (State.of(path, arguments.storage) for path in (arguments.before, arguments.after))
    before, after = Manifest.of(old), Manifest.of(new)
    if before.only != after.only and not arguments.only:
        text = f"the snapshots are of {_scope(before)} and of {_scope(after)}"
        raise UsageRefused(text, "give --only with tables that both have")
    sides = (_side(old, before), _side(new, after))
    kinds = [kind for kind in KINDS if before.kinds[kind].digest != after.kinds[kind].digest]
    if not kinds:
        return DiffResult(before=sides[0], after=sides[1], counts={})
    with session("diff", master, conf or {}, spark) as opened:
        try:
            frames = [_objects(opened, folder, manifest, kinds) for folder, manifest in ((old, before), (new, after))]
            return _compared(arguments, sides, *frames)
        except PySparkException as error:
            said = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise JobFailed(f"the comparison failed in Spark: {said}") from error


def _scope(manifest: Manifest) -> str:
    return ", ".join(manifest.only) or "everything"


def _side(folder: State, manifest: Manifest) -> Side:
    return Side(path=folder.location, event=manifest.event, taken=manifest.taken)


def _compared(arguments: DiffArguments, sides: tuple[Side, Side], old: DataFrame, new: DataFrame) -> DiffResult:
    both = old.withColumnRenamed("object", "before").join(
        new.withColumnRenamed("object", "after"), list(KEYS), "full_outer"
    )
    only, ignored = Only(arguments.only), arguments.ignored

    def compare(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        found = (
            each
            for piece in pieces
            for row in piece.to_pylist()
            if only.wants(row["database"], row["table"])
            for each in differences(row, row["before"], row["after"], ignored)
        )
        for rows in cut(found, _ROWS_A_PIECE):
            yield pyarrow.RecordBatch.from_pylist([row._asdict() for row in rows], _SCHEMA)

    differing = both.where(~F.col("before").eqNullSafe(F.col("after")))
    frame = map_in_arrow(differing, compare, _SPARK_SCHEMA).persist()
    try:
        if arguments.output:
            frame.orderBy(*ObjectChange._fields[:7]).write.parquet(arguments.output)
        counts = _counts(frame)
        rows = frame.orderBy(*ObjectChange._fields[:7]).limit(arguments.shown).collect()
        return DiffResult(
            before=sides[0],
            after=sides[1],
            counts=counts,
            differences=[ObjectChange(*row) for row in rows],
            total=sum(sum(each.values()) for each in counts.values()),
            output=arguments.output,
        )
    finally:
        frame.unpersist()


def _counts(frame: DataFrame) -> dict[str, dict[str, int]]:
    objects = frame.select("kind", "change", *KEYS[1:]).distinct().groupBy("kind", "change").count()
    counts: dict[str, dict[str, int]] = {}
    for row in objects.orderBy("kind", "change").collect():
        counts.setdefault(row[0], {})[row[1]] = row[2]
    return counts


def _objects(spark: SparkSession, folder: State, manifest: Manifest, kinds: Sequence[str]) -> DataFrame:
    """Keys and texts of the objects of some kinds, read in executors."""
    files = [(kind, file.name) for kind in kinds for file in manifest.kinds[kind].files]
    schema = ", ".join(f"`{name}` string" for name in _TEXTS)
    if not files:
        return spark.createDataFrame([], schema)

    def read(slots: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for slot in slots:
            for number in slot.column(0).to_pylist():
                yield from _texts(folder, *files[number])

    return map_in_arrow(spark.range(0, len(files), 1, len(files)), read, schema)


def _texts(folder: State, kind: str, name: str) -> Iterator[pyarrow.RecordBatch]:
    columns = list(_TEXTS[1:])
    with folder.input(name) as opened:
        for piece in pyarrow.parquet.ParquetFile(opened).iter_batches(_ROWS_A_PIECE, columns=columns):
            kinds = pyarrow.array([kind] * len(piece), pyarrow.string())
            arrays = [kinds, *(piece.column(column) for column in columns)]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=list(_TEXTS))
