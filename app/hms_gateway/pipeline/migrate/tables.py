"""Steps of executors over tables: copying them, bringing them up to date, comparing both sides.

A step reads the source in a thread of its own while it writes what it has read before.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
import pyarrow

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.batches import Batch, Outcome, Refusal
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import JobFailed
from hms_gateway.pipeline.migrate.objects import Difference, Plain, of_chunk, plain, without
from hms_gateway.pipeline.migrate.reading import (
    CONSTRAINTS,
    PARTITIONS_A_CALL,
    Reader,
    is_acid,
    is_view,
    named_partitions,
)
from hms_gateway.pipeline.migrate.writing import REFUSALS, RecordingClient, Writer
from hms_gateway.structs import ColumnStatisticsObj, Partition, Struct, Table, ThriftException
from hms_gateway.wire import ApplicationError

T = TypeVar("T")

# Tables with more partitions are copied in chunks, by other tasks.
CONFLICT: Final = "it is in the target and differs from the source"
SMALL_PARTITIONS_MAX: Final = 1_000
# What a step leaves for others: chunks of partitions, tables to look at again, tables with ACID rows.
LEFT: Final = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("existed", pyarrow.bool_()),
        ("names", pyarrow.list_(pyarrow.string())),
    ]
)
DIFFERENCE_SCHEMA: Final = pyarrow.schema(
    [(name, pyarrow.string()) for name in ("kind", "object", "field", "source", "target")]
)


@dataclass(frozen=True)
class Sides:
    """Where from and how; pickled to executors.

    on_conflict  what to do with an object that was in the target before and differs: skip, replace or fail
    kinds        which kinds of objects are migrated
    recorded_at  the time of what has none
    declared     fields that the target cannot hold, by kind
    """

    source: Connection
    is_gateway: bool
    on_conflict: str
    kinds: frozenset[str]
    recorded_at: int
    patience_seconds: float
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def reading(self) -> PatientClient:
        """A client of the source."""
        return PatientClient(self.source, self.patience_seconds)

    def writing(self, client: PatientClient) -> PatientClient:
        """A client of the target, with the keys and the lease of the run's."""
        return RecordingClient.like(client, self.recorded_at) if self.is_gateway else client

    def compared(self, kind: str, value: Struct) -> Plain:
        """As it is compared: without what the target cannot hold."""
        return without(plain(value), self.declared.get(kind, {}))

    def conflict(self, item: str) -> str:
        """Why an object is left as it is. Raises JobFailed when conflicts end the run."""
        if self.on_conflict == "fail":
            hint = "compare them; --on-conflict skip leaves what is in the target, replace makes it the source's"
            raise JobFailed(f"{item}: {CONFLICT}", hint)
        return f"{CONFLICT}; left as it is (--on-conflict skip)"

    def wants(self, kind: str) -> bool:
        return kind in self.kinds


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table as the source has it. `partitions` is None where there are too many to be copied along."""

    table: Table
    existed: bool
    partitions: Mapping[str, Partition] | None
    chunks: Sequence[Sequence[str]] = ()
    statistics: Sequence[ColumnStatisticsObj] = ()
    partition_statistics: Mapping[str, Sequence[ColumnStatisticsObj]] = field(default_factory=dict)
    constraints: Mapping[str, Sequence[Struct]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.table.dbName}.{self.table.tableName}"


@dataclass(frozen=True)
class CopyTables:
    """Rows of (database, table, existed): the tables of one database, with their partitions where these are few."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: Batch) -> Outcome:
        work = _Work(self.sides)
        rows = batch.rows()
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for loaded in ahead(lambda: self._load(Reader(source), rows)):
                work.copy(Writer(target, self.sides.is_gateway), Reader(target), loaded)
        return work.outcome()

    def _load(self, reader: Reader, rows: Sequence[Mapping[str, Any]]) -> Iterator[Loaded]:
        database = rows[0]["database"]
        existed = {row["table"].lower(): row["existed"] for row in rows}
        for name, table in reader.tables(database, [row["table"] for row in rows]).items():
            yield self._loaded(reader, table, existed.get(name, False))

    def _loaded(self, reader: Reader, table: Table, existed: bool) -> Loaded:
        wants = self.sides.wants
        partitions, chunks = partitions_of(reader, table) if wants("partitions") else ({}, ())
        return Loaded(
            table,
            existed,
            partitions,
            chunks,
            reader.table_statistics(table) if wants("statistics") else (),
            reader.partition_statistics(table, list(partitions)) if wants("statistics") and partitions else {},
            reader.constraints(table.dbName or "", table.tableName or "") if wants("constraints") else {},
        )


@dataclass(frozen=True)
class CopyPartitions:
    """Rows of (database, table, existed, names): partitions of large tables, a call's worth in a row."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: Batch) -> Outcome:
        work = _Work(self.sides)
        rows = batch.rows()
        with self.sides.reading() as source, self.sides.writing(client) as target:
            writer, reader = Writer(target, self.sides.is_gateway), Reader(target)
            for table, partitions, statistics in ahead(lambda: self._load(Reader(source), rows)):
                work.put_partitions(writer, reader, table, partitions, statistics)
        return work.outcome()

    def _load(
        self, reader: Reader, rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Table, Mapping[str, Partition], Mapping[str, Sequence[ColumnStatisticsObj]]]]:
        for row in rows:
            table = reader.tables(row["database"], [row["table"]]).get(row["table"].lower())
            if table is not None:
                partitions = reader.partitions(table, row["names"])
                wants = self.sides.wants("statistics")
                yield table, partitions, reader.partition_statistics(table, list(partitions)) if wants else {}


@dataclass(frozen=True)
class Refresh:
    """Rows of (database, table, names): what may have changed since it was copied; no names mean all of the table.

    A table that the source does not have is dropped from the target, without data: it was copied by the run.
    """

    sides: Sides

    def __call__(self, client: PatientClient, batch: Batch) -> Outcome:
        work = _Work(self.sides)
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for row in batch.rows():
                self._refresh(work, Reader(source), Writer(target, self.sides.is_gateway), Reader(target), row)
        return work.outcome()

    def _refresh(self, work: "_Work", source: Reader, writer: Writer, target: Reader, row: Mapping[str, Any]) -> None:
        database, name, names = row["database"], row["table"], row["names"]
        table = source.tables(database, [name]).get(name)
        try:
            if table is None:
                writer.drop_table(database, name)
                work.count("dropped tables")
                return
            if names is None or not target.tables(database, [name]):
                work.refresh_table(source, writer, target, table)
            else:
                work.refresh_partitions(source, writer, target, table, names)
        except REFUSALS as refused:
            work.refuse(f"{database}.{name}", refused)


@dataclass(frozen=True)
class WriteIdsOf:
    """Rows of ACID tables: the target lets the same write ids count as the source."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: Batch) -> Outcome:
        work = _Work(self.sides)
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for row in batch.rows():
                place = row["database"], row["table"]
                ids, writer = Reader(source).write_ids(*place), Writer(target, self.sides.is_gateway)
                if ids is None:
                    continue
                try:
                    writer.put_write_ids(*place, ids)
                except (*REFUSALS, ApplicationError) as refused:
                    work.refuse(".".join(place), f"its write ids are not taken: {refused}")
                    continue
                there = Reader(target).write_ids(*place)
                if there == ids:
                    work.count("tables with write ids")
                else:
                    text = f"write ids of the target are {there}, those of the source {ids}; the table had given some"
                    work.refuse(".".join(place), text)
        return work.outcome()


@dataclass(frozen=True)
class Compare:
    """Rows of (database, table): reads both sides; differences are rows, field by field."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: Batch) -> Outcome:
        found: list[Difference] = []
        counts: dict[str, int] = {}
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for row in batch.rows():
                compared = Compared(self.sides, Reader(source), Reader(target), row["database"], row["table"])
                found += compared.differences()
                for kind, count in compared.counts.items():
                    counts[kind] = counts.get(kind, 0) + count
        return Outcome(counts={**counts, "differences": len(found)}, rows=difference_rows(found))


@dataclass
class Compared:
    """One table on both sides."""

    sides: Sides
    source: Reader
    target: Reader
    database: str
    table: str
    counts: dict[str, int] = field(default_factory=dict)

    def differences(self) -> Iterator[Difference]:
        tables = [reader.tables(self.database, [self.table]).get(self.table.lower()) for reader in self._readers]
        yield from self._of("table", *[{} if one is None else {self._name(): one} for one in tables])
        left, right = tables
        if left is None or right is None:
            return
        if self.sides.wants("statistics"):
            yield from self._of_statistics(None, left, right)
        if self.sides.wants("constraints"):
            found = [_constraints_by_name(reader.constraints(self.database, self.table)) for reader in self._readers]
            yield from self._of("constraint", *found)
        if self.sides.wants("partitions") and left.partitionKeys:
            yield from self._of_partitions(left, right)

    @property
    def _readers(self) -> tuple[Reader, Reader]:
        return self.source, self.target

    def _name(self) -> str:
        return f"{self.database}.{self.table}"

    def _of_partitions(self, left: Table, right: Table) -> Iterator[Difference]:
        here, there = partitions_of(self.source, left), partitions_of(self.target, right)
        if here[0] is not None and there[0] is not None:
            yield from self._of_chunk(left, right, here[0], there[0])
            return
        names = sorted(_names(*here) | _names(*there))
        for first in range(0, len(names), PARTITIONS_A_CALL):
            some = names[first : first + PARTITIONS_A_CALL]
            found = self.source.partitions(left, some), self.target.partitions(right, some)
            yield from self._of_chunk(left, right, *found)

    def _of_chunk(
        self, left: Table, right: Table, here: Mapping[str, Partition], there: Mapping[str, Partition]
    ) -> Iterator[Difference]:
        sides = [{f"{self._name()}/{name}": one for name, one in side.items()} for side in (here, there)]
        yield from self._of("partition", *sides)
        if self.sides.wants("statistics"):
            yield from self._of_statistics(sorted(here.keys() & there.keys()), left, right)

    def _of_statistics(self, names: Sequence[str] | None, left: Table, right: Table) -> Iterator[Difference]:
        sides = []
        for reader, table in zip(self._readers, (left, right), strict=True):
            if names is None:
                found = {f"{self._name()} {one.colName}": one for one in reader.table_statistics(table)}
            else:
                of_all = reader.partition_statistics(table, names)
                found = {f"{self._name()}/{name} {one.colName}": one for name in of_all for one in of_all[name]}
            sides.append(found)
        yield from self._of("statistics", *sides)

    def _of(self, kind: str, here: Mapping[str, Struct], there: Mapping[str, Struct]) -> Iterator[Difference]:
        self.counts[f"compared {kind}s"] = self.counts.get(f"compared {kind}s", 0) + len(here)
        compared = self.sides.compared
        yield from of_chunk(
            kind,
            {name: compared(kind, one) for name, one in here.items()},
            {name: compared(kind, one) for name, one in there.items()},
        )


@dataclass
class _Work:
    """What a step has done, and how it does it."""

    sides: Sides
    counts: dict[str, int] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def refuse(self, item: str, why: ThriftException | str) -> None:
        self.refused.append(Refusal(item, why if isinstance(why, str) else f"{type(why).__name__}: {_said(why)}"))

    def outcome(self) -> Outcome:
        rows = pyarrow.Table.from_pylist(self.left, LEFT) if self.left else None
        return Outcome(counts=self.counts, refused=self.refused, rows=rows)

    def leave(self, what: str, table: Table, *, existed: bool = True, names: Sequence[str] = ()) -> None:
        row = {"what": what, "database": table.dbName, "table": table.tableName, "existed": existed}
        self.left.append({**row, "names": list(names)})

    def copy(self, writer: Writer, target: Reader, loaded: Loaded) -> None:
        try:
            if not self._put_table(writer, target, loaded):
                return
            if is_acid(loaded.table.parameters):
                self.leave("acid", loaded.table)
            writer.put_table_statistics(loaded.table, loaded.statistics)
            self._put_constraints(writer, target, loaded.table, loaded.constraints)
            if loaded.partitions is None:
                self.count("large tables")
                for names in loaded.chunks:
                    self.leave("chunk", loaded.table, existed=loaded.existed, names=names)
            elif loaded.partitions:
                existing = target if loaded.existed else None
                self.put_partitions(writer, existing, loaded.table, loaded.partitions, loaded.partition_statistics)
        except REFUSALS as refused:
            self.refuse(loaded.name, refused)

    def put_partitions(
        self,
        writer: Writer,
        target: Reader | None,
        table: Table,
        partitions: Mapping[str, Partition],
        statistics: Mapping[str, Sequence[ColumnStatisticsObj]],
    ) -> None:
        """`target` is None where none of them can be there."""
        there = {} if target is None else target.partitions(table, list(partitions))
        differing = [name for name, one in there.items() if self._differs("partition", partitions.get(name), one)]
        missing = [one for name, one in partitions.items() if name not in there]
        writer.add_partitions(table, missing)
        self.count("partitions", len(missing))
        left = set(differing)
        if differing and self._replaces(f"{table.dbName}.{table.tableName}/{differing[0]} and {len(differing)} in all"):
            writer.alter_partitions(table, [partitions[name] for name in differing])
            self.count("replaced partitions", len(differing))
            left = set()
        writer.put_partition_statistics(table, {name: each for name, each in statistics.items() if name not in left})

    def refresh_table(self, source: Reader, writer: Writer, target: Reader, table: Table) -> None:
        """The table with all its partitions, whatever there is of it in the target."""
        database, name = table.dbName or "", (table.tableName or "").lower()
        there = target.tables(database, [name]).get(name)
        if there is None:
            writer.create_table(table)
        elif self._differs("table", table, there):
            self._replace(writer, table, there)
        self.count("refreshed tables")
        if is_acid(table.parameters):
            self.leave("acid", table)
        if self.sides.wants("statistics"):
            self._refresh_statistics(source, writer, target, table)
        if self.sides.wants("constraints"):
            self._put_constraints(writer, target, table, source.constraints(database, name), drops=True)
        if self.sides.wants("partitions") and table.partitionKeys:
            names = set(source.partition_names(table))
            gone = set(target.partition_names(table)) - names
            writer.drop_partitions(table, sorted(gone))
            self.count("dropped partitions", len(gone))
            self.refresh_partitions(source, writer, target, table, sorted(names))

    def refresh_partitions(
        self, source: Reader, writer: Writer, target: Reader, table: Table, names: Sequence[str]
    ) -> None:
        for first in range(0, len(names), PARTITIONS_A_CALL):
            some = list(names[first : first + PARTITIONS_A_CALL])
            here, there = source.partitions(table, some), target.partitions(table, some)
            writer.add_partitions(table, [one for name, one in here.items() if name not in there])
            both = [(one, there[name]) for name, one in here.items() if name in there]
            writer.alter_partitions(table, [one for one, other in both if self._differs("partition", one, other)])
            writer.drop_partitions(table, sorted(there.keys() - here.keys()))
            self.count("refreshed partitions", len(here))
            if self.sides.wants("statistics"):
                self._refresh_partition_statistics(source, writer, target, table, sorted(here))

    def _refresh_statistics(self, source: Reader, writer: Writer, target: Reader, table: Table) -> None:
        here, there = source.table_statistics(table), target.table_statistics(table)
        if list(map(plain, here)) == list(map(plain, there)):
            return
        writer.put_table_statistics(table, here)
        for column in {one.colName for one in there} - {one.colName for one in here}:
            writer.delete_statistics(table, None, column or "")

    def _refresh_partition_statistics(
        self, source: Reader, writer: Writer, target: Reader, table: Table, names: Sequence[str]
    ) -> None:
        here, there = source.partition_statistics(table, names), target.partition_statistics(table, names)
        changed = {name: each for name, each in here.items() if _plain_list(each) != _plain_list(there.get(name, ()))}
        writer.put_partition_statistics(table, changed)
        for name, each in there.items():
            for column in {one.colName for one in each} - {one.colName for one in here.get(name, ())}:
                writer.delete_statistics(table, name, column or "")

    def _put_table(self, writer: Writer, target: Reader, loaded: Loaded) -> bool:
        """Whether what belongs to the table is to be copied, too."""
        table = loaded.table
        if not loaded.existed:
            writer.create_table(table)
            self.count("tables")
            return True
        there = target.tables(table.dbName or "", [table.tableName or ""]).get((table.tableName or "").lower())
        if there is None:
            writer.create_table(table)
        elif self._differs("table", table, there):
            if not self._replaces(loaded.name):
                return False
            self._replace(writer, table, there)
            self.count("replaced tables")
            return True
        self.count("tables that were there")
        return True

    def _replace(self, writer: Writer, table: Table, there: Table) -> None:
        if _keys(table) != _keys(there) or is_view(table) != is_view(there):
            writer.drop_table(there.dbName or "", there.tableName or "")
            writer.create_table(table)
        else:
            writer.replace_table(table)

    def _replaces(self, item: str) -> bool:
        if self.sides.on_conflict == "replace":
            return True
        self.refuse(item, self.sides.conflict(item))
        return False

    def _put_constraints(
        self,
        writer: Writer,
        target: Reader,
        table: Table,
        wanted: Mapping[str, Sequence[Struct]],
        *,
        drops: bool = False,
    ) -> None:
        database, name = table.dbName or "", table.tableName or ""
        if not wanted and not drops:
            return
        here, there = _constraints_by_name(wanted), _constraints_by_name(target.constraints(database, name))
        for gone in {_name_of(key) for key in there.keys() - here.keys()} if drops else ():
            writer.drop_constraint(database, name, gone)
        missing = {key: value for key, value in here.items() if key not in there}
        if missing:
            foreign = {key for key in missing if key.startswith("foreignKeys ")}
            self._add_constraints(writer, database, name, {k: v for k, v in missing.items() if k not in foreign})
            # The table that they refer to may come later; they are added when all tables are there.
            try:
                self._add_constraints(writer, database, name, {k: missing[k] for k in foreign})
            except REFUSALS:
                self.leave("again", table)

    def _add_constraints(self, writer: Writer, database: str, table: str, missing: Mapping[str, Struct]) -> None:
        by_field: dict[str, list[Struct]] = {}
        for key in sorted(missing):
            by_field.setdefault(key.split(" ", 1)[0], []).append(missing[key])
        writer.put_constraints(database, table, by_field)
        self.count("constraints", len(missing))

    def _differs(self, kind: str, one: Struct | None, other: Struct) -> bool:
        return one is None or self.sides.compared(kind, one) != self.sides.compared(kind, other)


def partitions_of(reader: Reader, table: Table) -> tuple[Mapping[str, Partition] | None, Sequence[Sequence[str]]]:
    """All of a table, or None and their names in chunks where there are many."""
    if not table.partitionKeys:
        return {}, ()
    found = reader.partitions_up_to(table, SMALL_PARTITIONS_MAX)
    if found is not None:
        return named_partitions(table, found), ()
    names = reader.partition_names(table)
    return None, [names[first : first + PARTITIONS_A_CALL] for first in range(0, len(names), PARTITIONS_A_CALL)]


def _names(partitions: Mapping[str, Partition] | None, chunks: Sequence[Sequence[str]]) -> set[str]:
    return set(partitions or ()) | {name for chunk in chunks for name in chunk}


def difference_rows(found: Sequence[Difference]) -> pyarrow.Table | None:
    if not found:
        return None
    return pyarrow.Table.from_pylist([{name: getattr(one, name) for name in DIFFERENCE_SCHEMA.names} for one in found])


def ahead(produce: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What `produce` gives, made in another thread while the one before is used; it is at most two ahead."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(2)
    is_given_up = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not is_given_up.is_set():
            try:
                ready.put((kind, value), timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def run() -> None:
        try:
            for value in produce():
                if not put("value", value):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=run, name="reading ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        is_given_up.set()
        thread.join()


def _constraints_by_name(found: Mapping[str, Sequence[Struct]]) -> dict[str, Struct]:
    named = {}
    for kind in CONSTRAINTS:
        for one in found.get(kind.field, ()):
            said = msgspec.to_builtins(one)
            columns = [str(said.get(name)) for name in ("column_name", "fkcolumn_name", "key_seq") if said.get(name)]
            named[f"{kind.field} {said.get(kind.name)} {' '.join(columns)}"] = one
    return named


def _name_of(key: str) -> str:
    return key.split(" ")[1]


def _keys(table: Table) -> list[str | None]:
    return [key.name for key in table.partitionKeys or ()]


def _plain_list(found: Sequence[Struct]) -> list[Plain]:
    return [plain(one) for one in found]


def _said(error: ThriftException) -> str:
    return getattr(error, "message", None) or "no message"
