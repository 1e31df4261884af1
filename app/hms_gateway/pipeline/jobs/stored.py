"""Tables of a run, kept as Parquet in the state folder and cut into batches: a batch is a row group.

Executors write the files and read them; the driver knows names and counts only. An index names the files that count,
and makes a table complete, so that what tasks that were killed or repeated have left behind is without effect.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from hms_gateway.pipeline.jobs.arrow import map_in_arrow
from hms_gateway.pipeline.jobs.failures import StateFailed, packed, unpacked
from hms_gateway.pipeline.jobs.state import State

ROWS_A_BATCH: Final = 1_000
_WRITTEN: Final = "part int, file string, batches array<long>, failure string"
_ROWS_A_READ: Final = 10_000


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A Parquet file; `batches` has the number of rows of each row group."""

    name: str
    batches: tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """A complete table in the folder `name` of the state. Picklable; methods that read raise StateFailed."""

    state: State
    name: str
    files: tuple[StoredFile, ...]
    packed_schema: str

    @classmethod
    def find(cls, state: State, name: str) -> Self | None:
        """None when it is not there or not complete."""
        index = state.read_json(f"{name}/index.json")
        if index is None:
            return None
        files = tuple(StoredFile(each["file"], tuple(each["batches"])) for each in index["files"])
        return cls(state, name, files, index["schema"])

    @property
    def rows(self) -> int:
        return sum(sum(file.batches) for file in self.files)

    @cached_property
    def batches(self) -> tuple[str, ...]:
        """The ids of the batches, in the order of the rows."""
        return tuple(f"{at:05}-{group:05}" for at, file in enumerate(self.files) for group in range(len(file.batches)))

    @property
    def schema(self) -> pyarrow.Schema:
        return pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(self.packed_schema)))

    def read(self, batch: str) -> pyarrow.Table:
        """The rows of one batch."""
        file, _, group = batch.partition("-")
        with self.state.input(f"{self.name}/{self.files[int(file)].name}") as opened:
            return pyarrow.parquet.ParquetFile(opened).read_row_group(int(group))

    def tables(self) -> Iterator[pyarrow.RecordBatch]:
        """Everything, a piece at a time."""
        for file in self.files:
            yield from _pieces(self.state, f"{self.name}/{file.name}")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, a piece at a time: for what is small, or for writing it elsewhere."""
        for table in self.tables():
            yield from table.to_pylist()

    def frame(self, spark: SparkSession) -> DataFrame:
        """As a DataFrame; read by Spark itself where the state is local, through fsspec elsewhere."""
        paths = [f"{self.name}/{file.name}" for file in self.files if file.batches]
        schema = spark_schema(self.schema)
        if not paths:
            return spark.createDataFrame([], schema)
        if self.state.is_local:
            return spark.read.schema(schema).parquet(*(f"file://{_quoted(self.state.path(path))}" for path in paths))
        state = self.state

        def read(slots: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for slot in slots:
                for number in slot.column(0).to_pylist():
                    yield from _pieces(state, paths[number])

        return map_in_arrow(spark.range(0, len(paths), 1, len(paths)), read, schema)


def store(
    state: State, name: str, rows: DataFrame | Iterable[Mapping[str, Any]] | pyarrow.Table, cut: "Cut", schema: Any
) -> Stored:
    """Write a table. Rows of the driver need a `schema` where there may be none. Raises StateFailed."""
    if isinstance(rows, DataFrame):
        files, arrow = _written_by_executors(state, name, rows, cut)
    else:
        files, arrow = _written_here(state, name, rows, cut, schema)
    text = base64.b64encode(arrow.serialize().to_pybytes()).decode("ascii")
    listed = [{"file": file.name, "batches": list(file.batches)} for file in files]
    state.write_json(f"{name}/index.json", {"schema": text, "files": listed})
    return Stored(state, name, tuple(files), text)


@dataclass(frozen=True, slots=True)
class Cut:
    """How rows are cut into batches: at most `rows`, and never two values of the columns `together`."""

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


def spark_schema(schema: pyarrow.Schema) -> Any:
    """Spark's schema of an Arrow one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _written_here(
    state: State, name: str, rows: Iterable[Mapping[str, Any]] | pyarrow.Table, cut: Cut, schema: Any
) -> tuple[list[StoredFile], pyarrow.Schema]:
    arrow, pieces = (rows.schema, rows.to_batches()) if isinstance(rows, pyarrow.Table) else _as_arrow(rows, schema)
    file = _write(state, name, "part-00000", arrow, cut.of(pieces))
    return ([file] if file.batches else []), arrow


def _as_arrow(
    rows: Iterable[Mapping[str, Any]], schema: pyarrow.Schema | None
) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
    listed = iter(rows)
    if schema is None:
        table = pyarrow.Table.from_pylist(list(listed))
        return table.schema, iter(table.to_batches())
    return schema, _in_pieces(listed, schema)


def _in_pieces(rows: Iterator[Mapping[str, Any]], schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    some: list[Mapping[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == _ROWS_A_READ:
            yield pyarrow.RecordBatch.from_pylist(some, schema)
            some = []
    if some:
        yield pyarrow.RecordBatch.from_pylist(some, schema)


def _written_by_executors(
    state: State, name: str, frame: DataFrame, cut: Cut
) -> tuple[list[StoredFile], pyarrow.Schema]:
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(frame.schema)

    def write(pieces: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        task = TaskContext.get()
        number = task.partitionId()
        try:
            file = _write(state, name, f"part-{number:05}-{task.taskAttemptId()}", arrow, cut.of(pieces))
            yield _row(number, file.name, list(file.batches), "")
        except StateFailed as failure:
            yield _row(number, "", [], packed(failure))

    written = map_in_arrow(frame, write, _WRITTEN).collect()
    for row in written:
        if row.failure:
            raise unpacked(row.failure)
    ordered = sorted((row for row in written if row.batches), key=lambda row: row.part)
    return [StoredFile(row.file, tuple(row.batches)) for row in ordered], arrow


def _row(part: int, file: str, batches: list[int], failure: str) -> pyarrow.RecordBatch:
    columns = {
        "part": pyarrow.array([part], pyarrow.int32()),
        "file": pyarrow.array([file]),
        "batches": pyarrow.array([batches], pyarrow.list_(pyarrow.int64())),
        "failure": pyarrow.array([failure]),
    }
    return pyarrow.RecordBatch.from_pydict(columns)


def _write(state: State, name: str, stem: str, schema: pyarrow.Schema, batches: Iterator[pyarrow.Table]) -> StoredFile:
    """A row group for each batch; no file where there is no row."""
    file_name, counts = f"{stem}.parquet", []
    first = next(batches, None)
    if first is None:
        return StoredFile(file_name, ())
    with (
        state.output(f"{name}/{file_name}") as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for table in _and(first, batches):
            writer.write_table(table.cast(schema), row_group_size=max(1, len(table)))
            counts.append(len(table))
    return StoredFile(file_name, tuple(counts))


def _and(first: pyarrow.Table, others: Iterator[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    yield first
    yield from others


def _pieces(state: State, name: str) -> Iterator[pyarrow.RecordBatch]:
    with state.input(name) as opened:
        yield from pyarrow.parquet.ParquetFile(opened).iter_batches(_ROWS_A_READ)


def _quoted(path: str) -> str:
    """Spark reads a path as a URI with patterns."""
    from urllib.parse import quote

    return quote(path)
