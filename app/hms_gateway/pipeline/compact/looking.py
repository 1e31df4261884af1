"""What is there to compact: tables, their partitions, and of each what lies in its directory. Read by executors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.compact.bins import gain
from hms_gateway.pipeline.compact.filing import Filing, NotPlain
from hms_gateway.pipeline.compact.leftovers import has_leftovers
from hms_gateway.pipeline.compact.places import base_of, target_of
from hms_gateway.pipeline.compact.swap import left
from hms_gateway.pipeline.compact.tables import left_alone, unsafe
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.selection import partition_names
from hms_gateway.pipeline.listing import ListingProblem
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import NoSuchObjectException, Partition, Table

CANDIDATE: Final = "candidate"
# Nothing to gain; not plain; cannot be listed; outside of the job's roots; waits to be cleaned; has what a killed run
# has left.
ENOUGH: Final = "enough"
NOT_PLAIN: Final = "not plain"
UNREADABLE: Final = "unreadable"
PASSED_OVER: Final = "passed over"
LEFT: Final = "left"
LEFTOVERS: Final = "leftovers"

TABLES: Final = pyarrow.schema([("database", pyarrow.string()), ("table", pyarrow.string())])
NAMES: Final = pyarrow.schema([*TABLES, ("name", pyarrow.string()), ("reason", pyarrow.string())])
FOUND: Final = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        *TABLES,
        ("name", pyarrow.string()),
        ("location", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("files", "after", "bytes")),
        ("reason", pyarrow.string()),
    ]
)
_PARTITIONS_A_CALL: Final = 500


def wanted_tables(client: PatientClient, options: JobOptions) -> Iterator[dict[str, str]]:
    for database in client.call("get_all_databases"):
        if options.wants(database):
            for table in client.call("get_all_tables", database):
                if options.wants(database, table):
                    yield {"database": database, "table": table}


@dataclass(frozen=True)
class NamesOf:
    """The names of the partitions of tables; "" for a table without keys. `reason` is why a table is left alone."""

    connection: Connection
    patience_seconds: float
    where: str

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with PatientClient(self.connection, self.patience_seconds) as client:
            for row in batch.to_pylist():
                try:
                    table = client.call("get_table", row["database"], row["table"])
                    reason = left_alone(table)
                    names = [""] if reason or not table.partitionKeys else partition_names(client, table, self.where)
                except NoSuchObjectException:
                    continue
                found = [{**row, "name": name, "reason": reason} for name in names]
                if found:
                    yield pyarrow.RecordBatch.from_pylist(found, NAMES)


def described(client: Any, table: Table, names: list[str]) -> Iterator[tuple[str, Partition | Table]]:
    """Partitions by their names, or the table itself by an empty one."""
    if not table.partitionKeys:
        yield "", table
        return
    keys = [key.name or "" for key in table.partitionKeys]
    for partition in client.call("get_partitions_by_names", table.dbName, table.tableName, names):
        yield make_name(keys, partition.values), partition


@dataclass(frozen=True)
class Look:
    """What is in the directories of some partitions of one table, or of a table without keys."""

    connection: Connection
    patience_seconds: float
    run: str
    target_bytes: int
    storage: Storage = field(repr=False)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        rows = batch.to_pylist()
        if rows[0]["reason"]:
            return
        with PatientClient(self.connection, self.patience_seconds) as client:
            found = sorted(self._found(client, rows), key=lambda row: str(row["what"]))
        if found:
            yield pyarrow.RecordBatch.from_pylist(found, FOUND)

    def _found(self, client: PatientClient, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        database, name = rows[0]["database"], rows[0]["table"]
        try:
            table = client.call("get_table", database, name)
            names = [row["name"] for row in rows]
            for at in range(0, len(names), _PARTITIONS_A_CALL):
                for partition, one in described(client, table, names[at : at + _PARTITIONS_A_CALL]):
                    yield {"database": database, "table": name, "name": partition, **self._look(table, one)}
        except NoSuchObjectException:
            return
        if has_leftovers(table, self.storage):
            yield {"what": LEFTOVERS, "database": database, "table": name, "name": names[0]}

    def _look(self, table: Table, one: Partition | Table) -> dict[str, Any]:
        location = (one.sd.location if one.sd else None) or ""
        if (waiting := left(one.parameters)) is not None:
            return {"what": LEFT, "location": waiting.location, "reason": f"was compacted by {waiting.run}"}
        if reason := unsafe(one.sd, table):
            return {"what": NOT_PLAIN, "location": location, "reason": reason}
        base = base_of((table.sd.location if table.sd else None) or "", is_partitioned=bool(table.partitionKeys))
        if not target_of(base, self.run, location):
            return {"what": NOT_PLAIN, "location": location, "reason": "lies outside of the table's directory"}
        try:
            filing = Filing.of(location, self.storage)
            found = gain(filing.data_files(filing.files.root(location)), self.target_bytes)
        except NotPlain as reason_text:
            return {"what": NOT_PLAIN, "location": location, "reason": str(reason_text)}
        except OptionError as reason_text:
            return {"what": PASSED_OVER, "location": location, "reason": str(reason_text)}
        except (ListingProblem, OSError) as problem:
            return {"what": UNREADABLE, "location": location, "reason": str(problem)}
        what = CANDIDATE if found.is_worth_it else ENOUGH
        sizes = {"files": found.before, "after": found.after, "bytes": found.bytes}
        return {"what": what, "location": location, **sizes}
