"""The two things units of work are handed: one consistent state to read, and a state to change."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from sqlalchemy import Connection

from hms_gateway.metastore.ports.store import (
    DatabaseId,
    DuplicateKey,
    Event,
    EventId,
    EventSelection,
    NewPartition,
    PendingMove,
    StoredDatabase,
    StoredEvent,
    StoredTable,
    TableId,
)
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.storage.catalog.batch import CatalogBatch, CatalogChanges, DroppedTable
from hms_gateway.storage.catalog.constraints import ConstraintRepository
from hms_gateway.storage.catalog.databases import DatabaseReads, DatabaseWrites
from hms_gateway.storage.catalog.events import EventReads, EventWrites, event_row
from hms_gateway.storage.catalog.grants import GrantRepository
from hms_gateway.storage.catalog.indexes import IndexRepository
from hms_gateway.storage.catalog.places import PlaceRepository
from hms_gateway.storage.catalog.roles import RoleRepository
from hms_gateway.storage.catalog.statistics import StatisticsRepository
from hms_gateway.storage.catalog.tables import (
    TableReads,
    TableRow,
    TableWrites,
    key_classes,
    stored_table,
    table_values,
)
from hms_gateway.storage.catalog.views import ViewRepository
from hms_gateway.storage.partitions.descriptors import DescriptorKey, descriptor_row
from hms_gateway.storage.partitions.marks import PartitionMarkRepository
from hms_gateway.storage.partitions.partition_list import SharedSnapshot
from hms_gateway.storage.partitions.reads import PartitionReads
from hms_gateway.storage.partitions.writes import PartitionWrites
from hms_gateway.storage.registry.functions import FunctionRepository
from hms_gateway.storage.registry.outcomes import OutcomeWrites, outcome_row
from hms_gateway.storage.registry.properties import PropertyRepository
from hms_gateway.storage.registry.resource_plans import ResourcePlanRepository
from hms_gateway.storage.registry.runtime_records import RuntimeRecordRepository
from hms_gateway.storage.registry.scheduled_queries import ScheduleRepository
from hms_gateway.storage.registry.schemas import RegistryRepository
from hms_gateway.storage.registry.tokens import TokenRepository
from hms_gateway.storage.registry.types import TypeRepository
from hms_gateway.storage.schema.catalog import TABLES
from hms_gateway.storage.sql.fragments import encode_columns
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import check_name, is_storable
from hms_gateway.storage.txn.leases import SqlLeaseWrites
from hms_gateway.storage.txn.txns import SqlTxnReads, SqlTxnWrites
from hms_gateway.structs import Table


class _Objects(Repository):
    """The repositories of the smaller aggregates, each made when it is first used."""

    @cached_property
    def functions(self) -> FunctionRepository:
        return FunctionRepository(self._connection)

    @cached_property
    def types(self) -> TypeRepository:
        return TypeRepository(self._connection)

    @cached_property
    def indexes(self) -> IndexRepository:
        return IndexRepository(self._connection)

    @cached_property
    def partition_event_marks(self) -> PartitionMarkRepository:
        return PartitionMarkRepository(self._connection)

    @cached_property
    def tokens(self) -> TokenRepository:
        return TokenRepository(self._connection)

    @cached_property
    def places(self) -> PlaceRepository:
        return PlaceRepository(self._connection)

    @cached_property
    def properties(self) -> PropertyRepository:
        return PropertyRepository(self._connection)

    @cached_property
    def registry(self) -> RegistryRepository:
        return RegistryRepository(self._connection)

    @cached_property
    def resource_plans(self) -> ResourcePlanRepository:
        return ResourcePlanRepository(self._connection)

    @cached_property
    def runtime_records(self) -> RuntimeRecordRepository:
        return RuntimeRecordRepository(self._connection)

    @cached_property
    def schedules(self) -> ScheduleRepository:
        return ScheduleRepository(self._connection)

    @cached_property
    def views(self) -> ViewRepository:
        return ViewRepository(self._connection)

    @cached_property
    def statistics(self) -> StatisticsRepository:
        return StatisticsRepository(self._connection)

    @cached_property
    def constraints(self) -> ConstraintRepository:
        return ConstraintRepository(self._connection)

    @cached_property
    def roles(self) -> RoleRepository:
        return RoleRepository(self._connection)

    @cached_property
    def grants(self) -> GrantRepository:
        return GrantRepository(self._connection)


class SqlSnapshot(PartitionReads, TableReads, DatabaseReads, EventReads, _Objects):
    """`ports.Snapshot` inside a read-only transaction that `shared` keeps open."""

    def __init__(self, connection: Connection, shared: SharedSnapshot) -> None:
        super().__init__(connection)
        self._shared = shared

    @cached_property
    def txns(self) -> SqlTxnReads:
        return SqlTxnReads(self._connection)


class SqlTransaction(PartitionWrites, TableWrites, DatabaseWrites, EventWrites, OutcomeWrites, _Objects):
    """`ports.Transaction`, one unit of work of a batch. Lists are read at once: it ends before they are sent.

    As long as it is about single tables, their databases and events it runs over what the batch knows, and the batch
    writes what it has changed. With anything else it goes on behind a savepoint, by statements of its own.
    """

    def __init__(self, batch: CatalogBatch) -> None:
        self._batch = batch
        self._dialect = batch.dialect
        self._clock = batch.clock
        self._changes = CatalogChanges()
        self._last_event_id = batch.last_event_id
        self.is_behind_savepoint = False

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        """For statements of its own: they see what was changed before."""
        if not self.is_behind_savepoint:
            self._batch.flush()
            self.is_behind_savepoint = True
            self._dialect.run_on_driver(self._batch.connection, "SAVEPOINT work")
            self._write()
        return self._batch.connection

    @cached_property
    def txns(self) -> SqlTxnWrites:
        return SqlTxnWrites(self._connection, self._clock)

    @cached_property
    def leases(self) -> SqlLeaseWrites:
        return SqlLeaseWrites(self._connection, self._clock)

    # Its beginning and its end.

    def refuse_second(self, key: CallKey) -> None:
        """Raises AlreadyConcluded for a call whose change was made before."""
        if self._batch.is_concluded((key.principal, key.text)):
            raise AlreadyConcluded(key.text)

    def conclude(self, key: CallKey, value: object) -> None:
        """Note that the call's change, which gave `value`, is part of this unit of work."""
        self._changes.outcomes.append(outcome_row(key, self._clock.seconds(), value))

    def succeed(self) -> None:
        """It is part of what the batch commits."""
        if self.is_behind_savepoint:
            self._dialect.run_on_driver(self._batch.connection, "RELEASE SAVEPOINT work")
            self._batch.forget()
        self._batch.take(self._changes, self._last_event_id)

    def fail(self) -> None:
        """Nothing of it stays."""
        if self.is_behind_savepoint:
            self._dialect.run_on_driver(self._batch.connection, "ROLLBACK TO SAVEPOINT work")
            self._dialect.run_on_driver(self._batch.connection, "RELEASE SAVEPOINT work")
            self._batch.forget()

    # Tables and databases.

    def database(self, name: str) -> StoredDatabase | None:
        if self.is_behind_savepoint:
            return super().database(name)
        return self._batch.database(name) if is_storable(name) else None

    def table(self, db_name: str, tbl_name: str) -> StoredTable | None:
        if self.is_behind_savepoint:
            return super().table(db_name, tbl_name)
        if not (is_storable(db_name) and is_storable(tbl_name)):
            return None
        name = db_name, tbl_name
        row = self._changes.tables[name] if name in self._changes.tables else self._batch.table_row(name)
        return None if row is None else stored_table(row)

    def insert_table(self, database_id: DatabaseId, table: Table) -> TableId:
        name = table.dbName or "", table.tableName or ""
        check_name("table", name[1], self._dialect)
        database = None if self.is_behind_savepoint else self.database(name[0])
        table_id = None
        if database is not None and database.database_id == database_id and not self._changes.new_tables:
            table_id = self._batch.next_table_id()
        if table_id is None:
            return super().insert_table(database_id, table)
        if self.table(*name) is not None:
            raise DuplicateKey(name[1])
        row = {"table_id": table_id, "database_id": database_id, **table_values(table), "partition_count": 0}
        self._changes.new_tables[table_id] = row
        self._changes.tables[name] = TableRow._make([*(row[column.name] for column in TABLES.c), name[0], False])
        return table_id

    def update_table(self, table_id: TableId, database_id: DatabaseId, table: Table) -> None:
        row = None if self.is_behind_savepoint else self._row_of(table_id)
        if row is None or not _is_same_table(row, database_id, table):
            super().update_table(table_id, database_id, table)
            return
        check_name("table", row.name, self._dialect)
        values = {"database_id": database_id, **table_values(table)}
        new = {f"new_{name}": value for name, value in values.items()}
        self._changes.table_values[table_id] = {"the_table": table_id, **new}
        self._changes.tables[row.db_name, row.name] = row._replace(**values)

    def delete_table(self, table_id: TableId) -> None:
        if self._changes.new_tables or self._changes.new_partitions:
            self._write()  # before they are gone
        row = None if self.is_behind_savepoint else self._row_of(table_id)
        if row is None:
            found = self.table_with_id(table_id)
            if found is None:
                return
            name = found.table.dbName or "", found.table.tableName or ""
            dropped = DroppedTable(*name, found.partition_count > 0, found.has_indexes)
        else:
            name = row.db_name, row.name
            dropped = DroppedTable(*name, row.partition_count > 0, row.has_indexes)
        self._changes.dropped_tables[table_id] = dropped
        self._changes.tables[name] = None
        if self.is_behind_savepoint:
            self._write()

    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        row = None if self.is_behind_savepoint else self._row_of(table.table_id)
        prepared = None if row is None else self._batch.prepared(table, partitions)
        if row is None or prepared is None or self._changes.new_partitions:
            super().insert_partitions(table, partitions)
            return
        for key in prepared.partitions:
            check_name("partition", key[1], self._dialect)
            if self._batch.has_partition(key) or prepared.partitions.count(key) > 1:
                raise DuplicateKey(key[1])
        ids = [self._descriptor(*each) for each in zip(prepared.descriptors, prepared.keys, strict=True)]
        self._changes.descriptor_counts.update(found for found in ids if found is not None)
        self._changes.new_partitions = {
            key: {**values, "descriptor_id": found}
            for key, values, found in zip(prepared.partitions, prepared.rows, ids, strict=True)
        }
        count = row.partition_count + len(ids)
        self._changes.tables[row.db_name, row.name] = row._replace(partition_count=count)

    def _descriptor(self, key: tuple[int, str, str | None] | None, content: DescriptorKey | None) -> int | None:
        """The id of a descriptor, which may be new; None for none."""
        if key is None or content is None:
            return None
        known = self._changes.new_descriptors.get(key)
        found = self._batch.descriptor(key) if known is None else known["descriptor_id"]
        if found is None:
            found = self._batch.next_descriptor()
            self._changes.new_descriptors[key] = descriptor_row(TableId(key[0]), found, *content)
        return cast(int, found)

    def pending_moves(self) -> list[PendingMove]:
        return super().pending_moves() if self.is_behind_savepoint else self._batch.pending_moves()

    # Events take effect with the unit of work; no other one can take their ids meanwhile.

    def append_event(self, event: Event) -> EventId:
        row = event_row(event, EventId(self._last_event_id + 1), self._clock.seconds())
        self._last_event_id = EventId(self._last_event_id + 1)
        self._changes.events.append(row)
        return self._last_event_id

    def current_event_id(self) -> EventId:
        return self._last_event_id

    def events(self, selection: EventSelection) -> list[StoredEvent]:
        self._write()
        return super().events(selection)

    def count_events(self, selection: EventSelection) -> int:
        self._write()
        return super().count_events(selection)

    def delete_events_before(self, seconds: int, count_max: int) -> int:
        self._write()
        return super().delete_events_before(seconds, count_max)

    def _row_of(self, table_id: TableId) -> Any:
        """The row of a table that this one or another one of the batch has asked for."""
        row = self._batch.row_of(table_id)
        return row if row is None else self._changes.tables.get((row.db_name, row.name), row)

    def _write(self) -> None:
        """What was changed so far, by statements of its own."""
        connection = self._connection
        changes, self._changes = self._changes, CatalogChanges()
        if statements := changes.statements(self._dialect):
            self._dialect.run_together(connection, statements)


def _is_same_table(row: Any, database_id: DatabaseId, table: Table) -> bool:
    """Whether it keeps its name, its database, and how its partitions are found."""
    if row.database_id != database_id or row.name != table.tableName:
        return False
    new_keys = encode_columns(table.partitionKeys)
    return row.partition_keys == new_keys or key_classes(row.partition_keys) == key_classes(new_keys)
