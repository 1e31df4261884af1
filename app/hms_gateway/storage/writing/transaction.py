"""What units of work are handed: a state to change."""

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
    Selection,
    StoredDatabase,
    StoredEvent,
    StoredPartition,
    StoredTable,
    TableId,
)
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.catalog.batch import CatalogBatch
from hms_gateway.storage.catalog.changes import CatalogChanges, DroppedPartition, DroppedTable, RenamedTable
from hms_gateway.storage.catalog.databases import DatabaseWrites
from hms_gateway.storage.catalog.events import EventWrites
from hms_gateway.storage.catalog.known_partitions import NEW, Encoded, KnownRow
from hms_gateway.storage.catalog.tables import (
    TableRow,
    TableWrites,
    key_classes,
    same_table,
    stored_table,
    table_values,
)
from hms_gateway.storage.dialects.statements import Values
from hms_gateway.storage.partitions.by_names import as_stored, stored_partitions
from hms_gateway.storage.partitions.descriptors import by_id, descriptor_of_row, descriptor_row
from hms_gateway.storage.partitions.reads import lies_under, names_only
from hms_gateway.storage.partitions.rows import ROW_COLUMNS, Descriptor
from hms_gateway.storage.partitions.writes import PartitionWrites, new_values
from hms_gateway.storage.registry.outcomes import OutcomeWrites, outcome_row
from hms_gateway.storage.schema.catalog import KEY_COLUMN_COUNT, TABLES
from hms_gateway.storage.sql.event_rows import event_row
from hms_gateway.storage.sql.fragments import encode_columns
from hms_gateway.storage.sql.texts import check_name, is_storable
from hms_gateway.storage.txn.leases import SqlLeaseWrites
from hms_gateway.storage.txn.txns import SqlTxnWrites
from hms_gateway.storage.writing.snapshot import Objects
from hms_gateway.structs import Table
from hms_gateway.txn.rules.implicit_locks import Held
from hms_gateway.txn.rules.names import Target


class SqlTransaction(PartitionWrites, TableWrites, DatabaseWrites, EventWrites, OutcomeWrites, Objects):
    """`ports.Transaction`, one unit of work of a batch. Lists are read at once: it ends before they are sent.

    As long as it is about tables and partitions by their names, databases and events it runs over what the batch
    knows, and the batch writes what it has changed. With anything else it goes on behind a savepoint, by statements
    of its own.
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
        """For statements of its own: they see what was changed before."""
        if not self.is_behind_savepoint:
            self._batch.flush()
            self.is_behind_savepoint = True
            self._dialect.run_on_driver(self._batch.connection, "SAVEPOINT work")
            self._write()
        return self._batch.connection

    @cached_property
    def txns(self) -> SqlTxnWrites:
        return SqlTxnWrites(self._connection, self._clock, self.append_event)

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

    def has_changed(self, row: Values) -> bool:
        """Whether the row, the very object, is among what the batch writes for this unit of work."""
        return self._changes.has(row)

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

    def foresee(self, tables: Sequence[tuple[str, str]]) -> None:
        """The batch has read what `CatalogWork` names."""

    def database(self, name: str) -> StoredDatabase | None:
        if self.is_behind_savepoint:
            return super().database(name)
        return self._batch.database(name) if is_storable(name) else None

    def table(self, db_name: str, tbl_name: str) -> StoredTable | None:
        if self.is_behind_savepoint:
            return super().table(db_name, tbl_name)
        row = self._named(db_name, tbl_name)
        return None if row is None else stored_table(row)

    def unchanged(self, loaded: StoredTable) -> StoredTable | None:
        if self.is_behind_savepoint:
            return super().unchanged(loaded)
        row = self._named(loaded.table.dbName or "", loaded.table.tableName or "")
        return None if row is None else same_table(loaded, row)

    def _named(self, db_name: str, tbl_name: str) -> Any:
        if not (is_storable(db_name) and is_storable(tbl_name)):
            return None
        name = db_name, tbl_name
        return self._changes.tables[name] if name in self._changes.tables else self._batch.table_row(name)

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
        row = self._row_of(table_id)
        name = table.dbName or "", table.tableName or ""
        is_renamed = row is not None and (row.db_name, row.name) != name
        if row is None or not _keeps_keys(row, table) or (is_renamed and not self._can_rename(name, database_id)):
            super().update_table(table_id, database_id, table)
            return
        check_name("table", name[1], self._dialect)
        if is_renamed:
            if self.table(*name) is not None:
                raise DuplicateKey(name[1])
            self._changes.renamed_tables.append(RenamedTable(row.db_name, row.name, *name))
            self._changes.tables[row.db_name, row.name] = None
        values = {"database_id": database_id, **table_values(table)}
        new = {f"new_{name}": value for name, value in values.items()}
        self._changes.table_values[table_id] = {"the_table": table_id, **new}
        self._changes.tables[name] = row._replace(**values, db_name=name[0])

    def _can_rename(self, name: tuple[str, str], database_id: DatabaseId) -> bool:
        """Whether this is all that happens to tables' rows, and the database is the named one."""
        database = self.database(name[0])
        is_named = database is not None and database.database_id == database_id and all(map(is_storable, name))
        return is_named and not (self._changes.new_tables or self._changes.table_values)

    def delete_table(self, table_id: TableId) -> None:
        if self._changes.touched_tables or self._changes.renamed_tables:
            self._write()  # before they are gone
        row = self._row_of(table_id)
        if row is None:
            found = self.table_with_id(table_id)
            if found is None:
                return
            name = found.table.dbName or "", found.table.tableName or ""
            dropped = DroppedTable(*name, found.partition_count, found.has_indexes)
        else:
            name = row.db_name, row.name
            dropped = DroppedTable(*name, row.partition_count, row.has_indexes)
        self._changes.dropped_tables[table_id] = dropped
        self._changes.tables[name] = None
        if self.is_behind_savepoint:
            self._write()

    def _row_of(self, table_id: TableId) -> Any:
        """The row of a table that this one or another one of the batch has asked for; None behind a savepoint."""
        if self.is_behind_savepoint:
            return None
        own = next((row for row in self._changes.tables.values() if row is not None and row.table_id == table_id), None)
        row = self._batch.row_of(table_id) if own is None else own
        return row if row is None else self._changes.tables.get((row.db_name, row.name), row)

    # Partitions.

    def partitions(self, table: StoredTable, selection: Selection) -> list[StoredPartition]:
        if self._row_of(table.table_id) is None or not names_only(selection):
            return super().partitions(table, selection)
        rows = self._known_rows(table.table_id, sorted(set(selection.names or ())))
        if rows is None:
            return super().partitions(table, selection)
        return stored_partitions(table, [row for row in rows if row is not None], self._descriptors)

    def are_unchanged(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> bool:
        if self._row_of(table.table_id) is None:
            return super().are_unchanged(table, partitions)
        rows = self._known_rows(table.table_id, [one.name for one in partitions])
        if rows is None:
            return super().are_unchanged(table, partitions)
        stored = {row[1]: as_stored(row, self._descriptors) for row in rows if row is not None}
        return all(stored.get(one.name) == one.as_stored for one in partitions)

    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        row = self._row_of(table.table_id)
        encoded = None if row is None else self._batch.partitions.encoded(table, partitions)
        if encoded is None or self._changes.new_partitions:
            super().insert_partitions(table, partitions)
            return
        for key in encoded.partitions:
            check_name("partition", key[1], self._dialect)
            known = self._changes.partitions.get(key, self._batch.partitions.row(key))
            if known is not None or encoded.partitions.count(key) > 1:
                raise DuplicateKey(key[1])
        ids = self._descriptor_ids(encoded)
        self._changes.new_partitions = {
            key: {**values, "descriptor_id": found}
            for key, values, found in zip(encoded.partitions, encoded.rows, ids, strict=True)
        }
        self._changes.partitions |= dict.fromkeys(encoded.partitions, NEW)
        self._count(row, ids, of_table=len(ids))

    def update_partitions(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> None:
        row = self._row_of(table.table_id)
        encoded = None if row is None else self._batch.partitions.encoded(table, partitions)
        before = None if encoded is None else self._known_rows(table.table_id, [one.name for one in partitions])
        if encoded is None or before is None or not _are_same(before, partitions):
            super().update_partitions(table, partitions)
            return
        ids = self._descriptor_ids(encoded)
        for key, old, values, found in zip(encoded.partitions, before, encoded.rows, ids, strict=True):
            values = {**values, "descriptor_id": found}
            self._changes.partition_values[old[0]] = new_values(old[0], values)
            self._changes.partitions[key] = (old[0], *(values[column.name] for column in ROW_COLUMNS))
        self._count(row, ids, less=[old[2] for old in before])

    def delete_partitions(self, table: StoredTable, names: Sequence[str]) -> None:
        row = self._row_of(table.table_id)
        has_further_keys = len(table.table.partitionKeys or ()) > KEY_COLUMN_COUNT
        rows = None if row is None or has_further_keys else self._asked_rows(table.table_id, names)
        if rows is None:
            super().delete_partitions(table, names)
            return
        for found in rows:
            key = table.table_id, found[1]
            self._changes.partition_values.pop(found[0], None)
            self._changes.dropped_partitions[found[0]] = DroppedPartition(row.db_name, row.name, table.table_id)
            self._changes.partitions[key] = None
        self._count(row, less=[found[2] for found in rows], of_table=-len(rows))

    def outside_locations(self, table: StoredTable, selection: Selection | None = None) -> list[str]:
        row = None if self._changes.touched_tables or selection is not None else self._row_of(table.table_id)
        location = (table.table.sd and table.table.sd.location) or ""
        if row is not None and all(base and lies_under(location, base) for base in self._batch.bases(table.table_id)):
            return []
        return super().outside_locations(table, selection)

    @property
    def _descriptors(self) -> dict[int, Descriptor]:
        new = map(descriptor_of_row, self._changes.new_descriptors.values())
        return self._batch.partitions.descriptors | by_id(new)

    def _known_rows(self, table_id: int, names: Sequence[str]) -> list[KnownRow] | None:
        """In order of the names, None for those that are not there; None where a statement has to find them."""
        keys = [(table_id, name) for name in names]
        if any(self._changes.partitions.get(key) is NEW for key in keys):
            return None
        stored = self._batch.partitions.rows(table_id, names)
        return [self._changes.partitions.get(key, row) for key, row in zip(keys, stored, strict=True)]

    def _asked_rows(self, table_id: int, names: Sequence[str]) -> list[KnownRow] | None:
        """Of the names, as far as there are such; None where one was not asked for before, or is new."""
        known = self._batch.partitions
        keys = [(table_id, name) for name in dict.fromkeys(names)]
        rows = [self._changes.partitions.get(key, known.row(key) if known.has(key) else NEW) for key in keys]
        return None if any(row is NEW for row in rows) else [row for row in rows if row is not None]

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
        self, row: Any, more: Sequence[int | None] = (), less: Sequence[int | None] = (), of_table: int = 0
    ) -> None:
        """The table of that row has so many partitions more, and these descriptors one more or one less for each."""
        changes, name = self._changes, (row.db_name, row.name)
        changes.descriptor_counts.update(found for found in more if found is not None)
        changes.descriptor_counts.subtract(found for found in less if found is not None)
        if less:
            changes.lessened[row.table_id] = None
        changes.partition_counts[row.table_id] += of_table
        changes.tables[name] = row._replace(partition_count=row.partition_count + of_table)

    def pending_moves(self) -> list[PendingMove]:
        if self.is_behind_savepoint:
            return super().pending_moves()
        return [move for move in self._batch.pending_moves() if move.move_id not in self._changes.deleted_moves]

    def delete_pending_move(self, move_id: int) -> None:
        self._changes.deleted_moves.append(move_id)
        if self.is_behind_savepoint:
            self._write()

    # Events take effect with the unit of work; no other one can take their ids meanwhile.

    def append_event(self, event: Event) -> EventId:
        row = event_row(event, EventId(self._last_event_id + 1), self._clock.seconds(), self._actor)
        self._last_event_id = EventId(self._last_event_id + 1)
        self._changes.events.append(row)
        self._made_events.append(event)
        return self._last_event_id

    def made_events(self) -> Sequence[Event]:
        return self._made_events

    def held_locks(self, targets: Sequence[Target]) -> tuple[list[Held], int]:
        return self._batch.locks.on(targets)

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

    def _write(self) -> None:
        """What was changed so far, by statements of its own."""
        connection = self._connection
        changes, self._changes = self._changes, CatalogChanges()
        if statements := changes.statements(self._dialect):
            self._dialect.run_together(connection, statements)


def _keeps_keys(row: Any, table: Table) -> bool:
    """Whether its partitions are found as before."""
    new_keys = encode_columns(table.partitionKeys)
    return row.partition_keys == new_keys or key_classes(row.partition_keys) == key_classes(new_keys)


def _are_same(rows: Sequence[KnownRow], partitions: Sequence[StoredPartition]) -> bool:
    """Whether these rows are those of the partitions, under the names that they have."""
    return all(row is not None and row[0] == one.partition_id for row, one in zip(rows, partitions, strict=True))
