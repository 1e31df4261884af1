"""Steps that bring tables up to date with the source, and let the same write ids count."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.migrate.reading import (
    Reader,
)
from hms_gateway.pipeline.migrate.sides import Sides
from hms_gateway.pipeline.migrate.table_work import TableWork
from hms_gateway.pipeline.migrate.writing import REFUSALS, Writer, reason


@dataclass(frozen=True)
class Refresh:
    """Rows of (database, table, names): what may have changed since it was copied; no names mean all of the table.

    A table that the source does not have is dropped from the target, without data, if the run has brought it: it is
    not among `kept`.
    """

    sides: Sides
    kept: frozenset[tuple[str, str]] = frozenset()

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        work = TableWork(self.sides)
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for row in batch.rows():
                self._refresh(work, Reader(source), Writer(target, self.sides.is_gateway), Reader(target), row)
        return work.outcome()

    def _refresh(self, work: TableWork, source: Reader, writer: Writer, target: Reader, row: Mapping[str, Any]) -> None:
        database, name, names = row["database"], row["table"], row["names"]
        table = source.tables(database, [name]).get(name)
        try:
            if table is None:
                self._drop(work, writer, target, row)
                return
            if names is None or not target.tables(database, [name]):
                work.refresh_table(source, writer, target, table)
            else:
                work.refresh_partitions(source, writer, target, table, names)
        except REFUSALS as refused:
            work.refuse(f"{database}.{name}", refused)

    def _drop(self, work: TableWork, writer: Writer, target: Reader, row: Mapping[str, Any]) -> None:
        database, name = row["database"], row["table"]
        if (database, name) in self.kept:
            if target.tables(database, [name]):
                work.refuse(f"{database}.{name}", "the source has dropped it; it was in the target before, and stays")
            return
        writer.drop_table(database, name)
        work.count("dropped tables")


@dataclass(frozen=True)
class WriteIdsOf:
    """Rows of ACID tables: the target lets the same write ids count as the source."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        work = TableWork(self.sides)
        with self.sides.reading() as source, self.sides.writing(client) as target:
            for row in batch.rows():
                place = row["database"], row["table"]
                ids, writer = Reader(source).write_ids(*place), Writer(target, self.sides.is_gateway)
                if ids is None:
                    continue
                try:
                    writer.put_write_ids(*place, ids)
                except REFUSALS as refused:
                    work.refuse(".".join(place), f"its write ids are not taken: {reason(refused)}")
                    continue
                there = Reader(target).write_ids(*place)
                if there == ids:
                    work.count("tables with write ids")
                else:
                    text = f"write ids of the target are {there}, those of the source {ids}; the table had given some"
                    work.refuse(".".join(place), text)
        return work.outcome()
