"""Writes the statistics of whole tables: those of the metastore, and the properties that Spark plans with."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.pipeline.footers import FooterFigures
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.stats.column_statistics import NotKnown, spark_statistics
from hms_gateway.pipeline.stats.kinds import TableColumn
from hms_gateway.pipeline.stats.packing import unpacked
from hms_gateway.pipeline.stats.parameters import (
    spark_amounts,
    spark_columns,
    spark_names,
    with_amounts,
    without_spark,
)
from hms_gateway.pipeline.stats.selecting import columns_of, columns_text
from hms_gateway.pipeline.stats.totals import TOTALS, unknown_row
from hms_gateway.pipeline.stats.writing import (
    CHANGED,
    GONE,
    UNCHANGED_SINCE,
    amounts_of,
    has_changed,
    is_of_others,
    known_statistics,
)
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    EnvironmentContext,
    InvalidOperationException,
    NoSuchObjectException,
    SetPartitionsStatsRequest,
    Table,
)

UNKNOWN_OF_TABLES: Final = pyarrow.schema([TOTALS.field(name) for name in ("database", "table", "unknown")])
INCOMPLETE = "has partitions whose statistics are not known; those of the whole table are not written"


@dataclass(frozen=True)
class WriteTables:
    """The step: rows of TOTALS. Where only a part of the partitions was looked at, their sums are not the table's."""

    storage: Storage = field(repr=False)
    is_part: bool

    def __call__(self, client: PatientClient, batch: RowBatch) -> StepOutcome:
        counts = {"tables": 0, "unpartitioned": 0, "columns_of_unpartitioned": 0}
        refused: list[Refusal] = []
        unknown: list[dict[str, Any]] = []
        for row in batch.rows():
            if not row["new"] or (self.is_part and row["is_partitioned"]):
                continue
            try:
                written, reason = _written(client, row, self.storage, unknown)
            except NoSuchObjectException:
                written, reason = 0, GONE
            if reason:
                refused.append(Refusal(f"{row['database']}.{row['table']}", reason))
                continue
            counts["tables"] += 1
            if not row["is_partitioned"]:
                counts["unpartitioned"] += 1
                counts["columns_of_unpartitioned"] += written
        rows = pyarrow.Table.from_pylist(unknown, UNKNOWN_OF_TABLES) if unknown else None
        return StepOutcome(counts, refused, rows)


def _written(
    client: PatientClient, row: Mapping[str, Any], storage: Storage, unknown: list[dict[str, Any]]
) -> tuple[int, str]:
    """How many columns were written, or why none. Those of a table without partitions that are not known are added."""
    if row["known"] < row["partitions"]:
        return 0, INCOMPLETE
    event = client.call("get_current_notificationEventId").eventId
    table = client.call("get_table", row["database"], row["table"])
    columns = columns_of(table)
    if not row["is_partitioned"] and has_changed(table, row, columns_text(columns), storage):
        return 0, CHANGED
    figures = with_distinct(unpacked(row["figures"] or b"\x80"), dict(row["distinct"] or ()))
    reasons: dict[tuple[str, str], int] = {}
    statistics = known_statistics(figures, columns, reasons)
    if not row["is_partitioned"]:
        named = {"database": row["database"], "table": row["table"]}
        unknown += [named | {"unknown": [unknown_row(*key, 1)]} for key in reasons]
    after = _parameters(table, columns, figures, row, [one.colName or "" for one in statistics])
    context = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true", UNCHANGED_SINCE: str(event)})
    try:
        altered = msgspec.structs.replace(table, parameters=after)
        client.call("alter_table_with_environment_context", row["database"], row["table"], altered, context)
    except InvalidOperationException as refused:
        if is_of_others(refused):
            return 0, CHANGED
        raise
    if statistics:
        description = ColumnStatisticsDesc(isTblLevel=True, dbName=row["database"], tableName=row["table"])
        given = ColumnStatistics(statsDesc=description, statsObj=statistics)
        client.call("set_aggr_stats_for", SetPartitionsStatsRequest(colStats=[given]))
    return len(statistics), ""


def with_distinct(figures: Mapping[str, FooterFigures], distinct: Mapping[str, int]) -> dict[str, FooterFigures]:
    """With the distinct values that are known of the whole table in place of what partitions say."""
    return {
        name: msgspec.structs.replace(each, distinct=distinct[name]) if name in distinct else each
        for name, each in figures.items()
    }


def _parameters(
    table: Table,
    columns: Sequence[TableColumn],
    figures: Mapping[str, FooterFigures],
    row: Mapping[str, Any],
    written: Sequence[str],
) -> dict[str, str]:
    before, amounts = table.parameters or {}, amounts_of(row)
    names, of_spark = spark_names(before), {}
    for column in columns:
        try:
            if column.name in figures:
                of_spark[names.get(column.name, column.name)] = spark_statistics(column, figures[column.name])
        except NotKnown:
            continue
    if row["is_partitioned"]:
        # Hive keeps the amounts of a table with partitions in these only.
        kept = without_spark(before) | spark_amounts(amounts)
    else:
        kept = with_amounts(before, amounts, written, int(time.time()), row["of"])
    return kept | spark_columns(of_spark)
