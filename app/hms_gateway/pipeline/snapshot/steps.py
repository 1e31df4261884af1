"""What executors do: read work into files, and keep of these files the rows that count."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql.pandas.types import to_arrow_schema

from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.only import Only
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.snapshot import work as working
from hms_gateway.pipeline.snapshot.columns import columns_of, schema_of
from hms_gateway.pipeline.snapshot.objects import KEYS, LISTED, ObjectRow, added, as_hex, digest_of
from hms_gateway.pipeline.snapshot.reading import objects
from hms_gateway.pipeline.snapshot.units import Rounds
from hms_gateway.pipeline.snapshot.work import Work
from hms_gateway.pipeline.source.columns import batches

_ROWS_A_PIECE: Final = 1_000
_ROWS_A_GROUP: Final = 20_000
# What was read, by round and kind; `digest` is set for the kinds that are read whole.
FOUND: Final = pyarrow.schema(
    [
        *((name, pyarrow.string()) for name in ("file", "kind", "digest")),
        ("rows", pyarrow.int64()),
        ("work", pyarrow.list_(pyarrow.struct(list(working.SCHEMA)))),
    ]
)
TO_SETTLE: Final = pyarrow.schema([("round", pyarrow.int32()), ("kind", pyarrow.string()), ("file", pyarrow.string())])
SETTLED: Final = pyarrow.schema(
    [*((name, pyarrow.string()) for name in ("file", "kind", "digest")), ("rows", pyarrow.int64())]
)


@dataclass(frozen=True)
class ReadStep:
    """Reads the work of a batch into one file for each kind, in `folder` of the state; the same files when repeated.

    Its rows name the files, and what is to be read besides.
    """

    state: State
    folder: str
    only: Only

    def __call__(self, client: Any, batch: RowBatch) -> StepOutcome:
        more: list[Work] = []
        with ExitStack() as stack:
            files = _Files(self.state, f"{self.folder}/{batch.id}", stack)
            for row in batch.rows():
                for found in objects(client, Work(**row), more.append):
                    if self.only.wants(found.database, found.table):
                        files.add(found)
            files.end()
        rows = [*files.rows(), {"file": "", "digest": "", "work": [each.as_row() for each in more]}]
        counts = {kind: file.rows for kind, file in files.of_kind.items()}
        return StepOutcome(counts, rows=pyarrow.Table.from_pylist(rows, FOUND))


class _Files:
    """A Parquet file for each kind of which there are rows."""

    def __init__(self, state: State, stem: str, stack: ExitStack) -> None:
        self.of_kind: dict[str, _KindFile] = {}
        self._state, self._stem, self._stack = state, stem, stack

    def add(self, row: ObjectRow) -> None:
        file = self.of_kind.get(row.kind)
        if file is None:
            file = self.of_kind[row.kind] = _KindFile(f"{self._stem}.{row.kind}.parquet", row.kind)
            file.open(self._state, self._stack)
        file.add(row)

    def end(self) -> None:
        for file in self.of_kind.values():
            file.flush()

    def rows(self) -> Iterator[dict[str, Any]]:
        for kind, file in self.of_kind.items():
            digest = as_hex(file.digest) if kind in LISTED else ""
            yield {"file": file.name, "kind": kind, "rows": file.rows, "digest": digest, "work": []}


class _KindFile:
    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind, self.rows, self.digest = name, kind, 0, 0
        self._rows: list[ObjectRow] = []

    def open(self, state: State, stack: ExitStack) -> None:
        file = stack.enter_context(state.output(self.name))
        schema = to_arrow_schema(schema_of(self.kind), timezone="UTC")
        self._writer = stack.enter_context(pyarrow.parquet.ParquetWriter(file, schema, compression="zstd"))

    def add(self, row: ObjectRow) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_A_PIECE:
            self.flush()

    def flush(self) -> None:
        for piece in batches(self._rows, schema_of(self.kind), columns_of(self.kind)):
            self._writer.write_batch(piece)
        self.rows += len(self._rows)
        if self.kind in LISTED:
            self.digest = added((self.digest, digest_of(row[:6] for row in self._rows)))
        self._rows = []


@dataclass(frozen=True)
class SettleStep:
    """Writes the rows that count of the files of a batch into the folder of the snapshot."""

    state: State
    out: State
    rounds: Rounds

    def __call__(self, client: Any, batch: RowBatch) -> StepOutcome:
        settled = [self._settled(batch.id, at, row) for at, row in enumerate(batch.rows())]
        return StepOutcome(rows=pyarrow.Table.from_pylist(settled, SETTLED))

    def _settled(self, batch: str, at: int, found: dict[str, Any]) -> dict[str, Any]:
        kind, number = found["kind"], found["round"]
        name, rows, digest = f"kind={kind}/part-{batch}-{at:02}.parquet", 0, 0
        with ExitStack() as stack:
            read = pyarrow.parquet.ParquetFile(stack.enter_context(self.state.input(found["file"])))
            writer = None
            for piece in self._pieces(read, kind, number):
                if writer is None:
                    out = stack.enter_context(self.out.output(name))
                    writer = stack.enter_context(
                        pyarrow.parquet.ParquetWriter(out, read.schema_arrow, compression="zstd")
                    )
                writer.write_table(piece, row_group_size=_ROWS_A_GROUP)
                rows += len(piece)
                digest = added((digest, digest_of(_keyed(kind, piece))))
        return {"file": name, "kind": kind, "rows": rows, "digest": as_hex(digest)}

    def _pieces(self, read: pyarrow.parquet.ParquetFile, kind: str, number: int) -> Iterator[pyarrow.Table]:
        for piece in read.iter_batches(_ROWS_A_GROUP):
            table = pyarrow.Table.from_batches([piece])
            kept = table if kind in LISTED else table.filter(pyarrow.array(self._counting(piece, number)))
            if len(kept):
                yield kept

    def _counting(self, piece: pyarrow.RecordBatch, number: int) -> list[bool]:
        names = (piece.column(name).to_pylist() for name in ("database", "table", "partition"))
        return [self.rounds.counts(number, *one) for one in zip(*names, strict=True)]


def _keyed(kind: str, table: pyarrow.Table) -> Iterator[tuple[str, ...]]:
    columns = (table.column(name).to_pylist() for name in (*KEYS[1:], "object"))
    return ((kind, *row) for row in zip(*columns, strict=True))
