"""Writes statistics of partitions and tables unless these have changed since, and adds up those of whole tables."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS, UNCHANGED_SINCE
from hms_gateway.pipeline.catalog import CatalogReader, columns_once, latest, statistics_of
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers.footer import Column, FooterFigures, joined
from hms_gateway.pipeline.jobs.batches import Refusal, RowBatch, StepOutcome
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.stored import numbers, texts
from hms_gateway.pipeline.stats.column_statistics import (
    Amounts,
    NotKnown,
    column_statistics,
    kind_of,
    packed,
    spark_amounts,
    spark_columns,
    spark_names,
    spark_statistics,
    unpacked,
    with_amounts,
    without_spark,
)
from hms_gateway.pipeline.stats.measuring import (
    FRESH,
    NEW,
    columns_of,
    columns_text,
    data_files,
    digest,
    fingerprint,
    location_of,
)
from hms_gateway.pipeline.storage import ListingProblem, Storage
from hms_gateway.rpc.structs import (
    AlterPartitionsRequest,
    ColumnStatisticsObj,
    EnvironmentContext,
    InvalidOperationException,
    NoSuchObjectException,
    Partition,
    SetPartitionsStatsRequest,
    Table,
)

# What whole tables have: figures of all partitions together, and how many of these have statistics.
#
# Added up batch by batch where the batch is written, and then on the driver: a few rows for each table.


_UNKNOWN: Final = pyarrow.struct([*texts("column", "reason"), ("partitions", pyarrow.int64())])
TOTALS: Final = pyarrow.schema(
    [
        *texts("database", "table"),
        ("is_partitioned", pyarrow.bool_()),
        *numbers("partitions", "new", "known", "files", "bytes", "rows", "raw"),
        ("figures", pyarrow.binary()),
        *texts("location", "fingerprint", "of"),
        *numbers("columns", "had_columns"),
        ("unknown", pyarrow.list_(_UNKNOWN)),
        ("distinct", pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    ]
)
_SUMS: Final = ("partitions", "new", "known", "files", "bytes", "columns", "had_columns")
_ROWS_AT_ONCE: Final = 500


def of_batch(rows: Iterable[Mapping[str, Any]], unknown: Mapping[tuple[str, str], int]) -> pyarrow.Table:
    """Rows of FOUND, all of one table, as one of TOTALS; `unknown` counts columns without statistics by reason."""
    total = _added_up(_of_partition(row) for row in rows)
    total["unknown"] = [unknown_row(*key, number) for key, number in unknown.items()]
    return pyarrow.Table.from_pylist([_packed(total)], TOTALS)


def unknown_row(column: str, reason: str, partitions: int) -> dict[str, Any]:
    """An item of the field `unknown`: a column that has no statistics in so many partitions."""
    return {"column": column, "reason": reason, "partitions": partitions}


def of_tables(rows: Iterable[Mapping[str, Any]], distinct: Mapping[tuple[str, str], Any]) -> Iterator[dict[str, Any]]:
    """Totals of batches, those of a table behind each other, as one for each table.

    `distinct` has the distinct values of columns by table, where they are known of all its partitions together.
    """
    for table, parts in groupby(rows, lambda row: (row["database"], row["table"])):
        total = _added_up(dict(part) | {"figures": _figures(part)} for part in parts)
        yield _packed(total) | {"distinct": distinct.get(table)}


def _of_partition(row: Mapping[str, Any]) -> dict[str, Any]:
    is_known = row["state"] in (NEW, FRESH)
    return {
        "database": row["database"],
        "table": row["table"],
        "is_partitioned": row["partition"] != "",
        "partitions": 1,
        "new": int(row["state"] == NEW),
        "known": int(is_known),
        "files": row["files"] or 0,
        "bytes": row["bytes"] or 0,
        "rows": row["rows"] if is_known else None,
        "raw": row["raw"],
        "figures": _figures(row) if is_known else None,
        "location": row["location"],
        "fingerprint": row["fingerprint"],
        "of": row["of"],
        "columns": row["columns"],
        "had_columns": row["had_columns"],
        "unknown": [],
    }


def _figures(row: Mapping[str, Any]) -> dict[str, FooterFigures] | None:
    return unpacked(row["figures"]) if row["figures"] else None


def _packed(total: dict[str, Any]) -> dict[str, Any]:
    return total | {"figures": None if total["figures"] is None else packed(total["figures"])}


def _added_up(rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
    total: list[dict[str, Any]] = []
    for row in rows:
        total.append(row)
        if len(total) == _ROWS_AT_ONCE:
            total = [_added(total)]
    return _added(total)


def _added(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    added = {name: sum(row[name] for row in rows) for name in _SUMS}
    for name in ("rows", "raw"):
        values = [row[name] for row in rows]
        added[name] = None if None in values else sum(values)
    unknown = [one for row in rows for one in row["unknown"] or ()]
    return {**rows[0], **added, "figures": _joined([row["figures"] for row in rows]), "unknown": unknown}


def _joined(parts: Sequence[dict[str, FooterFigures] | None]) -> dict[str, FooterFigures] | None:
    """Figures of the columns that all parts have; None where one has nothing."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    names = [name for name in known[0] if all(name in part for part in known)]
    return {name: joined(part[name] for part in known) for name in names}


# Writes the statistics of partitions: some hundreds of them in two calls, unless they have changed since.


# Of set_aggr_stats_for; a call of the gateway holds its writer for as long as it runs.
PARTITIONS_A_BATCH: Final = 500
# A batch that others change while it is written is looked at again, so often.
_ATTEMPTS: Final = 3
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
    """The outcome of a batch; `unknown` counts columns without statistics by name and reason."""

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
        event = latest(client)
        table = client.call("get_table", database, table_name)
        columns = columns_of(table)
        targets, refused = self._look_again(client, table, columns, rows)
        unknown = Counter[tuple[str, str]]()
        for target in targets:
            target.statistics = known_statistics(unpacked(target.row["figures"]), columns, unknown)
        if targets:
            _alter(client, database, table_name, targets, event)
            _set_statistics(client, table, targets)
        return _Written(len(targets), sum(len(target.statistics) for target in targets), refused, unknown)

    def _look_again(
        self, client: PatientClient, table: Table, columns: Sequence[Column], rows: dict[str, dict[str, Any]]
    ) -> tuple[list[_Target], list[Refusal]]:
        now = CatalogReader(client).partitions(table, list(rows))
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
    """True if a table or partition, its files or the columns are others than those that were read."""
    if fingerprint(described) != row["fingerprint"]:
        return True
    try:
        listed = data_files(location_of(described.sd), storage)
    except (ListingProblem, OptionError):
        return True
    return digest(listed, columns) != str(row["of"]).partition(":")[2]


def _refused(row: Mapping[str, Any], reason: str) -> Refusal:
    return Refusal(_name(row), reason)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['database']}.{row['table']} {row['partition']}".rstrip()


def known_statistics(
    figures: Mapping[str, FooterFigures], columns: Sequence[Column], unknown: Counter[tuple[str, str]]
) -> list[ColumnStatisticsObj]:
    """Statistics of columns with known figures; others are counted in `unknown` by reason."""
    found = []
    for column in columns:
        if kind_of(column.type) is None:
            continue
        try:
            if column.name not in figures:
                raise NotKnown("its type in the files is another one")
            found.append(column_statistics(column, figures[column.name]))
        except NotKnown as reason:
            unknown[column.name, str(reason)] += 1
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
    """True if a change was refused since another client's came between (`hms.unchanged.since`)."""
    return (refused.message or "").startswith(("Refused: event ", f"Refused: {UNCHANGED_SINCE}"))


def _set_statistics(client: PatientClient, table: Table, targets: Sequence[_Target]) -> None:
    given = [statistics_of(table, target.name, target.statistics) for target in targets if target.statistics]
    if given:
        client.call("set_aggr_stats_for", SetPartitionsStatsRequest(colStats=given))


# Writes the statistics of whole tables: those of the metastore, and the properties that Spark plans with.


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
    """The number of written columns, or a reason for none. Adds unknown ones of a table without partitions."""
    if row["known"] < row["partitions"]:
        return 0, INCOMPLETE
    event = latest(client)
    table = client.call("get_table", row["database"], row["table"])
    columns = columns_of(table)
    if not row["is_partitioned"] and has_changed(table, row, columns_text(columns), storage):
        return 0, CHANGED
    figures = with_distinct(unpacked(row["figures"] or b"\x80"), dict(row["distinct"] or ()))
    reasons = Counter[tuple[str, str]]()
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
        given = [statistics_of(table, None, statistics)]
        client.call("set_aggr_stats_for", SetPartitionsStatsRequest(colStats=given))
    return len(statistics), ""


def with_distinct(figures: Mapping[str, FooterFigures], distinct: Mapping[str, int]) -> dict[str, FooterFigures]:
    """Figures with distinct values of the whole table, if known, in place of those of partitions."""
    return {
        name: msgspec.structs.replace(each, distinct=distinct[name]) if name in distinct else each
        for name, each in figures.items()
    }


def _parameters(
    table: Table,
    columns: Sequence[Column],
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
