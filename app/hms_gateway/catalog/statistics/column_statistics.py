"""Methods on column statistics: store, merge, read, sum up and delete (semantics §2.16)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from hms_gateway.catalog.arguments import is_newer, table_in, table_named, table_shown, with_fields
from hms_gateway.catalog.statistics.aggregation import (
    Judged,
    MixedStatistics,
    Verdict,
    aggregate,
    judged,
    member_of,
    merged,
    updated,
)
from hms_gateway.catalog.statistics.shapes import (
    received,
    shown,
    shown_aggregate,
    shown_of_partitions,
    shown_of_table,
)
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import with_parameters
from hms_gateway.metastore.ports.store import Event, NewPartition, Selection, Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import PartitionId, normalize
from hms_gateway.metastore.vocabulary.parameters import with_accurate_columns
from hms_gateway.metastore.vocabulary.partition_names import (
    IncompletePartitionName,
    InvalidPartitionName,
    PartitionCountMismatch,
    escape,
    make_name,
    name_to_spec,
    name_to_values,
    parse_name,
)
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AggrStats_v4,
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsData_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj_v4,
    CompactionInfoStruct,
    Decimal,
    DeleteColumnStatisticsRequest,
    EncodedList,
    InvalidInputException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    SetPartitionsStatsResponse,
    Struct,
    Table,
    TableStatsRequest,
)
from hms_gateway.rpc.structs.base import items_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import is_recorded
from hms_gateway.storage.catalog.statistics import ColumnFigures, StatisticsRows

UPDATE_OF_TABLE: Final = "UPDATE_TBL_COL_STAT_EVENT"
DELETE_OF_TABLE: Final = "DELETE_TBL_COL_STAT_EVENT"
UPDATE_OF_PARTITION: Final = "UPDATE_PART_COL_STAT_EVENT"
DELETE_OF_PARTITION: Final = "DELETE_PART_COL_STAT_EVENT"


class StatisticsEvents:
    def __init__(self, events: EventMaker) -> None:
        self._events = events

    def update_of_table(self, table: Table, statistics: ColumnStatistics_v4) -> Event:
        """`table` as it is now, with the parameters that say which statistics are accurate."""
        fields = {
            "colStatsJson": self._events.object_json(statistics),
            "parameters": table.parameters or {},
            "tableObjJson": self._events.object_json(table),
        }
        return self._event(UPDATE_OF_TABLE, table, fields)

    def update_of_partition(self, table: Table, part_name: str, statistics: ColumnStatistics_v4) -> Event:
        fields = {
            "partName": part_name,
            "partVals": name_to_values(part_name),
            "colStatsJson": self._events.object_json(statistics),
        }
        return self._event(UPDATE_OF_PARTITION, table, fields)

    def delete_of_table(self, table: Table, column: str | None) -> Event:
        """No column means all of them."""
        return self._event(DELETE_OF_TABLE, table, {"colName": column})

    def delete_of_partition(self, table: Table, part_name: str, column: str | None) -> Event:
        fields = {"colName": column, "partName": part_name, "partValues": name_to_values(part_name)}
        return self._event(DELETE_OF_PARTITION, table, fields)

    def _event(self, event_type: str, table: Table, fields: dict[str, Any]) -> Event:
        names = {"database": table.dbName, "table": table.tableName}
        message = names | fields | {"timestamp": self._events.timestamp()}
        return self._events.event(event_type, table.dbName or "", table.tableName, message)


DEFAULT_ENGINE: Final = "hive"
_ENGINE_CHARACTERS_MAX: Final = 64
# decimal(38) needs 16; more only costs time to compute with.
_DECIMAL_BYTES_MAX: Final = 64


class _Given(msgspec.Struct, frozen=True):
    """What a request says about one table or partition, each column once.

    `is_recorded` when the table's parameters say already which columns have statistics, or that they do not.
    """

    table: TableName
    part_name: str | None
    engine: str
    figures: tuple[ColumnFigures, ...]
    is_recorded: bool = False

    @property
    def columns(self) -> list[str]:
        return [one.column for one in self.figures]


class StatisticsRules:
    """Storing column statistics inside a unit of work; also those that tables and partitions are made with.

    Names are as callers spell them, without catalog; sketches are bytes (the structs of 3.1 and later). No engine means
    `hive`; each engine has statistics of its own.
    """

    def __init__(self, clock: Clock, events: EventMaker) -> None:
        self._clock = clock
        self._events = StatisticsEvents(events)

    def of_new_table(self, table: Table) -> Callable[[Transaction], None]:
        """What stores the statistics a new table came with, within the unit of work that makes it (4.x)."""
        sent = required(table.colStats, "column statistics")
        description = sent.statsDesc or ColumnStatisticsDesc()
        named = msgspec.structs.replace(description, dbName=table.dbName, tableName=table.tableName, partName=None)
        given = self.given(msgspec.structs.replace(sent, statsDesc=named), table.writeId)
        return lambda tx: self.put_of_table(tx, given, merges=False)

    def of_new_partitions(self, tx: Transaction, added: Sequence[NewPartition]) -> None:
        """Store the statistics that new partitions of one table came with (4.x). Raises MetaException."""
        given = []
        for one in added:
            sent = one.partition.colStats
            if sent is not None:
                description = sent.statsDesc or ColumnStatisticsDesc()
                named = msgspec.structs.replace(
                    description, dbName=one.partition.dbName, tableName=one.partition.tableName, partName=one.name
                )
                given.append(self.given(msgspec.structs.replace(sent, statsDesc=named), one.partition.writeId))
        if given:
            self.put_of_partitions(tx, given, merges=False)

    def given(self, statistics: ColumnStatistics_v4, write_id: int | None) -> _Given:
        description = required(statistics.statsDesc, "description of the statistics")
        analyzed = description.lastAnalyzed or self._clock.seconds()
        figures = {}
        for one in required(statistics.statsObj, "column statistics"):
            column = normalize(required(one.colName, "column name"))
            column_type = required(one.colType, "column type").lower()
            data = _checked(column, one.statsData)
            figures[column] = ColumnFigures(column, column_type, data, analyzed, write_id)
        table = TableName(description.dbName, description.tableName)
        return _Given(table, description.partName, _engine(statistics.engine), tuple(figures.values()), is_recorded())

    def put_of_table(self, tx: Transaction, given: _Given, merges: bool) -> None:
        stored, engine = _loaded(tx, given.table), given.engine
        _check_columns(stored, given.columns)
        rows = StatisticsRows(tx)
        known = {one.column: one for one in rows.of_table(stored.table_id, engine, given.columns)}
        rows.put_of_table(stored.table_id, engine, [_combined(known, one, merges) for one in given.figures])
        after = stored.table
        if not given.is_recorded:
            after = with_parameters(after, with_accurate_columns(after.parameters or {}, given.columns))
        if after != stored.table:
            tx.update_table(stored.table_id, stored.database_id, after)
        tx.append_event(self._events.update_of_table(after, _statistics(stored, None, given.figures, engine)))

    def put_of_partitions(self, tx: Transaction, given: Sequence[_Given], merges: bool) -> None:
        """All partitions of one table and engine at once; of what is said twice the later counts."""
        tables: dict[TableName, StoredTable] = {}
        groups: dict[tuple[TableName, str], dict[str, dict[str, ColumnFigures]]] = {}
        for one in given:
            stored = tables.get(one.table) or tables.setdefault(one.table, _of_partitions(tx, one.table))
            table_name = TableName(stored.table.dbName, stored.table.tableName)
            tables[table_name] = stored
            name = _stored_part_name(stored, one.part_name)
            of_table = groups.setdefault((table_name, one.engine), {})
            of_table.setdefault(name, {}).update({each.column: each for each in one.figures})
        for (table_name, engine), by_name in groups.items():
            self._put_in_one_table(tx, tables[table_name], engine, by_name, merges)

    def _put_in_one_table(
        self,
        tx: Transaction,
        stored: StoredTable,
        engine: str,
        given: Mapping[str, Mapping[str, ColumnFigures]],
        merges: bool,
    ) -> None:
        ids = StatisticsRows(tx).partition_ids(stored, list(given))
        if len(ids) < len(given):
            raise NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
        columns = list(dict.fromkeys(column for figures in given.values() for column in figures))
        _check_columns(stored, columns)
        known = StatisticsRows(tx).of_partitions(stored, engine, list(given), columns)
        combined: dict[PartitionId, list[ColumnFigures]] = {}
        for name, figures in given.items():
            before = {one.column: one for one in known.get(name, ())}
            combined[ids[name]] = [_combined(before, one, merges) for one in figures.values()]
        StatisticsRows(tx).put_of_partitions(stored.table_id, engine, combined)
        for name, figures in given.items():
            statistics = _statistics(stored, name, list(figures.values()), engine)
            tx.append_event(self._events.update_of_partition(stored.table, name, statistics))


class ColumnStatisticsMethods:
    """Structs with sketches come and go in the shape of the caller's dialect (semantics §10.1)."""

    def __init__(self, store: Store, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self._events = StatisticsEvents(events)
        self._rules = StatisticsRules(clock, events)

    def update_table_column_statistics(self, call: Call, stats_obj: ColumnStatistics) -> bool:
        self._update_table(_given(stats_obj, None))
        return True

    def update_partition_column_statistics(self, call: Call, stats_obj: ColumnStatistics) -> bool:
        self._update_partitions([_given(stats_obj, None)])
        return True

    def update_table_column_statistics_req(
        self, call: Call, req: SetPartitionsStatsRequest_v4
    ) -> SetPartitionsStatsResponse:
        request = required(req, "req")
        _refuse_merge(request)
        self._update_table(_single(_all_given(request)), write_id=_write_id(request))
        return SetPartitionsStatsResponse(result=True)

    def update_partition_column_statistics_req(
        self, call: Call, req: SetPartitionsStatsRequest_v4
    ) -> SetPartitionsStatsResponse:
        request = required(req, "req")
        _refuse_merge(request)
        self._update_partitions(_all_given(request), write_id=_write_id(request))
        return SetPartitionsStatsResponse(result=True)

    def get_table_column_statistics(self, call: Call, db_name: str, tbl_name: str, col_name: str) -> Struct:
        name, wanted = table_shown(call, db_name, tbl_name), normalize(required(col_name, "column name"))

        def work(snapshot: Snapshot) -> tuple[StoredTable, list[ColumnFigures]]:
            table = _loaded(snapshot, name)
            return table, StatisticsRows(snapshot).of_table(table.table_id, DEFAULT_ENGINE, [wanted])

        table, figures = self._store.read(work)
        if not figures:
            raise NoSuchObjectException(
                f"Statistics for db={name.db_name} table={name.tbl_name} col={col_name} not found"
            )
        found = _statistics(table, None, figures, DEFAULT_ENGINE)
        return shown(call, found, newer=is_newer(call, db_name))

    def get_partition_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, part_name: str, col_name: str
    ) -> Struct:
        name, stored_name = table_shown(call, db_name, tbl_name), _part_name(part_name)
        wanted = normalize(required(col_name, "column name"))

        def work(snapshot: Snapshot) -> tuple[StoredTable, Mapping[str, list[ColumnFigures]]]:
            table = _loaded(snapshot, name)
            return table, StatisticsRows(snapshot).of_partitions(table, DEFAULT_ENGINE, [stored_name], [wanted])

        table, found = self._store.read(work)
        if not found:
            raise NoSuchObjectException(
                f"Statistics for db={name.db_name} table={name.tbl_name} partition={part_name} col={col_name} not found"
            )
        statistics = _statistics(table, stored_name, found[stored_name], DEFAULT_ENGINE)
        return shown(call, statistics, newer=is_newer(call, db_name))

    def get_table_statistics_req(self, call: Call, request: TableStatsRequest) -> Struct:
        """Statistics of the columns that have any, as far as they hold for the reader."""
        request = required(request, "request")
        wanted = _columns(required(request.colNames, "column names"))
        name, seen = _table_of(request), request.validWriteIdList

        def work(snapshot: Snapshot) -> Judged[None]:
            table = _loaded(snapshot, name)
            figures = {None: StatisticsRows(snapshot).of_table(table.table_id, _engine(request.engine), wanted)}
            return judged(table.table, seen, figures, lambda: {None: table.table.parameters or {}})

        found = self._store.read(work)
        objects = _objects(found.figures.get(None, ()), wanted)
        return shown_of_table(call, objects, found.all_hold, newer=_is_newer(call, request))

    def get_partitions_statistics_req(self, call: Call, request: PartitionsStatsRequest) -> Struct:
        """Statistics of the partitions that have any, as far as they hold for the reader, by stored name."""
        _, wanted, found = self._judged(request)
        holding = {part_name: _objects(figures, wanted) for part_name, figures in found.figures.items()}
        return shown_of_partitions(call, holding, found.all_hold, newer=_is_newer(call, request))

    def get_aggr_stats_for(self, call: Call, request: PartitionsStatsRequest) -> Struct:
        """One estimate for each column over all partitions named (semantics §2.16.1), and whether it holds."""
        names, wanted, found = self._judged(request)
        statistics = AggrStats_v4([], 0, found.all_hold)
        if wanted and names:
            summed = aggregate(names, wanted, found.figures)
            statistics = AggrStats_v4(summed.columns, summed.partitions_found, found.all_hold)
        return shown_aggregate(call, statistics, newer=_is_newer(call, request))

    def set_aggr_stats_for(self, call: Call, request: SetPartitionsStatsRequest) -> bool:
        """Set the statistics of one table, or of any number of partitions, as the first says."""
        request = required(request, "request")
        given, merges, write_id = _all_given(request), bool(request.needMerge), _write_id(request)
        if not given:
            return True
        if required(given[0].statsDesc, "description of the statistics").isTblLevel:
            self._update_table(_single(given), merges=merges, write_id=write_id)
        else:
            self._update_partitions(given, merges=merges, write_id=write_id)
        return True

    def delete_partition_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, part_name: str, col_name: str, engine: str
    ) -> bool:
        """Delete the statistics of one column of a partition, or of all without one."""
        name = table_named(db_name, tbl_name)

        def work(tx: Transaction) -> None:
            table = _of_partitions(tx, name)
            stored_name = _stored_part_name(table, part_name)
            found = StatisticsRows(tx).partition_ids(table, [stored_name])
            if not found:
                raise NoSuchObjectException(
                    f"Partition {_with_lower_keys(part_name or '')} for which stats deletion is requested doesn't exist"
                )
            columns = _one_or_all(col_name)
            if not StatisticsRows(tx).delete_of_partitions(_engine(engine), list(found.values()), columns):
                raise NoSuchObjectException(
                    f"Column stats doesn't exist for db={table.table.dbName} table={table.table.tableName}"
                    f" partition={_with_lower_keys(part_name or '')} col={_shown(col_name)}"
                )
            tx.append_event(self._events.delete_of_partition(table.table, stored_name, col_name))

        self._store.write(work)
        return True

    def delete_table_column_statistics(
        self, call: Call, db_name: str, tbl_name: str, col_name: str, engine: str
    ) -> bool:
        """Delete the statistics of one column, or of all without one."""
        name = table_named(db_name, tbl_name)

        def work(tx: Transaction) -> None:
            table = name.find(tx)
            if table is None:
                raise NoSuchObjectException(
                    f"Table {name.tbl_name}  for which stats deletion is requested doesn't exist"
                )
            if not StatisticsRows(tx).delete_of_table(table.table_id, _engine(engine), _one_or_all(col_name)):
                raise NoSuchObjectException(
                    f"Column stats doesn't exist for db={table.table.dbName} table={table.table.tableName}"
                    f" col={_shown(col_name)}"
                )
            tx.append_event(self._events.delete_of_table(table.table, col_name))

        self._store.write(work)
        return True

    def delete_column_statistics_req(self, call: Call, req: DeleteColumnStatisticsRequest) -> bool:
        """Delete those of a table, or of its partitions where it has any.

        No columns and no partitions mean all of them; what has no statistics is ignored.
        """
        request = required(req, "req")
        name, part_names = table_in(request.cat_name, request.db_name, request.tbl_name), request.part_names
        wanted = _columns(request.col_names) if request.col_names else None

        def work(tx: Transaction) -> None:
            table, rows, engine = _loaded(tx, name), StatisticsRows(tx), _engine(request.engine)
            if request.tableLevel or not table.table.partitionKeys:
                if rows.delete_of_table(table.table_id, engine, wanted):
                    tx.append_event(self._events.delete_of_table(table.table, None))
                return
            names = [_part_name(one) for one in part_names] if part_names else tx.partition_names(table, Selection())
            ids = rows.partition_ids(table, names)
            if rows.delete_of_partitions(engine, list(ids.values()), wanted):
                for stored_name in ids:
                    tx.append_event(self._events.delete_of_partition(table.table, stored_name, None))

        self._store.write(work)
        return True

    def find_columns_with_stats(self, call: Call, cr: CompactionInfoStruct) -> list[str]:
        """For compaction workers, who compute these columns anew: sorted, of any engine; none for what is not there."""
        info = required(cr, "cr")
        name = table_named(info.dbname, info.tablename)

        def work(snapshot: Snapshot) -> list[str]:
            table = name.find(snapshot)
            if table is None:
                return []
            if info.partitionname is None:
                return StatisticsRows(snapshot).columns_of_table(table.table_id)
            return StatisticsRows(snapshot).columns_of_partition(table, _part_name(info.partitionname))

        return self._store.read(work)

    def _update_table(
        self, statistics: ColumnStatistics_v4, *, merges: bool = False, write_id: int | None = None
    ) -> None:
        """Store statistics of a table: over what is there column by column, or merged with it.

        `write_id` is that of the transaction which has computed them.
        """
        given = self._rules.given(statistics, write_id)
        with unstorable_as_meta():
            self._store.write(lambda tx: self._rules.put_of_table(tx, given, merges))

    def _update_partitions(
        self, statistics: Sequence[ColumnStatistics_v4], *, merges: bool = False, write_id: int | None = None
    ) -> None:
        """Store statistics of partitions, each of its own; all or none. Of repetitions the last counts."""
        given = [self._rules.given(one, write_id) for one in statistics]
        with unstorable_as_meta():
            self._store.write(lambda tx: self._rules.put_of_partitions(tx, given, merges))

    def _judged(self, request: PartitionsStatsRequest) -> tuple[list[str], list[str], Judged[str]]:
        """Stored names and columns that are asked for, and the statistics that hold for the reader."""
        request = required(request, "request")
        part_names = required(request.partNames, "partition names")
        wanted, name = _columns(required(request.colNames, "column names")), _table_of(request)

        def work(snapshot: Snapshot) -> tuple[list[str], Judged[str]]:
            table = _loaded(snapshot, name)
            names = [_part_name(part_name) for part_name in part_names]
            seen = request.validWriteIdList
            return names, _judged_of_partitions(snapshot, table, names, wanted, request.engine, seen)

        names, found = self._store.read(work)
        return names, wanted, found


def with_table_statistics(
    store: Store, name: TableName, table: Table, engine: str | None, valid_write_ids: str | None
) -> Table:
    """A copy of a table that carries what is known about its columns, as far as it holds for the reader."""

    def work(snapshot: Snapshot) -> Table:
        stored = _loaded(snapshot, name)
        figures = {None: StatisticsRows(snapshot).of_table(stored.table_id, _engine(engine))}
        found = judged(stored.table, valid_write_ids, figures, lambda: {None: stored.table.parameters or {}})
        holding = found.figures.get(None)
        statistics = _statistics(stored, None, holding, _engine(engine), found.all_hold) if holding else None
        return msgspec.structs.replace(table, colStats=statistics)

    return store.read(work)


def with_statistics(
    store: Store,
    name: TableName,
    partitions: list[Partition] | EncodedList,
    engine: str | None,
    valid_write_ids: str | None,
) -> list[Partition] | EncodedList:
    """Copies of a table's partitions that carry what is known about their columns, as far as it holds."""
    each = items_of(partitions)

    def work(snapshot: Snapshot) -> list[Partition]:
        table = _loaded(snapshot, name)
        names = [make_name(table.key_names, one.values or []) for one in each]
        found = _judged_of_partitions(snapshot, table, names, None, engine, valid_write_ids)
        holds = None if found.all_hold is None else True
        return [
            _with_figures(table, partition, part_name, found.figures.get(part_name, ()), _engine(engine), holds)
            for partition, part_name in zip(each, names, strict=True)
        ]

    return store.read(work)


def _single(statistics: Sequence[ColumnStatistics_v4]) -> ColumnStatistics_v4:
    """The only one, as a table has it. Raises MetaException."""
    if len(statistics) != 1:
        raise MetaException(f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(statistics)}")
    return statistics[0]


def _refuse_merge(request: SetPartitionsStatsRequest_v4) -> None:
    """Statistics that are not aggregates replace what is there (semantics §10.3). Raises InvalidInputException."""
    if request.needMerge:
        raise InvalidInputException("Merge is not supported for non-aggregate stats")


def _loaded(snapshot: Snapshot, name: TableName) -> StoredTable:
    table = name.find(snapshot)
    if table is None:
        raise NoSuchObjectException(f"Specified database/table does not exist : {name}")
    return name.shown(table)


def _of_partitions(tx: Transaction, name: TableName) -> StoredTable:
    """The table, whose absence Hive reports otherwise where statistics of partitions change."""
    table = name.find(tx)
    if table is None:
        raise InvalidObjectException(f"{name} table not found")
    return table


def _judged_of_partitions(
    snapshot: Snapshot,
    table: StoredTable,
    names: Sequence[str],
    columns: Sequence[str] | None,
    engine: str | None,
    valid_write_ids: str | None,
) -> Judged[str]:
    found = StatisticsRows(snapshot).of_partitions(table, _engine(engine), names, columns)

    def parameters() -> dict[str, Mapping[str, str]]:
        partitions = snapshot.partitions(table, Selection(names=list(found)))
        return {one.name: one.partition.parameters or {} for one in partitions}

    return judged(table.table, valid_write_ids, found, parameters)


def _engine(engine: str | None) -> str:
    name = engine or DEFAULT_ENGINE
    if len(name) > _ENGINE_CHARACTERS_MAX or "\0" in name or not name.isprintable():
        raise MetaException("The name of the engine is too long or has characters that cannot be stored")
    return name


def _columns(columns: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(normalize(required(column, "column name")) for column in columns))


def _one_or_all(column: str | None) -> list[str] | None:
    return None if column is None else [normalize(column)]


def _part_name(name: str | None) -> str:
    """A name under which a partition is found: its keys lower-cased, its values as they are (semantics §2.16)."""
    if not name:
        raise MetaException(f"Partition name is invalid. {'null' if name is None else ''}")
    spec = name_to_spec(name)
    return "/".join(f"{escape(key.lower())}={escape(value)}" for key, value in spec.items())


def _with_lower_keys(name: str) -> str:
    """As Hive's texts show a partition's name."""
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in parts)


def _stored_part_name(table: StoredTable, name: str | None) -> str:
    """The name of the partition a request names, whose keys may come in any order and case."""
    try:
        return make_name(table.key_names, parse_name(table.key_names, name and (_part_name(name) or name)))
    except (InvalidPartitionName, PartitionCountMismatch) as error:
        raise MetaException(str(error)) from error
    except IncompletePartitionName as error:
        raise InvalidObjectException(str(error)) from error


def _check_columns(stored: StoredTable, columns: Sequence[str]) -> None:
    names = {column.name for column in (stored.table.sd.cols if stored.table.sd else None) or ()}
    unknown = next((column for column in columns if column not in names), None)
    if unknown is not None:
        raise MetaException(
            f"Column {unknown} doesn't exist in table {stored.table.tableName} in database {stored.table.dbName}"
        )


def _checked(column: str, data: ColumnStatisticsData_v4 | None) -> ColumnStatisticsData_v4:
    found = member_of(required(data, "statistics"))
    if data is None or found is None:
        raise MetaException(f"The statistics of column {column} are of no known kind")
    for name in ("lowValue", "highValue"):
        bound = getattr(found[1], name, None)
        if isinstance(bound, Decimal) and not 0 < len(bound.unscaled or b"") <= _DECIMAL_BYTES_MAX:
            raise MetaException(f"The statistics of column {column} have a decimal that is empty or too long")
    return ColumnStatisticsData_v4(**{found[0]: found[1]})


def _combined(known: Mapping[str, ColumnFigures], given: ColumnFigures, merges: bool) -> ColumnFigures:
    before = known.get(given.column)
    if before is None:
        return given
    try:
        data = merged(before.data, given.data) if merges else updated(before.data, given.data)
    except MixedStatistics as error:
        raise MetaException(f"The statistics of column {given.column} cannot be merged: {error}") from error
    return msgspec.structs.replace(before, data=data, last_analyzed=given.last_analyzed, write_id=given.write_id)


def _objects(figures: Sequence[ColumnFigures], wanted: Sequence[str] | None) -> list[ColumnStatisticsObj_v4]:
    """As the IDL's structs, in the order asked for."""
    if wanted is not None:
        places = {column: place for place, column in enumerate(wanted)}
        figures = sorted(figures, key=lambda one: places[one.column])
    return [ColumnStatisticsObj_v4(one.column, one.column_type, one.data) for one in figures]


def _statistics(
    table: StoredTable,
    part_name: str | None,
    figures: Sequence[ColumnFigures],
    engine: str,
    holds: Verdict = None,
) -> ColumnStatistics_v4:
    description = ColumnStatisticsDesc(
        isTblLevel=part_name is None,
        catName=table.table.catName,
        dbName=table.table.dbName,
        tableName=table.table.tableName,
        partName=part_name,
        lastAnalyzed=max((one.last_analyzed for one in figures), default=None),
    )
    return ColumnStatistics_v4(description, _objects(figures, None), holds, engine)


def _with_figures(
    table: StoredTable,
    partition: Partition,
    part_name: str,
    figures: Sequence[ColumnFigures],
    engine: str,
    holds: Verdict,
) -> Partition:
    if not figures:
        return partition
    return msgspec.structs.replace(partition, colStats=_statistics(table, part_name, figures, engine, holds))


def _shown(column: str | None) -> str:
    return "null" if column is None else normalize(column)


def _table_of(request: TableStatsRequest | PartitionsStatsRequest) -> TableName:
    return table_in(request.catName, request.dbName, request.tblName)


def _is_newer(call: Call, request: TableStatsRequest | PartitionsStatsRequest) -> bool:
    return is_newer(call, request.dbName) or request.catName is not None


def _all_given(request: SetPartitionsStatsRequest | SetPartitionsStatsRequest_v4) -> Sequence[ColumnStatistics_v4]:
    given: Any = required(request.colStats, "column statistics")
    return [_given(one, request.engine) for one in given]


def _write_id(request: SetPartitionsStatsRequest | SetPartitionsStatsRequest_v4) -> int | None:
    """Hive's clients send -1 for none."""
    return request.writeId if request.writeId is not None and request.writeId > 0 else None


def _given(statistics: object, engine: str | None) -> ColumnStatistics_v4:
    """Statistics as sent, about the table by its plain name; an engine may be said once for all of a request."""
    given = required(received(statistics), "column statistics")
    description = required(given.statsDesc, "description of the statistics")
    assert isinstance(description, ColumnStatisticsDesc)
    table = table_in(description.catName, description.dbName, description.tableName)
    return with_fields(
        given,
        statsDesc=with_fields(description, dbName=table.db_name),
        engine=given.engine or engine,
    )
