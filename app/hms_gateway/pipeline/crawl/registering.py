"""The calls: new tables, new partitions, partitions that are gone. Each step may be repeated."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.metastore.vocabulary.table_types import FORMATS
from hms_gateway.pipeline.columns_once import columns_once
from hms_gateway.pipeline.connection import CatalogCaller
from hms_gateway.pipeline.crawl.catalog import is_gone, is_within
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.listing import Files, files_of
from hms_gateway.pipeline.storage import Storage, same_file_system
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AlreadyExistsException,
    Database,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    RequestPartsSpec,
    SerDeInfo,
    StorageDescriptor,
    Table,
    ThriftException,
)

# The server lists no directory: the figures come from the listing.
_NO_LISTING: Final = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})


def create_database(client: CatalogCaller, name: str, owner: str | None = None) -> None:
    """A database that may be there."""
    try:
        client.call("get_database", name)
    except NoSuchObjectException:
        made = Database(name=name, ownerName=owner, ownerType=None if owner is None else PrincipalType.USER)
        with suppress(AlreadyExistsException):
            client.call("create_database", made)


@dataclass(frozen=True)
class CreateTables:
    """For batches of designs; `location` makes a table's location of its path."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        files, refused, created = files_of(self.location, self.storage), [], 0
        for row in batch.rows():
            location = files.location(row["root"])
            try:
                table = table_of(row, location, client.connection.owner)
                client.call("create_table_with_environment_context", table, _NO_LISTING)
                created += 1
            except AlreadyExistsException:
                if (reason := _other_place(client, files, row)) is not None:
                    refused.append(Refusal(location, reason))
            except ThriftException as error:
                refused.append(
                    Refusal(location, f"cannot be created as {row['database']}.{row['table']}: {error.message}")
                )
        return StepOutcome({"tables": created}, refused)


def _other_place(client: PatientClient, files: Files, row: dict[str, Any]) -> str | None:
    """A table that a run before this one created is fine."""
    there = client.call("get_table", row["database"], row["table"]).sd.location
    if files.root(there) == row["root"]:
        return None
    return _elsewhere(row["database"], row["table"], there)


def _elsewhere(database: str | None, table: str | None, location: str) -> str:
    return f"is not registered: table {database}.{table} exists and lies at {location}"


def table_of(row: dict[str, Any], location: str, owner: str | None = None) -> Table:
    """A table that leaves its files alone when it is dropped."""
    input_format, output_format, serde = FORMATS[row["format"].upper()]
    return Table(
        dbName=row["database"],
        tableName=row["table"],
        owner=owner,
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE", "hms.crawl": "true"},
        partitionKeys=_fields(row["keys"], row["types"]),
        sd=StorageDescriptor(
            cols=_fields(row["columns"], row["column_types"]),
            location=location,
            inputFormat=input_format,
            outputFormat=output_format,
            compressed=False,
            numBuckets=-1,
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={"serialization.format": "1"}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )


def _fields(names: Sequence[str], types: Sequence[str]) -> list[FieldSchema]:
    return [FieldSchema(name=name, type=kind) for name, kind in zip(names, types, strict=True)]


@dataclass(frozen=True)
class Register:
    """Adds the partitions of a batch to their table; what the metastore refuses is found by halving."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        rows = batch.rows()
        database, name = rows[0]["database"], rows[0]["table"]
        try:
            table = client.call("get_table", database, name)
        except NoSuchObjectException as error:
            return StepOutcome(
                refused=[Refusal(row["location"], f"is not registered: {error.message}") for row in rows]
            )

        def add(some: Sequence[dict[str, Any]]) -> None:
            parts, columns = columns_once([_partition(table, row) for row in some])
            request = AddPartitionsRequest(
                dbName=database,
                tblName=name,
                parts=parts,
                ifNotExists=True,
                needResult=False,
                environmentContext=_NO_LISTING,
                partitionColSchema=columns,
            )
            client.call("add_partitions_req", request)

        own, refused = self._divided(table, rows)
        if own:
            refused += halved(own, add)
        left_out = {refusal.item for refusal in refused}
        added = [row for row in own if row["location"] not in left_out]
        counts = {"partitions": len(added), "files": sum(row["files"] for row in added)}
        return StepOutcome({**counts, "bytes": sum(row["bytes"] for row in added)}, refused)

    def _divided(self, table: Table, rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Refusal]]:
        """What lies in the table's directory, and refusals of the rest: the name may be that of another table."""
        there = (table.sd.location if table.sd else None) or ""
        files = files_of(self.location, self.storage)
        # The metastore may spell a location in another way than we do.
        path = files.root(there) if same_file_system(there, self.location) else None
        own, refused = [], []
        for row in rows:
            location = row["location"]
            if is_within(location, there) or (path is not None and is_within(files.root(location), path)):
                own.append(row)
            else:
                refused.append(Refusal(location, _elsewhere(table.dbName, table.tableName, there)))
        return own, refused


def _partition(table: Table, row: dict[str, Any]) -> Partition:
    sd = table.sd or StorageDescriptor()
    return Partition(
        values=row["values"],
        dbName=table.dbName,
        tableName=table.tableName,
        sd=msgspec.structs.replace(sd, location=row["location"]),
        parameters={"numFiles": str(row["files"]), "totalSize": str(row["bytes"])},
    )


def halved(rows: Sequence[dict[str, Any]], do: Callable[[Sequence[dict[str, Any]]], None]) -> list[Refusal]:
    """Do all rows at once, or, where the metastore refuses that, each half by itself; the refusals that remain."""
    try:
        do(rows)
    except ThriftException as error:
        if len(rows) == 1:
            return [Refusal(rows[0]["location"], f"is refused: {type(error).__name__}: {error.message}")]
        middle = len(rows) // 2
        return [*halved(rows[:middle], do), *halved(rows[middle:], do)]
    return []


@dataclass(frozen=True)
class Prune:
    """Drops partitions whose directory is still gone, and that still lie there. Nothing is deleted."""

    location: str
    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        files, rows = files_of(self.location, self.storage), batch.rows()
        database, table = rows[0]["database"], rows[0]["table"]
        try:
            found = client.call("get_partitions_by_names", database, table, [row["name"] for row in rows])
        except NoSuchObjectException:
            return StepOutcome()
        there = {tuple(one.values): one.sd.location for one in found}
        gone = [
            row
            for row in rows
            if there.get(tuple(name_to_values(row["name"]))) == row["location"]
            and is_gone(files, files.root(row["location"])) == ""
        ]
        if not gone:
            return StepOutcome()

        def drop(some: Sequence[dict[str, Any]]) -> None:
            request = DropPartitionsRequest(
                dbName=database,
                tblName=table,
                parts=RequestPartsSpec(names=[row["name"] for row in some]),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
            client.call("drop_partitions_req", request)

        refused = halved(gone, drop)
        return StepOutcome({"dropped": len(gone) - len(refused)}, refused)
