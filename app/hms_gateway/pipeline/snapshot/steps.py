"""Steps of executors: read pieces of the catalog into files, and keep of these files the rows that count."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyspark.sql.pandas.types import to_arrow_schema

from hms_gateway.pipeline.catalog import CatalogReader, cut
from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.options import Only
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import texts
from hms_gateway.pipeline.snapshot.objects import (
    KEYS,
    LISTED,
    ObjectRow,
    added,
    as_hex,
    column_row,
    columns_of,
    constraint_rows,
    database_row,
    digest_of,
    function_row,
    parents,
    partition_row,
    privilege_row,
    role_grant_row,
    role_row,
    schema_of,
    statistics_row,
    table_row,
)
from hms_gateway.pipeline.snapshot.units import (
    DATABASES,
    DEFINITIONS,
    PARTITIONS,
    REFERENCE,
    TABLES,
    WORK,
    Rounds,
    Work,
    pieces,
)
from hms_gateway.pipeline.source.objects import StatisticsRow, batches
from hms_gateway.pipeline.source.planning import PlannedNames, PlannedTables, column_rows, rows
from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    MetaException,
    NoSuchObjectException,
    Role,
    Table,
    UnknownDBException,
    UnknownTableException,
)

# Reads work: calls of bounded size, objects as rows. What is dropped meanwhile is left out: an event will say it.


_STATISTICS_A_CALL: Final = 200
_GONE: Final = (NoSuchObjectException, UnknownDBException, UnknownTableException)
_WHOLE: Final = None

# A client of the metastore: anything with its `call`.
Caller = Any
More = Callable[[Work], None]


def objects(client: Caller, work: Work, more: More) -> Iterator[ObjectRow]:
    """The rows of the work. `more` is given what is to be read besides: partitions, and references between tables."""
    if work.what == DATABASES:
        yield from _databases(client, work.names)
    elif work.what in (TABLES, DEFINITIONS):
        with _may_be_gone(client, work.database):
            yield from _tables(client, work, more)
    elif work.what == PARTITIONS:
        yield from _partitions(client, work)
    else:
        yield from _LISTED[work.names[0]](client)


@contextmanager
def _may_be_gone(client: Caller, database: str, table: str = "") -> Iterator[None]:
    """Leaves out dropped objects. Some methods report these by a MetaException, which may mean anything."""
    try:
        yield
    except _GONE:
        return
    except MetaException:
        if _is_there(client, database, table):
            raise


def _is_there(client: Caller, database: str, table: str) -> bool:
    try:
        client.call("get_table", database, table) if table else client.call("get_database", database)
    except _GONE:
        return False
    return True


def _databases(client: Caller, names: Sequence[str]) -> Iterator[ObjectRow]:
    for name in names:
        with _may_be_gone(client, name):
            yield from map(database_row, rows(client, "databases", PlannedTables("", (name,)), _WHOLE))


def _tables(client: Caller, work: Work, more: More) -> Iterator[ObjectRow]:
    # It remembers which methods the metastore does not have.
    reader = CatalogReader(client)
    for table in rows(client, "tables", PlannedTables(work.database, tuple(work.names)), _WHOLE):
        yield from _definition(reader, table, more)
        if work.what == TABLES and table.partitionKeys:
            _partition_work(client, table, more)


def _definition(reader: CatalogReader, table: Table, more: More) -> Iterator[ObjectRow]:
    client, database, name = reader.client, table.dbName or "", table.tableName or ""
    yield table_row(table)
    yield from map(column_row, column_rows(table))
    with _may_be_gone(client, database, name):
        for one in reader.table_statistics(table):
            yield statistics_row(StatisticsRow(database, name, None, one))
    with _may_be_gone(client, database, name):
        found = [one for listed in reader.constraints(database, name).values() for one in listed]
        for constraint in constraint_rows(database, name, found):
            for parent in sorted(parents(constraint)):
                more(Work.of(REFERENCE, parent, database, name))
            yield constraint


def _partition_work(client: Caller, table: Table, more: More) -> None:
    database, name = table.dbName or "", table.tableName or ""
    with _may_be_gone(client, database, name):
        names = client.call("get_partition_names", database, name, -1)
        for piece in pieces(PARTITIONS, names, database, name):
            more(piece)


def _partitions(client: Caller, work: Work) -> Iterator[ObjectRow]:
    with _may_be_gone(client, work.database, work.table):
        part = PlannedNames(work.database, work.table, work.packed)
        for found in rows(client, "partitions", part, _WHOLE):
            yield partition_row(found)
        reader, table = CatalogReader(client), client.call("get_table", work.database, work.table)
        for names in cut(work.names, _STATISTICS_A_CALL):
            for partition, statistics in reader.partition_statistics(table, names).items():
                for one in statistics:
                    yield statistics_row(StatisticsRow(work.database, work.table, partition, one))


def _roles(client: Caller) -> Iterator[ObjectRow]:
    return (role_row(Role(roleName=name)) for name in client.call("get_role_names"))


def _role_grants(client: Caller) -> Iterator[ObjectRow]:
    for name in client.call("get_role_names"):
        try:
            found = client.call("get_principals_in_role", GetPrincipalsInRoleRequest(roleName=name))
        except (*_GONE, MetaException):
            if name in client.call("get_role_names"):
                raise
            continue
        yield from map(role_grant_row, found.principalGrants)


_LISTED: Final[dict[str, Callable[[Caller], Iterator[ObjectRow]]]] = {
    "functions": lambda client: map(function_row, CatalogReader(client).functions()),
    "privileges": lambda client: map(privilege_row, CatalogReader(client).grants()),
    "roles": _roles,
    "role_grants": _role_grants,
}


_ROWS_A_PIECE: Final = 1_000
_ROWS_A_GROUP: Final = 20_000
# What was read, by round and kind; `digest` is set for the kinds that are read whole.
FOUND: Final = pyarrow.schema(
    [
        *texts("file", "kind", "digest"),
        ("rows", pyarrow.int64()),
        ("work", pyarrow.list_(pyarrow.struct(list(WORK)))),
    ]
)
TO_SETTLE: Final = pyarrow.schema([("round", pyarrow.int32()), *texts("kind", "file")])
SETTLED: Final = pyarrow.schema([*texts("file", "kind", "digest"), ("rows", pyarrow.int64())])


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
