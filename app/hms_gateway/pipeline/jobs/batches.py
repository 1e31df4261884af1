"""Batches of a stored table, each done once: tasks of Spark run a step on them and leave a file in `done` behind.

A task asks the state which batches are done, so that a task that is repeated, on whichever executor, does what is
missing.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow
import pyarrow.parquet

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import Stored, StoredBatch


@dataclass(frozen=True, slots=True)
class Refusal:
    """One item that could not be done: a path or the name of an object, and why."""

    item: str
    reason: str


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step: numbers that are added up, items that were refused, and rows for `results`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    refused: Sequence[Refusal] = ()
    rows: pyarrow.Table | None = None


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Some rows of a stored table; the same ones whenever it is tried again."""

    name: str
    id: str
    table: pyarrow.Table

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows


# Runs in executors. May be repeated: with the same calls a gateway does them once.
Step = Callable[[PatientClient, RowBatch], StepOutcome]


@dataclass(frozen=True)
class BatchTask:
    """A step for tasks to run; pickled to executors."""

    run: str
    name: str
    stored: Stored
    step: Step
    slots: int
    connection: Connection
    lease_id: int | None
    patience_seconds: float

    @property
    def done_folder(self) -> str:
        return f"{self.run}/done/{self.name}"

    @property
    def result_folder(self) -> str:
        return f"{self.run}/result/{self.name}"

    def __call__(self, slot: int) -> None:
        """Every slot does each `slots`-th of the batches. Raises JobFailed."""
        mine = {batch.id for batch in self.stored.batches[slot :: self.slots]}
        with PatientClient(self.connection, self.patience_seconds, lease_id=self.lease_id) as client:
            for batch in self.pending():
                if batch.id in mine:
                    self._do(client, batch)

    @contextmanager
    def following(self) -> Iterator[Callable[[Sequence[StoredBatch]], None]]:
        """For `derive`: does batches as soon as they are made, where they are not done. Raises JobFailed."""
        with PatientClient(self.connection, self.patience_seconds, lease_id=self.lease_id) as client:

            def follow(batches: Sequence[StoredBatch]) -> None:
                for batch in batches:
                    if self.stored.state.read_json(self._done_file(batch)) is None:
                        self._do(client, batch)

            yield follow

    def pending(self) -> list[StoredBatch]:
        """The batches without a file in `done`. Raises StateFailed."""
        done = {name.removesuffix(".json") for name in self.stored.state.names(self.done_folder)}
        return [batch for batch in self.stored.batches if batch.id not in done]

    def _do(self, client: PatientClient, batch: StoredBatch) -> None:
        began = time.monotonic()
        table = self.stored.read(batch)
        outcome = self.step(client.begin(f"{self.run}\n{self.name}\n{batch.id}"), RowBatch(self.name, batch.id, table))
        if outcome.rows is not None and len(outcome.rows):
            with self.stored.state.output(f"{self.result_folder}/{batch.id}.parquet") as file:
                pyarrow.parquet.write_table(outcome.rows, file, compression="zstd")
        done = {
            "rows": len(table),
            "counts": dict(outcome.counts),
            "refused": [[each.item, each.reason] for each in outcome.refused],
            "has_rows": outcome.rows is not None and len(outcome.rows) > 0,
            "seconds": round(time.monotonic() - began, 3),
        }
        self.stored.state.write_json(self._done_file(batch), done)

    def _done_file(self, batch: StoredBatch) -> str:
        return f"{self.done_folder}/{batch.id}.json"


@dataclass(frozen=True, slots=True)
class Counts:
    """The outcome of all steps of a stored table, over all resumes."""

    rows: int = 0
    batches: int = 0
    refused: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)


def counted(state: State, run: str, name: str) -> Counts:
    """Added up from the files in `done`. Raises StateFailed."""
    rows = batches = refused = 0
    counts = Counter[str]()
    for done in _done(state, run, name):
        rows, batches, refused = rows + done["rows"], batches + 1, refused + len(done["refused"])
        counts.update(done["counts"])
    return Counts(rows, batches, refused, counts)


def refusals(state: State, run: str, name: str) -> Iterator[Refusal]:
    """The items that were refused, batch by batch. Raises StateFailed."""
    for done in _done(state, run, name):
        yield from (Refusal(item, reason) for item, reason in done["refused"])


def _done(state: State, run: str, name: str) -> Iterator[dict[str, Any]]:
    for file in state.names(f"{run}/done/{name}"):
        done = state.read_json(f"{run}/done/{name}/{file}")
        if done is not None:
            yield done
