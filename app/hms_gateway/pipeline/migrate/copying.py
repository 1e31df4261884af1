"""Steps that copy tables, and the partitions of large ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.migrate.ahead import ahead
from hms_gateway.pipeline.migrate.reading import (
    Reader,
    partitions_of,
)
from hms_gateway.pipeline.migrate.sides import Sides
from hms_gateway.pipeline.migrate.table_work import Loaded, TableWork, tables_of
from hms_gateway.pipeline.migrate.writing import REFUSALS, Writer, reason
from hms_gateway.rpc.structs import ColumnStatisticsObj, Partition, Table


@dataclass(frozen=True)
class CopyTables:
    """Rows of (database, table, existed): the tables of one database, with their partitions where these are few."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        work = TableWork(self.sides)
        rows = batch.rows()
        with self.sides.reading() as source, self.sides.writing(client) as target:
            writer, reader = Writer(target, self.sides.is_gateway), Reader(target)
            for loaded in ahead(lambda: self._load(Reader(source), rows)):
                if isinstance(loaded, Refusal):
                    work.refused.append(loaded)
                else:
                    work.copy(writer, reader, loaded)
        return work.outcome()

    def _load(self, reader: Reader, rows: Sequence[Mapping[str, Any]]) -> Iterator[Loaded | Refusal]:
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

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        work = TableWork(self.sides)
        rows = batch.rows()
        with self.sides.reading() as source, self.sides.writing(client) as target:
            writer, reader = Writer(target, self.sides.is_gateway), Reader(target)
            for table, partitions, statistics in ahead(lambda: self._load(Reader(source), rows)):
                try:
                    work.put_partitions(writer, reader, table, partitions, statistics)
                except REFUSALS as refused:
                    work.refuse(f"{table.dbName}.{table.tableName}", refused)
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
