"""The step that reads tables from both sides and compares them field by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow

from hms_gateway.pipeline.jobs.batches import RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.migrate.objects import Difference, of_chunk
from hms_gateway.pipeline.migrate.reading import (
    PARTITIONS_A_CALL,
    Reader,
    constraints_by_name,
    partitions_of,
)
from hms_gateway.pipeline.migrate.sides import Sides
from hms_gateway.pipeline.migrate.table_work import TableWork, tables_of
from hms_gateway.pipeline.migrate.writing import REFUSALS
from hms_gateway.rpc.structs import Partition, Struct, Table

DIFFERENCE_SCHEMA: Final = pyarrow.schema(
    [(name, pyarrow.string()) for name in ("kind", "object", "field", "source", "target")]
)


@dataclass(frozen=True)
class Compare:
    """Rows of (database, table): reads both sides; differences are rows, field by field."""

    sides: Sides

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        work, found, rows = TableWork(self.sides), list[Difference](), batch.rows()
        with self.sides.reading() as source, self.sides.writing(client) as target:
            readers = Reader(source), Reader(target)
            tables = [tables_of(reader, rows) for reader in readers]
            for row in rows:
                name = row["database"], row["table"]
                compared = Compared(self.sides, *readers, ".".join(name), work)
                try:
                    found += compared.differences(*(side.get(name) for side in tables))
                except REFUSALS as refused:
                    work.refuse(".".join(name), refused)
        return StepOutcome({**work.counts, "differences": len(found)}, work.refused, difference_rows(found))


@dataclass
class Compared:
    """One table on both sides."""

    sides: Sides
    source: Reader
    target: Reader
    name: str
    work: TableWork

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
        if self.sides.wants("statistics"):
            yield from self._of_statistics(None, left, right)
        if self.sides.wants("constraints"):
            place = left.dbName or "", left.tableName or ""
            found = [constraints_by_name(reader.constraints(*place)) for reader in self._readers]
            yield from self._of("constraint", *found)
        if self.sides.wants("partitions") and left.partitionKeys:
            yield from self._of_partitions(left, right)

    @property
    def _readers(self) -> tuple[Reader, Reader]:
        return self.source, self.target

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
        sides = [{f"{self.name}/{name}": one for name, one in side.items()} for side in (here, there)]
        yield from self._of("partition", *sides)
        if self.sides.wants("statistics"):
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
        self.work.count(f"compared {kind}" if kind.endswith("s") else f"compared {kind}s", len(here))
        compared = self.sides.compared
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
