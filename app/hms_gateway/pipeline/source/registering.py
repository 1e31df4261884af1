"""Writing: rows become partitions of a table, some hundreds in a call.

A call carries a key made of the run, the task, its place in the task and what it says. A task that is tried again, or
run twice at the same time, sends the same keys, and the gateway does each call once.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.pipeline.columns_once import columns_once
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import NotRegistered, OptionError
from hms_gateway.rpc.structs import AddPartitionsRequest, FieldSchema, Partition, StorageDescriptor, Table

PARTITIONS_A_CALL: Final = 1_000
_COLUMN_TYPES: Final = {"values": "array<string>", "location": "string", "parameters": "map<string,string>"}

_encode = msgspec.msgpack.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class TargetTable:
    """What is written to. Calls of one `run` count once, whichever job sends them; unset is a run of its own."""

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
    """What a task has done; `added` is without those that were there."""

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
        """The rows of one task. Raises NotRegistered, and what the client raises."""
        rows = (row for batch in iterator for row in batch.to_pylist())
        task = TaskContext.get().partitionId()
        given = added = 0
        with self.connection.open() as client:
            number = 0
            while some := list(islice(rows, self.target.rows_a_call)):
                request = self._request(some)
                result = client.call("add_partitions_req", request, idempotency_key=self._key(task, number, request))
                given, added, number = given + len(some), added + len(result.partitions or ()), number + 1
        return Registered(given, added)

    def _request(self, rows: list[dict[str, Any]]) -> AddPartitionsRequest:
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

    def _key(self, task: int, number: int, request: AddPartitionsRequest) -> str:
        """A key belongs to one message: rows that come in another order when a task is repeated get another key."""
        digest = sha256(f"{self.run}\n{self.target.name}\n{task}\n{number}\n".encode())
        digest.update(_encode(request))
        return digest.hexdigest()


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
