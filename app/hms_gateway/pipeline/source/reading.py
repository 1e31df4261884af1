"""Reading an object as a batch: filters go to the metastore, parts to tasks."""

import gc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import pyarrow
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from hms_gateway.pipeline.connection import Client, Connection
from hms_gateway.pipeline.source import planning
from hms_gateway.pipeline.source.columns import batches
from hms_gateway.pipeline.source.conditions import Condition, condition_of
from hms_gateway.pipeline.source.fetching import rows
from hms_gateway.pipeline.source.objects import columns_of
from hms_gateway.pipeline.source.planning import Everything, PlannedTables, Scope

# Of whose columns the conditions are kept while it is decided what to read; others are left to Spark.
_DECIDED: Final = {
    "databases": ("database",),
    "tables": ("database", "table"),
    "columns": ("database", "table"),
    "partitions": ("database", "table", "key"),
    "statistics": ("database", "table"),
    "events": ("id",),
}
_COMPARES_IDS: Final = ("=", ">", ">=", "<", "<=")


class WholeReader(DataSourceReader):  # type: ignore[misc]
    """Reads all that the options name, and leaves filters to Spark.

    Pickled: with its options on the driver, where it plans, and on executors, where it reads.
    """

    def __init__(self, connection: Connection, object_name: str, scope: Scope, schema: StructType) -> None:
        self._connection = connection
        self._object = object_name
        self._scope = scope
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """At least one: Spark asks for another when there is none."""
        with self._connection.open() as client:
            return self._parts(client) or [PlannedTables("", ())]

    def _parts(self, client: Client) -> list[InputPartition]:
        if self._object == "databases":
            names = planning.databases(client, self._scope)
            return [PlannedTables("", part) for part in planning.cut(names, planning.TABLES_PER_TASK)]
        if self._object in ("tables", "columns", "statistics"):
            return list(planning.tables(client, self._scope))
        if self._object == "partitions":
            return planning.partitions(client, self._scope)
        return planning.events(client, self._scope) if self._object == "events" else [Everything()]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Arrow batches, from one connection."""
        keys = self._schema["key"].dataType if "key" in self._schema.fieldNames() else None
        names = self._schema.fieldNames()
        if partition == PlannedTables("", ()):
            return
        # A worker holds PySpark and pyarrow, which every full collection would look at again: half of the time.
        gc.freeze()
        with self._connection.open() as client:
            yield from batches(
                rows(client, self._object, partition, names), self._schema, columns_of(self._object, keys)
            )


class FilteringReader(WholeReader):
    """Lets the metastore filter. Spark refuses it where `spark.sql.python.filterPushdown.enabled` is not set."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Those left to Spark; the others hold for every row that `read` gives."""
        for given in filters:
            condition = condition_of(given)
            if condition is not None and self._decides(condition):
                self._scope = replace(self._scope, conditions=(*self._scope.conditions, condition))
            else:
                yield given

    def _decides(self, condition: Condition) -> bool:
        if condition.path[0] not in _DECIDED.get(self._object, ()):
            return False
        if condition.path[0] == "key":
            return len(condition.path) == 2
        return condition.path != ("id",) or (condition.operator in _COMPARES_IDS and condition.value is not None)
