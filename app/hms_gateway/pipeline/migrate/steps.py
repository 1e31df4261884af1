"""Steps of a migration in executors: copy tables and partitions, refresh them, compare them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow

from hms_gateway.pipeline.catalog import (
    PARTITIONS_A_CALL,
    CatalogReader,
    constraints_by_name,
    cut,
    is_acid,
    is_view,
    partitions_of,
)
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.stored import texts
from hms_gateway.pipeline.migrate.sides import Difference, Plain, Sides, of_chunk, plain
from hms_gateway.pipeline.migrate.writing import REFUSALS, Writer, reason
from hms_gateway.rpc.structs import ColumnStatisticsObj, Partition, Struct, Table

# Reads the source in a thread of its own while what was read before is written.


T = TypeVar("T")


def ahead(produce: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The values of `produce`, made in another thread, each while the one before is used."""
    values = produce()
    with ThreadPoolExecutor(1, "reading ahead") as pool:
        coming = pool.submit(next, values, None)
        while (value := coming.result()) is not None:
            coming = pool.submit(next, values, None)
            yield value


# Work on the tables of the target.


# Rows that a step leaves for others: chunks of partitions, tables to look at again, tables with ACID rows.
LEFT: Final = pyarrow.schema(
    [
        *texts("what", "database", "table"),
        ("existed", pyarrow.bool_()),
        ("names", pyarrow.list_(pyarrow.string())),
    ]
)


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


@dataclass
class TableWork:
    """Work of a step on tables, and its outcome."""

    sides: Sides
    source: CatalogReader
    target: CatalogReader
    writer: Writer
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refusal] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, item: str, why: Exception | str) -> None:
        self.refused.append(Refusal(item, why if isinstance(why, str) else reason(why)))

    def outcome(self) -> StepOutcome:
        rows = pyarrow.Table.from_pylist(self.left, LEFT) if self.left else None
        return StepOutcome(counts=self.counts, refused=self.refused, rows=rows)

    def leave(self, what: str, table: Table, *, existed: bool = True, names: Sequence[str] = ()) -> None:
        row = {"what": what, "database": table.dbName, "table": table.tableName, "existed": existed}
        self.left.append({**row, "names": list(names)})

    def copy(self, loaded: Loaded) -> None:
        try:
            if not self._put_table(loaded):
                return
            if is_acid(loaded.table.parameters):
                self.leave("acid", loaded.table)
            self._put_table_statistics(loaded.table, loaded.statistics)
            self._put_constraints(loaded.table, loaded.constraints)
            if loaded.partitions is None:
                self.counts["large tables"] += 1
                for names in loaded.chunks:
                    self.leave("chunk", loaded.table, existed=loaded.existed, names=names)
            elif loaded.partitions:
                statistics = loaded.partition_statistics
                self.put_partitions(loaded.table, loaded.partitions, statistics, existed=loaded.existed)
        except REFUSALS as refused:
            self.refuse(loaded.name, refused)

    def put_partitions(
        self,
        table: Table,
        partitions: Mapping[str, Partition],
        statistics: Mapping[str, Sequence[ColumnStatisticsObj]],
        *,
        existed: bool = True,
    ) -> None:
        """`existed` is False where none of them can be there."""
        there = self.target.partitions(table, list(partitions)) if existed else {}
        differing = [name for name, one in there.items() if self._differs("partition", partitions.get(name), one)]
        missing = [one for name, one in partitions.items() if name not in there]
        self.writer.add_partitions(table, missing)
        self.counts["partitions"] += len(missing)
        left = set(differing)
        if differing and self._replaces(f"{table.dbName}.{table.tableName}/{differing[0]} and {len(differing)} in all"):
            self.writer.alter_partitions(table, [partitions[name] for name in differing])
            self.counts["replaced partitions"] += len(differing)
            left = set()
        wanted = {name: each for name, each in statistics.items() if name not in left}
        self._put_partition_statistics(table, wanted)

    def _put_table_statistics(self, table: Table, found: Sequence[ColumnStatisticsObj]) -> None:
        put = partial(self.writer.put_table_statistics, table)
        self._put_columns(f"{table.dbName}.{table.tableName}", put, found)

    def _put_partition_statistics(self, table: Table, found: Mapping[str, Sequence[ColumnStatisticsObj]]) -> None:
        try:
            self.writer.put_partition_statistics(table, found)
        except REFUSALS:
            for name, each in found.items():

                def put(some: Sequence[ColumnStatisticsObj], name: str = name) -> None:
                    self.writer.put_partition_statistics(table, {name: some})

                self._put_columns(f"{table.dbName}.{table.tableName}/{name}", put, each)

    def _put_columns(
        self,
        item: str,
        put: Callable[[Sequence[ColumnStatisticsObj]], None],
        found: Sequence[ColumnStatisticsObj],
    ) -> None:
        """Statistics of columns, one by one if the target refuses them: it may not know the kind of some."""
        try:
            put(found)
        except REFUSALS:
            for one in found:
                try:
                    put([one])
                except REFUSALS as refused:
                    self.refuse(f"{item} {one.colName}", f"its statistics are not taken: {reason(refused)}")

    def refresh_table(self, table: Table) -> None:
        """The table with all its partitions, whatever there is of it in the target."""
        database, name = table.dbName or "", (table.tableName or "").lower()
        there = self.target.tables(database, [name]).get(name)
        if there is None:
            self.writer.create_table(table)
        elif self._differs("table", table, there):
            self._replace(table, there)
        self.counts["refreshed tables"] += 1
        if is_acid(table.parameters):
            self.leave("acid", table)
        if self.sides.wants("statistics"):
            self._refresh_statistics(table)
        if self.sides.wants("constraints"):
            self._put_constraints(table, self.source.constraints(database, name), drops=True)
        if self.sides.wants("partitions") and table.partitionKeys:
            names = set(self.source.partition_names(table))
            gone = set(self.target.partition_names(table)) - names
            self.writer.drop_partitions(table, sorted(gone))
            self.counts["dropped partitions"] += len(gone)
            self.refresh_partitions(table, sorted(names))

    def refresh_partitions(self, table: Table, names: Sequence[str]) -> None:
        for some in cut(names, PARTITIONS_A_CALL):
            here, there = self.source.partitions(table, some), self.target.partitions(table, some)
            self.writer.add_partitions(table, [one for name, one in here.items() if name not in there])
            both = [(one, there[name]) for name, one in here.items() if name in there]
            self.writer.alter_partitions(table, [one for one, other in both if self._differs("partition", one, other)])
            self.writer.drop_partitions(table, sorted(there.keys() - here.keys()))
            self.counts["refreshed partitions"] += len(here)
            if self.sides.wants("statistics"):
                self._refresh_partition_statistics(table, sorted(here))

    def _refresh_statistics(self, table: Table) -> None:
        here, there = self.source.table_statistics(table), self.target.table_statistics(table)
        if list(map(plain, here)) == list(map(plain, there)):
            return
        self._put_table_statistics(table, here)
        for column in {one.colName for one in there} - {one.colName for one in here}:
            self.writer.delete_statistics(table, None, column or "")

    def _refresh_partition_statistics(self, table: Table, names: Sequence[str]) -> None:
        here, there = self.source.partition_statistics(table, names), self.target.partition_statistics(table, names)
        changed = {name: each for name, each in here.items() if _plain_list(each) != _plain_list(there.get(name, ()))}
        self._put_partition_statistics(table, changed)
        for name, each in there.items():
            for column in {one.colName for one in each} - {one.colName for one in here.get(name, ())}:
                self.writer.delete_statistics(table, name, column or "")

    def _put_table(self, loaded: Loaded) -> bool:
        """True if the parts of the table are to be copied, too."""
        table = loaded.table
        if not loaded.existed:
            self.writer.create_table(table)
            self.counts["tables"] += 1
            return True
        there = self.target.tables(table.dbName or "", [table.tableName or ""]).get((table.tableName or "").lower())
        if there is None:
            self.writer.create_table(table)
        elif self._differs("table", table, there):
            if not self._replaces(loaded.name):
                return False
            self._replace(table, there)
            self.counts["replaced tables"] += 1
            return True
        self.counts["tables that were there"] += 1
        return True

    def _replace(self, table: Table, there: Table) -> None:
        if _keys(table) != _keys(there) or is_view(table) != is_view(there):
            self.writer.drop_table(there.dbName or "", there.tableName or "")
            self.writer.create_table(table)
        else:
            self.writer.replace_table(table)

    def _replaces(self, item: str) -> bool:
        if self.sides.on_conflict == "replace":
            return True
        self.refuse(item, self.sides.conflict(item))
        return False

    def _put_constraints(self, table: Table, wanted: Mapping[str, Sequence[Struct]], *, drops: bool = False) -> None:
        database, name = table.dbName or "", table.tableName or ""
        if not wanted and not drops:
            return
        here, there = constraints_by_name(wanted), constraints_by_name(self.target.constraints(database, name))
        for gone in {_name_of(key) for key in there.keys() - here.keys()} if drops else ():
            self.writer.drop_constraint(database, name, gone)
        by_field: dict[str, list[Struct]] = {}
        for key in sorted(here.keys() - there.keys()):
            by_field.setdefault(key.split(" ", 1)[0], []).append(here[key])
        for kind, missing in by_field.items():
            try:
                self.writer.put_constraints({kind: missing})
                self.counts["constraints"] += len(missing)
            except REFUSALS as refused:
                if kind == "foreignKeys" and not drops:
                    # The table that they refer to may come later; they are added when all tables are there.
                    self.leave("again", table)
                else:
                    self.refuse(f"{database}.{name} {kind}", f"they are not taken: {reason(refused)}")

    def _differs(self, kind: str, one: Struct | None, other: Struct) -> bool:
        return one is None or self.sides.compared(kind, one) != self.sides.compared(kind, other)


def _name_of(key: str) -> str:
    return key.split(" ")[1]


def _keys(table: Table) -> list[str | None]:
    return [key.name for key in table.partitionKeys or ()]


def _plain_list(found: Sequence[Struct]) -> list[Plain]:
    return [plain(one) for one in found]


def tables_of(reader: CatalogReader, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Table | Exception]:
    """Tables by database and name, read together; where that is refused one by one, with what each is refused for."""
    by_database: dict[str, list[str]] = {}
    for row in rows:
        by_database.setdefault(row["database"], []).append(row["table"])
    found: dict[tuple[str, str], Table | Exception] = {}
    for database, names in by_database.items():
        try:
            tables: Mapping[str, Table | Exception] = reader.tables(database, names)
        except REFUSALS:
            tables = _one_by_one(reader, database, names)
        found.update({(database, name): tables[name.lower()] for name in names if name.lower() in tables})
    return found


def _one_by_one(reader: CatalogReader, database: str, names: Sequence[str]) -> dict[str, Table | Exception]:
    found: dict[str, Table | Exception] = {}
    for name in names:
        try:
            found.update(reader.tables(database, [name]))
        except REFUSALS as refused:
            found[name.lower()] = refused
    return found


# Steps that copy tables, and the partitions of large ones.


@contextmanager
def table_work(sides: Sides, client: PatientClient) -> Iterator[TableWork]:
    """Work with clients of both sides."""
    with sides.reading() as source, sides.writing(client) as target:
        yield TableWork(sides, CatalogReader(source), CatalogReader(target), Writer(target, sides.is_gateway))


@dataclass(frozen=True)
class CopyTables:
    """Rows of (database, table, existed): the tables of one database, with their partitions where these are few."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        with table_work(self.sides, client) as work:
            for loaded in ahead(lambda: self._load(work.source, batch.rows())):
                if isinstance(loaded, Refusal):
                    work.refused.append(loaded)
                else:
                    work.copy(loaded)
        return work.outcome()

    def _load(self, reader: CatalogReader, rows: Sequence[Mapping[str, Any]]) -> Iterator[Loaded | Refusal]:
        """A table that the source cannot read is refused, and does not end the others."""
        tables = tables_of(reader, rows)
        for row in rows:
            table = tables.get((row["database"], row["table"]))
            if isinstance(table, Table):
                try:
                    yield self._loaded(reader, table, row["existed"])
                except REFUSALS as refused:
                    yield Refusal(f"{row['database']}.{row['table']}", reason(refused))
            elif table is not None:
                yield Refusal(f"{row['database']}.{row['table']}", reason(table))

    def _loaded(self, reader: CatalogReader, table: Table, existed: bool) -> Loaded:
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

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        with table_work(self.sides, client) as work:
            for table, partitions, statistics in ahead(lambda: self._load(work.source, batch.rows())):
                try:
                    work.put_partitions(table, partitions, statistics)
                except REFUSALS as refused:
                    work.refuse(f"{table.dbName}.{table.tableName}", refused)
        return work.outcome()

    def _load(
        self, reader: CatalogReader, rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Table, Mapping[str, Partition], Mapping[str, Sequence[ColumnStatisticsObj]]]]:
        for row in rows:
            table = reader.tables(row["database"], [row["table"]]).get(row["table"].lower())
            if table is not None:
                partitions = reader.partitions(table, row["names"])
                wants = self.sides.wants("statistics")
                yield table, partitions, reader.partition_statistics(table, list(partitions)) if wants else {}


# Steps that bring tables up to date with the source, and let the same write ids count.


@dataclass(frozen=True)
class Refresh:
    """Rows of (database, table, names): what may have changed since it was copied; no names mean all of the table.

    A table that the source does not have is dropped from the target, without data, if the run has brought it: it is
    not among `kept`.
    """

    sides: Sides
    kept: frozenset[tuple[str, str]] = frozenset()

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        with table_work(self.sides, client) as work:
            for row in batch.rows():
                self._refresh(work, row)
        return work.outcome()

    def _refresh(self, work: TableWork, row: Mapping[str, Any]) -> None:
        database, name, names = row["database"], row["table"], row["names"]
        table = work.source.tables(database, [name]).get(name)
        try:
            if table is None:
                self._drop(work, database, name)
            elif names is None or not work.target.tables(database, [name]):
                work.refresh_table(table)
            else:
                work.refresh_partitions(table, names)
        except REFUSALS as refused:
            work.refuse(f"{database}.{name}", refused)

    def _drop(self, work: TableWork, database: str, name: str) -> None:
        if (database, name) not in self.kept:
            work.writer.drop_table(database, name)
            work.counts["dropped tables"] += 1
        elif work.target.tables(database, [name]):
            work.refuse(f"{database}.{name}", "the source has dropped it; it was in the target before, and stays")


@dataclass(frozen=True)
class WriteIdsOf:
    """Rows of ACID tables: the target lets the same write ids count as the source."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        with table_work(self.sides, client) as work:
            for row in batch.rows():
                self._set(work, row["database"], row["table"])
        return work.outcome()

    def _set(self, work: TableWork, database: str, table: str) -> None:
        name, ids = f"{database}.{table}", work.source.write_ids(database, table)
        if ids is None:
            return
        try:
            work.writer.put_write_ids(database, table, ids)
        except REFUSALS as refused:
            work.refuse(name, f"its write ids are not taken: {reason(refused)}")
            return
        there = work.target.write_ids(database, table)
        if there == ids:
            work.counts["tables with write ids"] += 1
        else:
            text = f"write ids of the target are {there}, those of the source {ids}; the table had given some"
            work.refuse(name, text)


# The step that reads tables from both sides and compares them field by field.


DIFFERENCE_SCHEMA: Final = pyarrow.schema(
    [(name, pyarrow.string()) for name in ("kind", "object", "field", "source", "target")]
)


@dataclass(frozen=True)
class Compare:
    """Rows of (database, table): reads both sides; differences are rows, field by field."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        found, rows = list[Difference](), batch.rows()
        with table_work(self.sides, client) as work:
            tables = [tables_of(reader, rows) for reader in (work.source, work.target)]
            for row in rows:
                name = row["database"], row["table"]
                try:
                    found += Compared(work, ".".join(name)).differences(*(side.get(name) for side in tables))
                except REFUSALS as refused:
                    work.refuse(".".join(name), refused)
        return StepOutcome({**work.counts, "differences": len(found)}, work.refused, difference_rows(found))


@dataclass
class Compared:
    """One table on both sides."""

    work: TableWork
    name: str

    def differences(self, left: Table | Exception | None, right: Table | Exception | None) -> Iterator[Difference]:
        """Raises what a side refuses."""
        for table in (left, right):
            if isinstance(table, Exception):
                raise table
        assert not isinstance(left, Exception)
        assert not isinstance(right, Exception)
        yield from self._of("table", *({} if one is None else {self.name: one} for one in (left, right)))
        if left is None or right is None:
            return
        if self.work.sides.wants("statistics"):
            yield from self._of_statistics(None, left, right)
        if self.work.sides.wants("constraints"):
            place = left.dbName or "", left.tableName or ""
            found = [constraints_by_name(reader.constraints(*place)) for reader in self._readers]
            yield from self._of("constraint", *({f"{self.name} {name}": side[name] for name in side} for side in found))
        if self.work.sides.wants("partitions") and left.partitionKeys:
            yield from self._of_partitions(left, right)

    @property
    def _readers(self) -> tuple[CatalogReader, CatalogReader]:
        return self.work.source, self.work.target

    def _of_partitions(self, left: Table, right: Table) -> Iterator[Difference]:
        here, there = partitions_of(self.work.source, left), partitions_of(self.work.target, right)
        if here[0] is not None and there[0] is not None:
            yield from self._of_chunk(left, right, here[0], there[0])
            return
        names = sorted(_names(*here) | _names(*there))
        for some in cut(names, PARTITIONS_A_CALL):
            found = self.work.source.partitions(left, some), self.work.target.partitions(right, some)
            yield from self._of_chunk(left, right, *found)

    def _of_chunk(
        self, left: Table, right: Table, here: Mapping[str, Partition], there: Mapping[str, Partition]
    ) -> Iterator[Difference]:
        sides = [{f"{self.name}/{name}": one for name, one in side.items()} for side in (here, there)]
        yield from self._of("partition", *sides)
        if self.work.sides.wants("statistics"):
            yield from self._of_statistics(sorted(here.keys() & there.keys()), left, right)

    def _of_statistics(self, names: Sequence[str] | None, left: Table, right: Table) -> Iterator[Difference]:
        sides = []
        for reader, table in zip(self._readers, (left, right), strict=True):
            if names is None:
                found = {f"{self.name} {one.colName}": one for one in reader.table_statistics(table)}
            else:
                of_all = reader.partition_statistics(table, names)
                found = {f"{self.name}/{name} {one.colName}": one for name in of_all for one in of_all[name]}
            sides.append(found)
        yield from self._of("statistics", *sides)

    def _of(self, kind: str, here: Mapping[str, Struct], there: Mapping[str, Struct]) -> Iterator[Difference]:
        self.work.counts[f"compared {kind}" if kind.endswith("s") else f"compared {kind}s"] += len(here)
        compared = self.work.sides.compared
        yield from of_chunk(
            kind,
            {name: compared(kind, one) for name, one in here.items()},
            {name: compared(kind, one) for name, one in there.items()},
        )


def _names(partitions: Mapping[str, Partition] | None, chunks: Sequence[Sequence[str]]) -> set[str]:
    return set(partitions or ()) | {name for chunk in chunks for name in chunk}


def difference_rows(found: Sequence[Difference]) -> pyarrow.Table | None:
    if not found:
        return None
    return pyarrow.Table.from_pylist([{name: getattr(one, name) for name in DIFFERENCE_SCHEMA.names} for one in found])
