"""Reading events as a stream: an offset is the id of the last event that was read."""

from collections.abc import Iterator

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.source.columns import batches
from hms_gateway.pipeline.source.fetching import events
from hms_gateway.pipeline.source.objects import COLUMNS
from hms_gateway.pipeline.source.planning import EVENTS_PER_TASK, Events, earliest, event_ranges, latest

Offset = dict[str, int]


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Each event once: ids have no gaps, so one that is missing is noticed (`EventsExpired`)."""

    def __init__(
        self,
        connection: Connection,
        schema: StructType,
        starting: str,
        per_batch: int | None,
        per_task: int | None,
    ) -> None:
        if starting not in ("earliest", "latest") and not starting.isdecimal():
            raise OptionError(f"option startingEvent is {starting!r}; it is earliest, latest or the id of an event")
        self._connection = connection
        self._schema = schema
        self._starting = starting
        self._per_batch = per_batch
        self._per_task = per_task or EVENTS_PER_TASK
        self._target: int | None = None

    def initialOffset(self) -> Offset:
        """`startingEvent` is the first event that is read."""
        if self._starting.isdecimal():
            return {"event": max(int(self._starting) - 1, 0)}
        with self._connection.open() as client:
            return {"event": earliest(client) if self._starting == "earliest" else latest(client)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._per_batch is None else ReadMaxRows(self._per_batch)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        newest = self._newest() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows):
            newest = min(newest, start["event"] + limit.max_rows)
        return {"event": max(newest, start["event"])}

    def prepareForTriggerAvailableNow(self) -> None:
        """With that trigger a query ends with the event that is the newest now."""
        self._target = self._newest()

    def reportLatestOffset(self) -> Offset:
        return {"event": self._newest()}

    def _newest(self) -> int:
        with self._connection.open() as client:
            return latest(client)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return list(event_ranges(start["event"], end["event"], self._per_task))

    def read(self, partition: Events) -> Iterator[pyarrow.RecordBatch]:
        with self._connection.open() as client:
            found = events(client, partition.after, partition.last)
            yield from batches(found, self._schema, COLUMNS["events"])
