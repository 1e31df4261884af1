"""Methods that exchange partitions: rows of one table go to another, and one directory is renamed (semantics §2.11)."""

import copy
from collections.abc import Mapping, Sequence

import msgspec

from hms_gateway.catalog.arguments import table_named, table_shown
from hms_gateway.catalog.directories.warehouse import check_place
from hms_gateway.catalog.partitions.changes import Move, PartitionMoves
from hms_gateway.catalog.partitions.writes import (
    Conflict,
    location_of,
    require_unchanged,
    retry_on_conflict,
    shown_partitions,
    table_location,
    table_parameters,
)
from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.checks.errors import file_errors_as_meta
from hms_gateway.metastore.checks.selection import TableName, java_list
from hms_gateway.metastore.checks.table_shape import elsewhere
from hms_gateway.metastore.ports.store import (
    FileSystemError,
    NewPartition,
    Selection,
    Snapshot,
    Store,
    StoredPartition,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.locations import join, moved_location
from hms_gateway.metastore.vocabulary.partition_names import make_name, partial_spec
from hms_gateway.metastore.vocabulary.table_types import is_external
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import FieldSchema, MetaException, Partition
from hms_gateway.rpc.structs.catalogs import prefix_of
from hms_gateway.storage.files.directories import Directories
from hms_gateway.txn.rules.names import target


class _Exchange(msgspec.Struct, frozen=True):
    """What goes from `source` to `target`: directories may be None where a table has none. `prefix` is what the names
    of all that leave begin with.
    """

    source: StoredTable
    target: StoredTable
    leaving: list[StoredPartition]
    prefix: str
    source_directory: str | None
    target_directory: str | None

    @property
    def tables(self) -> tuple[StoredTable, StoredTable]:
        return self.source, self.target


class PartitionExchange:
    """Methods that move partitions between tables, all that match or none. Raise MetaException."""

    def __init__(self, store: Store, files: Directories, events: EventMaker) -> None:
        self._store = store
        self._files = files
        self._events = PartitionEvents(events)
        self._moves = PartitionMoves(store, files)

    def exchange_partition(
        self,
        call: Call,
        partitionSpecs: dict[str, str],
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> Partition:
        """Hive answers a partition in which nothing is set but what Java cannot leave unset."""
        self.exchange_partitions(call, partitionSpecs, source_db, source_table_name, dest_db, dest_table_name)
        return Partition(createTime=0, lastAccessTime=0)

    def exchange_partitions(
        self,
        call: Call,
        partitionSpecs: dict[str, str],
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> list[Partition]:
        """Move the partitions with the values of the spec (leading keys, `""` for any) from one table to another.

        Returns them as they are in the target.
        """
        source, target = table_named(source_db, source_table_name), table_shown(call, dest_db, dest_table_name)
        if prefix_of(source.db_name) != prefix_of(target.db_name):
            raise MetaException("You cannot move a partition across catalogs")
        moved = retry_on_conflict(lambda: self._attempt(partitionSpecs or {}, source, target))
        return shown_partitions(target, moved)

    def _attempt(self, spec: Mapping[str, str], source: TableName, target: TableName) -> list[Partition]:
        exchange = self._store.read(lambda snapshot: _load(snapshot, spec, source, target))
        with file_errors_as_meta():
            move = self._checked_move(exchange)
        arriving = [_arriving(exchange, one, move) for one in exchange.leaving]
        is_owned = not is_external(table_parameters(exchange.target))
        for one in arriving:
            if location := location_of(one.partition):
                check_place(self._files, location, is_owned=is_owned)
        try:
            self._moves.commit(lambda transaction: self._apply(transaction, exchange, arriving), move)
        except FileSystemError as error:
            raise MetaException(f"Got exception: java.io.IOException {error}") from error
        return [one.partition for one in arriving]

    def _checked_move(self, exchange: _Exchange) -> Move | None:
        """The rename of the deepest directory that all leaving partitions share. Raises MetaException."""
        old, new = exchange.source_directory, exchange.target_directory
        if old is None or new is None or not self._files.manages(old):
            if exchange.leaving:
                return None
        elif self._files.exists(new):
            raise MetaException(
                "Got exception: java.io.IOException Cannot rename the source path. The destination path already exists."
            )
        elif exchange.leaving and self._files.exists(old):
            check_place(self._files, new, is_owned=True)
            changed = [target(one.table.dbName, one.table.tableName, exchange.prefix) for one in exchange.tables]
            return Move(exchange.target.table_id, old, new, changed)
        raise MetaException(f"Got exception: java.io.FileNotFoundException File {old} does not exist")

    def _apply(self, transaction: Transaction, exchange: _Exchange, arriving: Sequence[NewPartition]) -> None:
        source, target = (
            require_unchanged(transaction, exchange.source),
            require_unchanged(transaction, exchange.target),
        )
        names = [one.name for one in exchange.leaving]
        if transaction.partitions(source, Selection(names=names)) != exchange.leaving:
            raise Conflict
        transaction.delete_partitions(source, names)
        transaction.insert_partitions(target, arriving)
        transaction.append_event(self._events.add(target.table, names, [one.partition for one in arriving]))
        transaction.append_event(self._events.drop(source.table, [one.partition for one in exchange.leaving]))


def _load(snapshot: Snapshot, spec: Mapping[str, str], source_name: TableName, target_name: TableName) -> _Exchange:
    source, target = source_name.find(snapshot), target_name.find(snapshot)
    if source is None:
        raise MetaException(f"The source table {source_name} not found")
    wanted = {key.lower(): value for key, value in spec.items()}
    values = [wanted.get(key, "") for key in source.key_names]
    directory = _spec_directory(source.key_names, values)
    if target is None:
        raise MetaException(f"The destination table {target_name} not found")
    if not _same_schema(source, target):
        raise MetaException("The tables have different schemas. Their partitions cannot be exchanged.")
    leaving = snapshot.partitions(source, Selection(partial_values=partial_spec(len(values), values)))
    names = [one.name for one in leaving]
    taken = snapshot.partitions(target, Selection(names=names, limit=1)) if names else []
    if taken and source.table_id != target.table_id:
        raise MetaException(f"Partition already exists:{target_name}.{java_list(taken[0].partition.values or ())}")
    return _Exchange(source, target, leaving, directory, _below(source, directory), _below(target, directory))


def _same_schema(one: StoredTable, other: StoredTable) -> bool:
    return _columns(one.table.sd.cols if one.table.sd else None) == _columns(
        other.table.sd.cols if other.table.sd else None
    ) and _columns(one.table.partitionKeys) == _columns(other.table.partitionKeys)


def _columns(columns: Sequence[FieldSchema] | None) -> list[tuple[str | None, str | None]]:
    """What has to be equal: names and types, not comments."""
    return [(column.name, column.type) for column in columns or ()]


def _spec_directory(keys: Sequence[str], values: Sequence[str]) -> str:
    """The directory of the keys that are given, one below the other, whether or not one in between is missing.

    With a gap the directory does not exist, and Hive finds that out by looking for it; so do we.
    """
    given = [(key, value) for key, value in zip(keys, values, strict=True) if value]
    if not given:
        raise MetaException("Invalid partition key & values; keys [], values []")
    return make_name([key for key, _ in given], [value for _, value in given])


def _below(table: StoredTable, directory: str) -> str | None:
    root = table_location(table)
    return join(root, directory) if root else None


def _arriving(exchange: _Exchange, leaving: StoredPartition, move: Move | None) -> NewPartition:
    """The partition as it is in the other table. One whose directory does not move along keeps its location."""
    arriving = copy.copy(leaving.partition)
    arriving.dbName, arriving.tableName = exchange.target.table.dbName, exchange.target.table.tableName
    arriving.writeId = None  # one of the other table
    location = location_of(leaving.partition)
    if move is not None and location is not None and arriving.sd is not None:
        moved = moved_location(location, move.source, move.target)
        arriving.sd = elsewhere(arriving.sd, moved or location)
    return NewPartition(leaving.name, arriving)
