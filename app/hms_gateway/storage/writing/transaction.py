"""What units of work are handed: a state to change."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from sqlalchemy import Connection, delete, insert, select

from hms_gateway.metastore.ports.store import (
    DatabaseId,
    DuplicateKey,
    Event,
    EventId,
    NewPartition,
    PendingMove,
    Selection,
    StoredDatabase,
    StoredPartition,
    StoredTable,
    TableId,
)
from hms_gateway.metastore.vocabulary.locations import parse_location, spellings
from hms_gateway.rpc.structs import FieldSchema, Table
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.catalog.batch import NEW, CatalogBatch, Encoded, KnownRow
from hms_gateway.storage.catalog.changes import CatalogChanges, DroppedPartition, DroppedTable, RenamedTable
from hms_gateway.storage.catalog.databases import DatabaseWrites
from hms_gateway.storage.catalog.events import EventWrites
from hms_gateway.storage.catalog.names import NameReads
from hms_gateway.storage.catalog.tables import (
    TableReads,
    TableRow,
    key_classes,
    same_table,
    stored_table,
    table_values,
)
from hms_gateway.storage.partitions.reads import PartitionReads, lies_under, names_only
from hms_gateway.storage.partitions.rows import (
    ROW_COLUMNS,
    Descriptor,
    Descriptors,
    as_stored,
    by_id,
    descriptor_of_row,
    descriptor_row,
    stored_partitions,
)
from hms_gateway.storage.partitions.writes import PartitionKeys, PartitionLocations, PartitionNames, new_values
from hms_gateway.storage.registry.outcomes import OutcomeWrites, outcome_row
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS, KEY_COLUMN_COUNT, TABLES
from hms_gateway.storage.sql.repository import check_name, is_storable
from hms_gateway.storage.txn.batch_statements import PURGED, event_row
from hms_gateway.storage.txn.leases import SqlLeaseWrites
from hms_gateway.storage.txn.txns import SqlTxnWrites
from hms_gateway.txn.rules.locks import AcquiredLock
from hms_gateway.txn.rules.names import Target


class SqlTransaction(PartitionReads, TableReads, DatabaseWrites, EventWrites, OutcomeWrites, NameReads):
    """`ports.Transaction`, one unit of work of a batch. Lists are read at once: it ends before they are sent.

    Tables and partitions are changed as values, which the batch writes. Everything else, and reads that do not go by
    names, is a statement behind a savepoint (`_connection`).
    """

    def __init__(self, batch: CatalogBatch, actor: Actor | None = None) -> None:
        self._batch = batch
        self._actor = actor
        self._dialect = batch.dialect
        self._clock = batch.clock
        self._changes = CatalogChanges()
        self._last_event_id = batch.last_event_id
        self._made_events: list[Event] = []
        self.is_behind_savepoint = False

    @property
    def _connection(self) -> Connection:  # type: ignore[override]
        """For statements: they see what was changed before, and what they change is read again."""
        self._write()
        return self._batch.connection

    def _write(self) -> None:
        """Write what was changed so far, behind a savepoint."""
        if not self.is_behind_savepoint:
            self._batch.flush()
            self.is_behind_savepoint = True
            self._dialect.run_on_driver(self._batch.connection, "SAVEPOINT work")
        changes, self._changes = self._changes, CatalogChanges(self._changes.lessened)
        self._batch.write(changes)
        self._batch.forget()

    @property
    def txns(self) -> SqlTxnWrites:
        self._write()
        return self._txn_writes

    @property
    def leases(self) -> SqlLeaseWrites:
        self._write()
        return self._lease_writes

    # Each knows one time for the whole unit of work.

    @cached_property
    def _txn_writes(self) -> SqlTxnWrites:
        return SqlTxnWrites(self._batch.connection, self._clock, self.append_event)

    @cached_property
    def _lease_writes(self) -> SqlLeaseWrites:
        return SqlLeaseWrites(self._batch.connection, self._clock)

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
            self._write()
            self._dialect.run_on_driver(self._batch.connection, "RELEASE SAVEPOINT work")
        self._batch.take(self._changes, self._last_event_id)

    def fail(self) -> None:
        """Nothing of it stays."""
        if self.is_behind_savepoint:
            self._dialect.run_on_driver(self._batch.connection, "ROLLBACK TO SAVEPOINT work")
            self._dialect.run_on_driver(self._batch.connection, "RELEASE SAVEPOINT work")
            self._batch.forget()

    # Tables and databases.

    def foresee(self, tables: Sequence[tuple[str, str]]) -> None:
        """The batch has read what `CatalogWork` names."""

    def database(self, name: str) -> StoredDatabase | None:
        return self._batch.database(name) if is_storable(name) else None

    def table(self, db_name: str, tbl_name: str) -> StoredTable | None:
        row = self._named(db_name, tbl_name)
        return None if row is None else stored_table(row)

    def unchanged(self, loaded: StoredTable) -> StoredTable | None:
        row = self._named(loaded.table.dbName or "", loaded.table.tableName or "")
        return None if row is None else same_table(loaded, row)

    def _named(self, db_name: str, tbl_name: str) -> Any:
        if not (is_storable(db_name) and is_storable(tbl_name)):
            return None
        name = db_name, tbl_name
        return self._changes.tables[name] if name in self._changes.tables else self._batch.table_row(name)

    def insert_table(self, database_id: DatabaseId, table: Table) -> TableId:
        name = self._free_name(table)
        if self._changes.new_tables:
            self._write()  # its id must not be given again
        row = {"database_id": database_id, **table_values(table), "partition_count": 0}
        table_id = self._batch.next_table_id()
        if table_id is None:
            return TableId(self._inserted_id(insert(TABLES).values(row)))
        row["table_id"] = table_id
        self._changes.new_tables[table_id] = row
        self._changes.tables[name] = TableRow._make([*(row[column.name] for column in TABLES.c), name[0], False])
        return table_id

    def update_table(self, table_id: TableId, database_id: DatabaseId, table: Table) -> None:
        row = self._row_of(table_id)
        name = table.dbName or "", table.tableName or ""
        if (row.db_name, row.name) != name:
            self._free_name(table)
            if self._changes.new_tables or self._changes.table_values:
                self._write()  # names are given on in this order
            self._changes.renamed_tables.append(RenamedTable(row.db_name, row.name, *name))
            self._changes.tables[row.db_name, row.name] = None
        values = {"database_id": database_id, **table_values(table)}
        new = {f"new_{name}": value for name, value in values.items()}
        self._changes.table_values[table_id] = {"the_table": table_id, **new}
        self._changes.tables[name] = row._replace(**values, db_name=name[0])
        if row.partition_keys != values["partition_keys"]:
            new_classes = key_classes(values["partition_keys"])
            if key_classes(row.partition_keys) != new_classes:
                PartitionKeys(self._connection).rewrite(table_id, new_classes)

    def _free_name(self, table: Table) -> tuple[str, str]:
        """Name of a table that is about to have it. Raises DuplicateKey, UnstorableText."""
        name = table.dbName or "", table.tableName or ""
        check_name("table", name[1], self._dialect)
        if self.table(*name) is not None:
            raise DuplicateKey(name[1])
        return name

    def delete_table(self, table_id: TableId) -> None:
        if self._changes.touched_tables or self._changes.renamed_tables:
            self._write()  # before they are gone
        row = self._row_of(table_id)
        if row is not None:
            is_lessened = table_id in self._changes.lessened or self._batch.has_lessened(table_id)
            has_descriptors = is_lessened or row.partition_count > 0
            dropped = DroppedTable(row.db_name, row.name, row.partition_count, has_descriptors, row.has_indexes)
            self._changes.dropped_tables[table_id] = dropped
            self._changes.tables[row.db_name, row.name] = None

    def delete_database(self, database_id: DatabaseId) -> None:
        of_database = DATABASES.c.database_id == database_id
        db_name = self._connection.execute(select(DATABASES.c.name).where(of_database)).scalar_one()
        for purged in PURGED:
            self._connection.execute(delete(purged).where(purged.c.db_name == db_name))
        columns = TABLES.c.table_id, TABLES.c.name, TABLES.c.partition_count
        for table_id, name, count in self._connection.execute(
            select(*columns).where(TABLES.c.database_id == database_id)
        ):
            self._changes.dropped_tables[table_id] = DroppedTable(db_name, name, count, True, True)
        for owned in (FUNCTIONS, DATABASES):
            self._connection.execute(delete(owned).where(owned.c.database_id == database_id))

    def _row_of(self, table_id: TableId) -> Any:
        """The row of a table as it is now, None where there is none."""
        own = next((row for row in self._changes.tables.values() if row is not None and row.table_id == table_id), None)
        row = self._batch.row_of(table_id) if own is None else own
        return row if row is None else self._changes.tables.get((row.db_name, row.name), row)

    # Partitions.

    def partitions(self, table: StoredTable, selection: Selection) -> list[StoredPartition]:
        if not names_only(selection):
            selection = Selection(names=self.partition_names(table, selection))
        rows = self._known_rows(table.table_id, sorted(set(selection.names or ())))
        return stored_partitions(table, [row for row in rows if row is not None], self._descriptors)

    def are_unchanged(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> bool:
        rows = self._known_rows(table.table_id, [one.name for one in partitions])
        stored = {row[1]: as_stored(row, self._descriptors) for row in rows if row is not None}
        return all(stored.get(one.name) == one.as_stored for one in partitions)

    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        if not partitions:
            return
        for one in partitions:
            check_name("partition", one.name, self._dialect)
        encoded = self._batch.partitions.encoded(table, partitions)
        for key in encoded.partitions:
            if self._changes.partitions.get(key, self._batch.partitions.row(key)) is not None:
                raise DuplicateKey(key[1])
            self._changes.partitions[key] = NEW
        ids = self._descriptor_ids(encoded)
        for key, values, found in zip(encoded.partitions, encoded.rows, ids, strict=True):
            self._changes.new_partitions[key] = {**values, "descriptor_id": found}
        self._count(table, ids, of_table=len(ids))
        if len(table.key_names) > KEY_COLUMN_COUNT:
            PartitionKeys(self._connection).insert_further(table, [one.name for one in partitions])

    def update_partitions(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> None:
        if not partitions:
            return
        names = [one.name for one in partitions]
        before = self._known_rows(table.table_id, names)
        pairs = zip(before, partitions, strict=True)
        renamed = [one for row, one in pairs if row is None or row[0] != one.partition_id]
        if renamed:
            PartitionNames(self._connection).rename(table, renamed)
            before = self._known_rows(table.table_id, names)
        encoded = self._batch.partitions.encoded(table, partitions)
        ids = self._descriptor_ids(encoded)
        for key, old, values, found in zip(encoded.partitions, before, encoded.rows, ids, strict=True):
            values = {**values, "descriptor_id": found}
            self._changes.partition_values[old[0]] = new_values(old[0], values)
            self._changes.partitions[key] = (old[0], *(values[column.name] for column in ROW_COLUMNS))
        self._count(table, ids, less=[old[2] for old in before])

    def delete_partitions(self, table: StoredTable, names: Sequence[str]) -> None:
        rows = [row for row in self._known_rows(table.table_id, list(dict.fromkeys(names))) if row is not None]
        if not rows:
            return
        named = table.table.dbName or "", table.table.tableName or ""
        dropped = DroppedPartition(*named, table.table_id, len(table.key_names) > KEY_COLUMN_COUNT)
        for found in rows:
            self._changes.partition_values.pop(found[0], None)
            self._changes.dropped_partitions[found[0]] = dropped
            self._changes.partitions[table.table_id, found[1]] = None
        self._count(table, less=[found[2] for found in rows], of_table=-len(rows))

    def replace_partition_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> None:
        Descriptors(self._connection).replace_columns(table_id, columns)

    def move_partition_locations(self, table_id: TableId, old_path: str, new_path: str) -> None:
        for spelled in spellings(parse_location(old_path.rstrip("/"))):
            self._move_partition_locations(table_id, spelled, new_path.rstrip("/"))

    def _move_partition_locations(self, table_id: TableId, old_path: str, new_path: str) -> None:
        left = PartitionLocations(self._connection).move(table_id, old_path, new_path)
        table = stored_table(self._row_of(table_id))
        partitions = self.partitions(table, Selection(names=left))
        for one in partitions:
            if one.partition.sd is not None:
                one.partition.sd.location = new_path + (one.partition.sd.location or "")[len(old_path) :]
        self.update_partitions(table, partitions)

    def outside_locations(self, table: StoredTable, selection: Selection | None = None) -> list[str]:
        location = (table.table.sd and table.table.sd.location) or ""
        if not self._changes.touched_tables and selection is None:
            bases = self._batch.bases(table.table_id)
            if all(base and lies_under(location, base) for base in bases):
                return []
        return super().outside_locations(table, selection)

    @property
    def _descriptors(self) -> dict[int, Descriptor]:
        new = map(descriptor_of_row, self._changes.new_descriptors.values())
        return self._batch.partitions.descriptors | by_id(new)

    def _known_rows(self, table_id: TableId, names: Sequence[str]) -> list[KnownRow]:
        """In order of the names, None for those that are not there."""
        keys = [(table_id, name) for name in names]
        if any(self._changes.partitions.get(key) is NEW for key in keys):
            self._write()
        stored = self._batch.partition_rows(table_id, names)
        return [self._changes.partitions.get(key, row) for key, row in zip(keys, stored, strict=True)]

    def _descriptor_ids(self, encoded: Encoded) -> list[int | None]:
        """Those that are new are part of the changes."""
        ids: list[int | None] = []
        for key, content in zip(encoded.descriptors, encoded.contents, strict=True):
            if key is None or content is None:
                ids.append(None)
                continue
            found = self._batch.partitions.descriptor_id(key, content)
            if found is None and key not in self._changes.new_descriptors:
                new = descriptor_row(encoded.table_id, self._batch.partitions.next_descriptor(), *content)
                self._changes.new_descriptors[key] = new
            ids.append(found or cast(int, self._changes.new_descriptors[key]["descriptor_id"]))
        return ids

    def _count(
        self,
        table: StoredTable,
        more: Sequence[int | None] = (),
        less: Sequence[int | None] = (),
        of_table: int = 0,
    ) -> None:
        """The table has so many partitions more, and these descriptors one more or one less for each."""
        changes, row = self._changes, self._row_of(table.table_id)
        changes.descriptor_counts.update(found for found in more if found is not None)
        changes.descriptor_counts.subtract(found for found in less if found is not None)
        if less:
            changes.lessened[table.table_id] = None
        changes.partition_counts[table.table_id] += of_table
        changes.tables[row.db_name, row.name] = row._replace(partition_count=row.partition_count + of_table)

    def pending_moves(self) -> list[PendingMove]:
        return [move for move in self._batch.pending_moves() if move.move_id not in self._changes.deleted_moves]

    def delete_pending_move(self, move_id: int) -> None:
        self._changes.deleted_moves.append(move_id)

    # Events take effect with the unit of work; no other one can take their ids meanwhile.

    def append_event(self, event: Event) -> EventId:
        row = event_row(event, EventId(self._last_event_id + 1), self._clock.seconds(), self._actor)
        self._last_event_id = EventId(self._last_event_id + 1)
        self._changes.events.append(row)
        self._made_events.append(event)
        return self._last_event_id

    def made_events(self) -> Sequence[Event]:
        return self._made_events

    def held_locks(self, targets: Sequence[Target]) -> tuple[list[AcquiredLock], int]:
        return self._batch.locks.on(targets)

    def current_event_id(self) -> EventId:
        return self._last_event_id
