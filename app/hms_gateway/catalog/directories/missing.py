"""Managed tables and partitions whose directory is not there."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from hms_gateway.catalog.directories.known_places import partition_places, table_places
from hms_gateway.catalog.directories.outside_places import CountedPlaces
from hms_gateway.metastore.ports.places import DirectoryTrees, PartitionPlace, TablePlace
from hms_gateway.metastore.ports.store import FileSystem, FileSystemError, Reach, Snapshot, Store
from hms_gateway.metastore.vocabulary.ids import TableId

_TABLES_KEPT: Final = 10_000


class MissingDirectory(msgspec.Struct, frozen=True):
    """`name` is a table's or a partition's (`sales.orders/ds=1`)."""

    kind: str
    name: str
    location: str


class MissingDirectories:
    """Looks at each table and partition once; on the way it counts what is external and outside the roots."""

    def __init__(self, store: Store, files: FileSystem, trees: DirectoryTrees) -> None:
        self._store = store
        self._files = files
        self._trees = trees
        self._table = lru_cache(_TABLES_KEPT)(self._read_table)
        self.external_outside = CountedPlaces()

    def find(self) -> Iterator[MissingDirectory]:
        """What is dropped or moved meanwhile is asked for again, and is not missing then."""
        for table in table_places(self._store):
            if self._is_missing(table, table.location) and self._has_table(table):
                yield MissingDirectory("table", str(table), table.location or "")
        for partition in partition_places(self._store):
            owner = self._table(partition.table_id)
            if owner is not None and self._is_missing(owner, partition.location) and self._has_partition(partition):
                yield MissingDirectory("partition", f"{owner}/{partition.name}", partition.location or "")

    def _is_missing(self, table: TablePlace, location: str | None) -> bool:
        if not location:
            return False
        try:
            if not table.owns_data:
                if self._files.reach(location) is Reach.OUTSIDE:
                    self.external_outside.add(str(table))
                return False
            return self._trees.is_local(location) and not self._trees.is_directory(location)
        except FileSystemError:
            return False

    def _read_table(self, table_id: TableId) -> TablePlace | None:
        found = self._store.read(lambda snapshot: snapshot.places.tables_with_ids([table_id]))
        return found[0] if found else None

    def _has_table(self, table: TablePlace) -> bool:
        def read(snapshot: Snapshot) -> bool:
            found = snapshot.places.tables_with_ids([table.table_id])
            return any(one.location == table.location for one in found) and not _is_moved(snapshot, table.table_id)

        return self._store.read(read)

    def _has_partition(self, partition: PartitionPlace) -> bool:
        def read(snapshot: Snapshot) -> bool:
            found = snapshot.places.partitions_named(partition.table_id, [partition.name])
            return partition in found and not _is_moved(snapshot, partition.table_id)

        return self._store.read(read)


def _is_moved(snapshot: Snapshot, table_id: TableId) -> bool:
    return any(move.table_id == table_id for move in snapshot.pending_moves())
