"""The data source `hms`: objects as batches and as streams, rows as new partitions, and the options of all these."""

import gc
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, Final

import msgspec
import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.pipeline.catalog import PARTITIONS_A_CALL, columns_once, cut, earliest, events, latest
from hms_gateway.pipeline.connection import CONNECTION_OPTIONS, Client, Connection, choice, whole_number
from hms_gateway.pipeline.errors import NotRegistered, OptionError
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.source.objects import COLUMNS, batches, check_schema, columns_of, key_struct, schema_of
from hms_gateway.pipeline.source.planning import (
    EVENTS_PER_TASK,
    TABLES_PER_TASK,
    Condition,
    Events,
    Everything,
    PlannedTables,
    Scope,
    condition_of,
    databases,
    event_parts,
    event_ranges,
    partitions,
    rows,
    tables,
)
from hms_gateway.rpc.structs import AddPartitionsRequest, FieldSchema, Partition, StorageDescriptor, Table

# Writing: rows become partitions of a table, some hundreds in a call.
#
# A call carries a key made of the run, the task, its place in the task and what it says. A task that is tried again, or
# run twice at the same time, sends the same keys, and the gateway does each call once. Rows that come in another order
# when a task is repeated get another key.


_COLUMN_TYPES: Final = {"values": "array<string>", "location": "string", "parameters": "map<string,string>"}


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table to write to. Calls of one `run` count once, whichever job sends them; unset is a run of its own."""

    database: str
    table: str
    skips_existing: bool = True
    rows_a_call: int = PARTITIONS_A_CALL
    run: str | None = None

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True)
class Registered(WriterCommitMessage):  # type: ignore[misc]
    """The outcome of a task; `added` is without those that were there."""

    given: int = 0
    added: int = 0


@dataclass
class PartitionWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Made on the driver, which checks the columns; pickled to the tasks with the run's id."""

    connection: Connection
    target: TargetTable
    schema: StructType
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        """Raises OptionError, and what the client raises."""
        if self.connection.is_thrift:
            raise OptionError("option url is of Thrift over TCP, which is for reading; write over https://")
        self.run = self.target.run or uuid.uuid4().hex
        with self.connection.open() as client:
            self.table = client.call("get_table", self.target.database, self.target.table)
        _check_columns(self.schema, self.table, self.target.name)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Registered:
        """The rows of one task. Raises NotRegistered, and what PatientClient raises."""
        rows = (row for batch in iterator for row in batch.to_pylist())
        task = TaskContext.get().partitionId()
        given = added = 0
        with PatientClient(self.connection, 0, f"{self.run}\n{self.target.name}\n{task}") as client:
            for some in cut(rows, self.target.rows_a_call):
                result = client.call("add_partitions_req", self._request(some))
                given, added = given + len(some), added + len(result.partitions or ())
        return Registered(given, added)

    def _request(self, rows: Sequence[dict[str, Any]]) -> AddPartitionsRequest:
        parts, columns = columns_once([self._partition(row) for row in rows])
        return AddPartitionsRequest(
            dbName=self.target.database,
            tblName=self.target.table,
            parts=parts,
            ifNotExists=self.target.skips_existing,
            needResult=True,
            partitionColSchema=columns,
        )

    def _partition(self, row: Mapping[str, Any]) -> Partition:
        sd = self.table.sd or StorageDescriptor()
        return Partition(
            values=self._values(row),
            dbName=self.target.database,
            tableName=self.target.table,
            sd=msgspec.structs.replace(sd, location=row.get("location")),
            parameters=dict(row.get("parameters") or ()),
        )

    def _values(self, row: Mapping[str, Any]) -> list[str]:
        keys = _keys(self.table)
        values = row["values"] if "values" in row else [row[key.name or ""] for key in keys]
        if values is None or len(values) != len(keys):
            raise NotRegistered(
                f"column values has {values!r}; table {self.target.name} needs {len(keys)} values, one for each key"
            )
        return [_text(value) for value in values]


def _check_columns(schema: StructType, table: Table, name: str) -> None:
    keys = [key.name or "" for key in _keys(table)]
    if not keys:
        raise OptionError(f"table {name} has no partition keys; partitions cannot be added to it")
    given = schema.fieldNames()
    allowed = [*_COLUMN_TYPES] if "values" in given else [*keys, "location", "parameters"]
    for column in given:
        if column not in allowed:
            raise OptionError(f"column {column} is not one of a partition of {name}; columns are {', '.join(allowed)}")
    for key in keys:
        if "values" not in given and key not in given:
            raise OptionError(f"column {key} is missing; give every key of table {name}, or the column values")
    for field_ in schema:
        wanted = _COLUMN_TYPES.get(field_.name) if field_.name not in keys else None
        if wanted and field_.dataType.simpleString() != wanted:
            raise OptionError(f"column {field_.name} is {field_.dataType.simpleString()}; cast it to {wanted}")


def _keys(table: Table) -> list[FieldSchema]:
    return table.partitionKeys or []


def _text(value: Any) -> str:
    """A value of a key as partitions have it."""
    if value is None:
        return DEFAULT_PARTITION_NAME
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if type(value) is date:
        return value.isoformat()
    raise NotRegistered(f"a key has the value {value!r}; cast the column to string")


# Reading an object as a batch: filters go to the metastore, parts to tasks.


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
            names = databases(client, self._scope)
            return [PlannedTables("", part) for part in cut(names, TABLES_PER_TASK)]
        if self._object in ("tables", "columns", "statistics"):
            return list(tables(client, self._scope))
        if self._object == "partitions":
            return partitions(client, self._scope)
        return event_parts(client, self._scope) if self._object == "events" else [Everything()]

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
        """The filters left to Spark; the others hold for every row that `read` gives."""
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


# Reading events as a stream: an offset is the id of the last event that was read.


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
        """Ends the query with the event that is the newest now."""
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


_OPTIONS: Final = (
    *CONNECTION_OPTIONS,
    *("object", "table", "database", "columns", "pushdown", "tablesPerTask", "partitionsPerTask", "eventsPerTask"),
    *("startingEvent", "eventsPerBatch", "ifExists", "batchSize", "run"),
)
_KNOWN: Final = frozenset(map(str.lower, _OPTIONS))
_CONF_PREFIX: Final = "spark.hms."


class HmsDataSource(DataSource):  # type: ignore[misc]
    """Databases, tables, partitions and the rest of a metastore as DataFrames."""

    # Of the session's configuration; see `register`.
    defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "hms"

    def schema(self) -> StructType:
        columns = columns_of(self._object, self._keys())
        return schema_of(columns, self._option("columns"), self._object)

    def reader(self, schema: StructType) -> WholeReader:
        keys = schema["key"].dataType if self._reads_one_table and "key" in schema.fieldNames() else None
        check_schema(schema, columns_of(self._object, keys), self._object)
        reader = FilteringReader if self._flag("pushdown", "true") else WholeReader
        return reader(self._connection(), self._object, self._scope(), schema)

    def streamReader(self, schema: StructType) -> EventStreamReader:
        if self._object != "events":
            raise OptionError(f"object {self._object} cannot be read as a stream; only events can")
        check_schema(schema, columns_of("events"), "events")
        per_batch = self._number("eventsPerBatch")
        starting = self._option("startingEvent") or "latest"
        return EventStreamReader(self._connection(), schema, starting, per_batch, self._number("eventsPerTask"))

    def writer(self, schema: StructType, overwrite: bool) -> PartitionWriter:
        if self._object != "partitions" or overwrite:
            raise OptionError("only partitions can be written, with mode append")
        database, table = self._table() or (None, None)
        if database is None or table is None:
            raise OptionError("option table is missing; give database.table, whose partitions the rows are")
        target = TargetTable(
            database,
            table,
            skips_existing=self._flag("ifExists", "skip", "skip", "fail"),
            rows_a_call=self._number("batchSize") or PARTITIONS_A_CALL,
            run=self._option("run"),
        )
        return PartitionWriter(self._connection(), target, schema)

    @property
    def _object(self) -> str:
        return (self._option("object") or "tables").lower()

    @property
    def _reads_one_table(self) -> bool:
        return self._object == "partitions" and self._table() is not None

    def _option(self, name: str) -> str | None:
        """Raises OptionError when any option is unknown: a misspelt one would be without effect."""
        for given in self.options:
            if given.lower() not in _KNOWN:
                raise OptionError(f"option {given} is unknown; options are {', '.join(_OPTIONS)}")
        return self.options.get(name) or self.defaults.get(name.lower())

    def _number(self, name: str) -> int | None:
        return whole_number(name, self._option(name), 0) or None

    def _flag(self, name: str, default: str, true: str = "true", false: str = "false") -> bool:
        return choice(name, self._option(name) or default, {true: True, false: False})

    def _connection(self) -> Connection:
        given = {name: value for name in CONNECTION_OPTIONS if (value := self._option(name))}
        return Connection.of(given)

    def _table(self) -> tuple[str, str] | None:
        text = self._option("table")
        if text is None:
            return None
        database, dot, table = text.lower().partition(".")
        if not (database and dot and table):
            raise OptionError(f"option table is {text!r}; it is database.table")
        return database, table

    def _scope(self) -> Scope:
        database, table = self._table() or (self._option("database"), None)
        size = "eventsPerTask" if self._object == "events" else "tablesPerTask"
        if self._reads_one_table:
            size = "partitionsPerTask"
        return Scope(database, table, per_task=self._number(size))

    def _keys(self) -> StructType | None:
        """The keys of the table whose partitions are read, which the metastore has to be asked for."""
        named = self._table()
        if named is None or self._object != "partitions":
            return None
        with self._connection().open() as client:
            keys = client.call("get_table", *named).partitionKeys
        if not keys:
            raise OptionError(f"table {'.'.join(named)} has no partition keys; it has no partitions to read")
        return key_struct(keys)


def register(spark: Any) -> None:
    """Register the data source in a session, with options from its configuration: `spark.hms.password` is `password`.

    They are in no option of a DataFrame then, so that no plan shows them.
    """
    given = {
        name.removeprefix(_CONF_PREFIX).lower(): value
        for name, value in spark.sparkContext.getConf().getAll()
        if name.startswith(_CONF_PREFIX)
    }
    spark.dataSource.register(type("ConfiguredHmsDataSource", (HmsDataSource,), {"defaults": given}))
