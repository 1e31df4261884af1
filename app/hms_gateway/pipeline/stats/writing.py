"""Writes the statistics of partitions: some hundreds of them in two calls, unless they have changed since."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.columns_once import columns_once
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers import FooterFigures
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.stats.column_statistics import NotKnown, column_statistics
from hms_gateway.pipeline.stats.files import NotListed, data_files, digest
from hms_gateway.pipeline.stats.kinds import TableColumn, kind_of
from hms_gateway.pipeline.stats.measuring import NEW
from hms_gateway.pipeline.stats.packing import unpacked
from hms_gateway.pipeline.stats.parameters import Amounts, with_amounts
from hms_gateway.pipeline.stats.selecting import columns_of, columns_text, fingerprint, location_of
from hms_gateway.pipeline.stats.totals import of_batch
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import (
    AlterPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    EnvironmentContext,
    InvalidOperationException,
    NoSuchObjectException,
    Partition,
    SetPartitionsStatsRequest,
    Table,
)

# Of set_aggr_stats_for; a call of the gateway holds its writer for as long as it runs.
PARTITIONS_A_BATCH: Final = 500
# What others change while a batch is written is looked at again, so often.
_ATTEMPTS: Final = 3
UNCHANGED_SINCE: Final = "hms.unchanged.since"
CHANGED: Final = "has changed since it was read; the next run takes its statistics"
GONE: Final = "was dropped since it was read"
LEFT: Final = "left"


class _Target(msgspec.Struct):
    """A partition as it is now, and what was found about it."""

    name: str
    partition: Partition
    row: dict[str, Any]
    statistics: Sequence[ColumnStatisticsObj] = ()


class _Written(msgspec.Struct, frozen=True):
    """What became of a batch; `unknown` counts columns without statistics by name and reason."""

    partitions: int = 0
    columns: int = 0
    refused: Sequence[Refusal] = ()
    unknown: Mapping[tuple[str, str], int] = {}


class _ChangedMeanwhile(Exception):
    """The gateway refused the change since another one came between."""


@dataclass(frozen=True)
class WritePartitions:
    """The step: rows of FOUND, of one table."""

    storage: Storage = field(repr=False)

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        found = batch.rows()
        rows = {row["partition"]: row for row in found if row["state"] == NEW and row["partition"]}
        written = self._written(client, rows) if rows else _Written()
        left = {refusal.item for refusal in written.refused}
        # What is left for the next run is not known now.
        known = [row | {"state": LEFT} if _name(row) in left else row for row in found]
        counts = {"partitions": written.partitions, "columns": written.columns} if written.partitions else {}
        return StepOutcome(counts, written.refused, of_batch(known, written.unknown))

    def _written(self, client: PatientClient, rows: dict[str, dict[str, Any]]) -> "_Written":
        first = next(iter(rows.values()))
        for _ in range(_ATTEMPTS):
            try:
                return self._write(client, first["database"], first["table"], rows)
            except (_ChangedMeanwhile, NoSuchObjectException):
                # The statistics of all are written again: those of one that was dropped in between are missing.
                continue
        return _Written(refused=[_refused(row, CHANGED) for row in rows.values()])

    def _write(
        self, client: PatientClient, database: str, table_name: str, rows: dict[str, dict[str, Any]]
    ) -> "_Written":
        event = client.call("get_current_notificationEventId").eventId
        table = client.call("get_table", database, table_name)
        columns = columns_of(table)
        targets, refused = self._look_again(client, table, columns, rows)
        unknown: dict[tuple[str, str], int] = {}
        for target in targets:
            target.statistics = known_statistics(unpacked(target.row["figures"]), columns, unknown)
        if targets:
            _alter(client, database, table_name, targets, event)
            _set_statistics(client, database, table_name, targets)
        return _Written(len(targets), sum(len(target.statistics) for target in targets), refused, unknown)

    def _look_again(
        self, client: PatientClient, table: Table, columns: Sequence[TableColumn], rows: dict[str, dict[str, Any]]
    ) -> tuple[list[_Target], list[Refusal]]:
        keys = [key.name or "" for key in table.partitionKeys or ()]
        found = client.call("get_partitions_by_names", table.dbName, table.tableName, list(rows))
        now = {make_name(keys, partition.values): partition for partition in found}
        text = columns_text(columns)
        targets, refused = [], []
        for name, row in rows.items():
            partition = now.get(name)
            if partition is None:
                refused.append(_refused(row, GONE))
            elif has_changed(partition, row, text, self.storage):
                refused.append(_refused(row, CHANGED))
            else:
                targets.append(_Target(name, partition, row))
        return targets, refused


def has_changed(described: Table | Partition, row: Mapping[str, Any], columns: str, storage: Storage) -> bool:
    """Whether a table or partition, its files or the columns are others than those that were read."""
    if fingerprint(described) != row["fingerprint"]:
        return True
    try:
        listed = data_files(location_of(described.sd), storage)
    except (NotListed, OptionError):
        return True
    return digest(listed, columns) != str(row["of"]).partition(":")[2]


def _refused(row: Mapping[str, Any], reason: str) -> Refusal:
    return Refusal(_name(row), reason)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['database']}.{row['table']} {row['partition']}".rstrip()


def known_statistics(
    figures: Mapping[str, FooterFigures], columns: Sequence[TableColumn], unknown: dict[tuple[str, str], int]
) -> list[ColumnStatisticsObj]:
    """Of the columns of which they are known; others are counted in `unknown` by reason."""
    found = []
    for column in columns:
        if kind_of(column.type) is None:
            continue
        try:
            if column.name not in figures:
                raise NotKnown("its type in the files is another one")
            found.append(column_statistics(column, figures[column.name]))
        except NotKnown as reason:
            key = column.name, str(reason)
            unknown[key] = unknown.get(key, 0) + 1
    return found


def amounts_of(row: Mapping[str, Any]) -> Amounts:
    return Amounts(row["files"], row["bytes"], row["rows"], row["raw"])


def _alter(client: PatientClient, database: str, table: str, targets: Sequence[_Target], event: int) -> None:
    """Raises _ChangedMeanwhile."""
    at = int(time.time())
    altered = []
    for target in targets:
        names = [one.colName or "" for one in target.statistics]
        after = with_amounts(target.partition.parameters or {}, amounts_of(target.row), names, at, target.row["of"])
        altered.append(msgspec.structs.replace(target.partition, parameters=after))
    context = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true", UNCHANGED_SINCE: str(event)})
    parts, columns = columns_once(altered)
    request = AlterPartitionsRequest(
        dbName=database, tableName=table, partitions=parts, environmentContext=context, partitionColSchema=columns
    )
    try:
        client.call("alter_partitions_req", request)
    except InvalidOperationException as refused:
        if is_of_others(refused):
            raise _ChangedMeanwhile from refused
        raise


def is_of_others(refused: InvalidOperationException) -> bool:
    """Whether a change was refused since another client's came between (`hms.unchanged.since`)."""
    return (refused.message or "").startswith(("Refused: event ", f"Refused: {UNCHANGED_SINCE}"))


def _set_statistics(client: PatientClient, database: str, table: str, targets: Sequence[_Target]) -> None:
    given = [
        ColumnStatistics(
            statsDesc=ColumnStatisticsDesc(isTblLevel=False, dbName=database, tableName=table, partName=target.name),
            statsObj=list(target.statistics),
        )
        for target in targets
        if target.statistics
    ]
    if given:
        client.call("set_aggr_stats_for", SetPartitionsStatsRequest(colStats=given))
