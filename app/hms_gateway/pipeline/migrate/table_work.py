"""What a step of executors does to the tables of the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.jobs.batches import Refusal, StepOutcome
from hms_gateway.pipeline.migrate.objects import Plain, plain
from hms_gateway.pipeline.migrate.reading import (
    PARTITIONS_A_CALL,
    Reader,
    constraints_by_name,
    is_acid,
    is_view,
)
from hms_gateway.pipeline.migrate.sides import Sides
from hms_gateway.pipeline.migrate.writing import REFUSALS, Writer, reason
from hms_gateway.rpc.structs import ColumnStatisticsObj, Partition, Struct, Table

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
    """What a step has done, and how it does it."""

    sides: Sides
    counts: dict[str, int] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def refuse(self, item: str, why: Exception | str) -> None:
        self.refused.append(Refusal(item, why if isinstance(why, str) else reason(why)))

    def outcome(self) -> StepOutcome:
        rows = pyarrow.Table.from_pylist(self.left, LEFT) if self.left else None
        return StepOutcome(counts=self.counts, refused=self.refused, rows=rows)

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
        here, there = constraints_by_name(wanted), constraints_by_name(target.constraints(database, name))
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


def _name_of(key: str) -> str:
    return key.split(" ")[1]


def _keys(table: Table) -> list[str | None]:
    return [key.name for key in table.partitionKeys or ()]


def _plain_list(found: Sequence[Struct]) -> list[Plain]:
    return [plain(one) for one in found]


def tables_of(reader: Reader, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Table | Exception]:
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


def _one_by_one(reader: Reader, database: str, names: Sequence[str]) -> dict[str, Table | Exception]:
    found: dict[str, Table | Exception] = {}
    for name in names:
        try:
            found.update(reader.tables(database, [name]))
        except REFUSALS as refused:
            found[name.lower()] = refused
    return found
