"""Tables of a run, kept as Parquet in the state folder and cut into batches: a batch is a row group.

Executors write the files and read them; the driver knows names and counts only. An index names the files that count,
and makes a table complete, so that what tasks that were killed or repeated have left behind is without effect.
"""

import base64
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self

import msgspec
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from hms_gateway.pipeline.errors import StateFailed
from hms_gateway.pipeline.jobs.spark import map_in_arrow, run_in_tasks
from hms_gateway.pipeline.jobs.state import State

ROWS_A_BATCH: Final = 1_000
_ROWS_A_PIECE: Final = 10_000
ROWS_OF_A_KIND: Final = 5_000

# The rows that a batch of another table becomes.
Derive = Callable[[pyarrow.Table], Iterator[pyarrow.RecordBatch]]
# Entered once in each task; gives what is called with the batches of each file.
Then = Callable[[], AbstractContextManager[Callable[[Sequence["StoredBatch"]], None]]]


class StoredBatch(NamedTuple):
    """A row group of a Parquet file, named relative to the state. `of` are the values its rows have together."""

    id: str
    file: str
    group: int
    rows: int
    of: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Stored:
    """A complete table of the state. Picklable; methods that read raise StateFailed.

    batches  in the order of the rows
    """

    state: State
    batches: tuple[StoredBatch, ...]
    packed_schema: str
    is_whole: bool = True

    @classmethod
    def find(cls, state: State, folder: str) -> Self | None:
        """None when it is not there or not complete."""
        index = state.read_json(f"{folder}/index.json")
        if index is None:
            return None
        files = msgspec.convert(index["files"], list[StoredFile])
        return cls(state, tuple(_numbered(folder, files)), index["schema"])

    @classmethod
    def complete(cls, state: State, folder: str, files: "Sequence[StoredFile]", schema: pyarrow.Schema) -> Self:
        """Make a table out of files that are there: from now on `find` finds it."""
        text = base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")
        state.write_json(f"{folder}/index.json", {"schema": text, "files": files})
        return cls(state, tuple(_numbered(folder, files)), text)

    @classmethod
    def joined(cls, parts: "Sequence[Stored]") -> Self:
        """Tables of one schema, one behind the other. Batches get new ids."""
        together = [batch for part in parts for batch in part.batches]
        batches = tuple(batch._replace(id=f"{at:06}") for at, batch in enumerate(together))
        first = parts[0]
        return cls(first.state, batches, first.packed_schema, all(part.is_whole for part in parts))

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def schema(self) -> pyarrow.Schema:
        return pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(self.packed_schema)))

    def where(self, keeps: Callable[[tuple[Any, ...]], bool]) -> "Stored":
        """The batches whose common values are wanted."""
        return replace(self, batches=tuple(batch for batch in self.batches if keeps(batch.of)), is_whole=False)

    def read(self, batch: StoredBatch) -> pyarrow.Table:
        """The rows of one batch."""
        with self.state.input(batch.file) as opened:
            return pyarrow.parquet.ParquetFile(opened).read_row_group(batch.group)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, a batch at a time: for what is small, or for writing it elsewhere."""
        for batch in self.batches:
            yield from self.read(batch).to_pylist()

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows in a DataFrame; read by Spark itself where the state is local, through fsspec elsewhere."""
        schema = spark_schema(self.schema)
        if not self.batches:
            return spark.createDataFrame([], schema)
        if self.state.is_local and self.is_whole:
            files = dict.fromkeys(f"file://{self.state.path(batch.file)}" for batch in self.batches)
            # To Spark a path is not a URI, and with these options not a pattern; without the second one that looks
            # like a pattern is read once for each other path.
            options = {"__globPaths__": "false", "recursiveFileLookup": "true"}
            return spark.read.schema(schema).options(**options).parquet(*files)
        slots = min(len(self.batches), _tasks(spark))

        def read(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for piece in pieces:
                for slot in piece.column(0).to_pylist():
                    for batch in self.batches[slot::slots]:
                        yield from self.read(batch).to_batches()

        return map_in_arrow(spark.range(0, slots, 1, slots), read, schema)


class StoredFile(msgspec.Struct, frozen=True):
    """A Parquet file with the rows of each row group, and the values that these have together."""

    name: str = msgspec.field(name="file")
    batches: tuple[tuple[int, tuple[Any, ...]], ...]


def store(
    state: State, folder: str, rows: DataFrame | Iterable[Mapping[str, Any]] | pyarrow.Table, cut: "Cut", schema: Any
) -> Stored:
    """Write a table. Rows of the driver that are no table need a `schema`. Raises StateFailed."""
    if isinstance(rows, DataFrame):
        files, arrow = _written_by_executors(state, folder, rows, cut)
    else:
        files, arrow = _written_here(state, folder, rows, cut, schema)
    return Stored.complete(state, folder, files, arrow)


def derive(
    spark: SparkSession,
    state: State,
    folder: str,
    source: Stored,
    function: Derive,
    schema: pyarrow.Schema,
    cut: "Cut",
    then: Then | None = None,
) -> Stored:
    """Write the table that `function` makes of each batch of another, in executors, in its order. Raises StateFailed.

    Each batch becomes a file with a mark of its own, so that it is not done again when the run is resumed. `then` gets
    what each batch became at once, with the ids that it has in the complete table.
    """
    slots = min(len(source.batches), _tasks(spark))

    def make(slot: int) -> None:
        with (then or nullcontext)() as follow:
            for at in range(slot, len(source.batches), slots):
                file = _make(state, folder, source, source.batches[at], function, schema, cut)
                if follow is not None:
                    follow(list(_batches(folder, at, file)))

    run_in_tasks(spark, slots, make)
    marks = [state.read_json(f"{folder}/made/{batch.id}.json") for batch in source.batches]
    if None in marks:
        text = f"state {state.location} does not have what executors wrote to it"
        raise StateFailed(text, "give a --state that the driver and all executors share")
    return Stored.complete(state, folder, msgspec.convert(marks, list[StoredFile]), schema)


def made(state: State, folder: str) -> int:
    """The number of batches that `derive` has done so far."""
    return len(state.names(f"{folder}/made"))


def _make(
    state: State,
    folder: str,
    source: Stored,
    batch: StoredBatch,
    function: Derive,
    schema: pyarrow.Schema,
    cut: "Cut",
) -> StoredFile:
    mark = f"{folder}/made/{batch.id}.json"
    if (made_before := state.read_json(mark)) is not None:
        return msgspec.convert(made_before, StoredFile)
    pieces = function(source.read(batch))
    file = _write(state, folder, f"{batch.id}-{TaskContext.get().taskAttemptId()}", schema, cut.of(pieces), cut)
    state.write_json(mark, file)
    return file


def _numbered(folder: str, files: Sequence[StoredFile]) -> Iterator[StoredBatch]:
    """Files without rows count, so that a batch has its id before it is known which these are."""
    for at, file in enumerate(files):
        yield from _batches(folder, at, file)


def _batches(folder: str, at: int, file: StoredFile) -> Iterator[StoredBatch]:
    for group, (rows, of) in enumerate(file.batches):
        yield StoredBatch(f"{at:05}-{group:05}", f"{folder}/{file.name}", group, rows, of)


def _tasks(spark: SparkSession) -> int:
    """A few for each processor, so that none waits long for the last one."""
    return max(1, 3 * int(spark.sparkContext.defaultParallelism))


@dataclass(frozen=True, slots=True)
class Cut:
    """Rules to cut rows into batches: at most `rows`, and never two values of the columns `together`."""

    rows: int = ROWS_A_BATCH
    together: tuple[str, ...] = ()

    def of(self, pieces: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
        """Batches of rows that come in pieces of any size."""
        kept: list[pyarrow.RecordBatch] = []
        for piece in pieces:
            for part in self._parts(piece):
                if kept and (sum(map(len, kept)) >= self.rows or not self._belongs(kept[-1], part)):
                    yield pyarrow.Table.from_batches(kept)
                    kept = []
                while kept and len(part) + sum(map(len, kept)) > self.rows:
                    missing = self.rows - sum(map(len, kept))
                    yield pyarrow.Table.from_batches([*kept, part.slice(0, missing)])
                    kept, part = [], part.slice(missing)
                while len(part) > self.rows:
                    yield pyarrow.Table.from_batches([part.slice(0, self.rows)])
                    part = part.slice(self.rows)
                if len(part):
                    kept.append(part)
        if kept:
            yield pyarrow.Table.from_batches(kept)

    def _parts(self, piece: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
        """Cut where the columns `together` change."""
        begin = 0
        for end in self._changes(piece):
            yield piece.slice(begin, end - begin)
            begin = end
        if begin < len(piece):
            yield piece.slice(begin)

    def _changes(self, piece: pyarrow.RecordBatch) -> list[int]:
        if not self.together or len(piece) < 2:
            return []
        changed = None
        for column in (piece.column(name) for name in self.together):
            differs = pyarrow.compute.not_equal(column.slice(1), column.slice(0, len(piece) - 1))
            changed = differs if changed is None else pyarrow.compute.or_(changed, differs)
        return [at + 1 for at in pyarrow.compute.indices_nonzero(changed).to_pylist()]

    def _belongs(self, before: pyarrow.RecordBatch, part: pyarrow.RecordBatch) -> bool:
        last = len(before) - 1
        return all(before.column(name)[last] == part.column(name)[0] for name in self.together)


def pieces(
    rows: Iterable[tuple[Any, ...]], schema: pyarrow.Schema, together: Callable[[tuple[Any, ...]], Any] = itemgetter(0)
) -> Iterator[pyarrow.RecordBatch]:
    """Rows of the columns of a schema as batches, each of rows that have one value `together`."""
    kept: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        same = kept.setdefault(together(row), [])
        same.append(row)
        if len(same) == ROWS_OF_A_KIND:
            yield piece(same, schema)
            same.clear()
    yield from (piece(same, schema) for same in kept.values() if same)


def piece(rows: Sequence[tuple[Any, ...]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """At least one row."""
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(values, of.type) for values, of in columns], schema=schema)


def write_rows(state: State, file: str, rows: Iterable[Mapping[str, Any]], schema: pyarrow.Schema) -> None:
    """A Parquet file of rows, a piece at a time. Raises StateFailed."""
    with state.output(file) as opened, pyarrow.parquet.ParquetWriter(opened, schema, compression="zstd") as writer:
        for piece in _in_pieces(iter(rows), schema):
            writer.write_batch(piece)


def texts(*names: str) -> list[pyarrow.Field]:
    """Columns of texts."""
    return [pyarrow.field(name, pyarrow.string()) for name in names]


def numbers(*names: str) -> list[pyarrow.Field]:
    """Columns of whole numbers."""
    return [pyarrow.field(name, pyarrow.int64()) for name in names]


def spark_schema(schema: pyarrow.Schema) -> Any:
    """Spark's schema of an Arrow one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _written_here(
    state: State, folder: str, rows: Iterable[Mapping[str, Any]] | pyarrow.Table, cut: Cut, schema: Any
) -> tuple[list[StoredFile], pyarrow.Schema]:
    if isinstance(rows, pyarrow.Table):
        arrow, pieces = rows.schema, iter(rows.to_batches())
    else:
        arrow, pieces = schema, _in_pieces(iter(rows), schema)
    return [_write(state, folder, "part-00000", arrow, cut.of(pieces), cut)], arrow


def _in_pieces(rows: Iterator[Mapping[str, Any]], schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    while some := list(islice(rows, _ROWS_A_PIECE)):
        yield pyarrow.RecordBatch.from_pylist(some, schema)


def _written_by_executors(
    state: State, folder: str, frame: DataFrame, cut: Cut
) -> tuple[list[StoredFile], pyarrow.Schema]:
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(frame.schema)

    def write(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        task = TaskContext.get()
        number = task.partitionId()
        outcome: StoredFile | StateFailed
        try:
            outcome = _write(state, folder, f"part-{number:05}-{task.taskAttemptId()}", arrow, cut.of(pieces), cut)
        except StateFailed as failure:
            outcome = failure
        yield pyarrow.RecordBatch.from_pydict({"outcome": [pickle.dumps((number, outcome))]})

    rows = map_in_arrow(frame, write, "outcome binary").collect()
    outcomes = [outcome for _, outcome in sorted((pickle.loads(row.outcome) for row in rows), key=itemgetter(0))]
    for outcome in outcomes:
        if isinstance(outcome, StateFailed):
            raise outcome
    return outcomes, arrow


def _write(
    state: State, folder: str, stem: str, schema: pyarrow.Schema, batches: Iterator[pyarrow.Table], cut: Cut
) -> StoredFile:
    """A row group for each batch; no file where there is no row."""
    name, written = f"{stem}.parquet", []
    first = next(batches, None)
    if first is None:
        return StoredFile(name=name, batches=())
    with (
        state.output(f"{folder}/{name}") as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for table in chain([first], batches):
            writer.write_table(table.cast(schema), row_group_size=len(table))
            written.append((len(table), tuple(table.column(name)[0].as_py() for name in cut.together)))
    return StoredFile(name=name, batches=tuple(written))
