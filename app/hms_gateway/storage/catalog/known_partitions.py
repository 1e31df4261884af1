"""What a batch knows about partitions and their descriptors: what it has read, and what it has changed since."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from hms_gateway.metastore.ports.store import (
    CatalogWork,
    StoredPartition,
    StoredTable,
    TableId,
    UnstorableText,
)
from hms_gateway.storage.catalog.changes import CatalogChanges, ContentKey, PartitionKey
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.partitions.by_names import reads_descriptors, rows_by_names
from hms_gateway.storage.partitions.descriptors import (
    LAST_DESCRIPTOR,
    DescriptorKey,
    by_id,
    descriptor_of_row,
    descriptors_by_ids,
    found_descriptors,
    known_descriptors,
)
from hms_gateway.storage.partitions.rows import Descriptor
from hms_gateway.storage.partitions.writes import encoded_rows
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.structs import Partition

# What is known of a partition that the batch has inserted: that it is there.
NEW: Final = object()

KnownRow: TypeAlias = Any
"""A `NamedRow`, None for no such partition, or NEW."""


class Encoded:
    """Partitions of one table as rows. What is missing are the ids of their descriptors."""

    def __init__(self, table: StoredTable, partitions: Sequence[tuple[str, Partition]], *, are_new: bool) -> None:
        """Raises UnstorableText."""
        self.are_new = are_new
        self.table_id: Final[TableId] = table.table_id
        self.rows, self.contents = encoded_rows(table, partitions)
        self.partitions: Final[list[PartitionKey]] = [(self.table_id, name) for name, _ in partitions]
        self.descriptors: Final[list[ContentKey | None]] = [self._key(content) for content in self.contents]

    def _key(self, content: DescriptorKey | None) -> ContentKey | None:
        return None if content is None else (self.table_id, content[0].content_hash, content[1])


class Wanted:
    """What is to be read: partitions by name and descriptors by hash, for each table by its id."""

    def __init__(self) -> None:
        # With their descriptors, or only whether they are there.
        self.names: dict[tuple[int, bool], dict[str, None]] = {}
        self.hashes: dict[int, dict[str, None]] = {}

    def add_names(self, table_id: int, names: Iterable[str], *, whole: bool = True) -> None:
        of_table = self.names.setdefault((table_id, whole), {})
        of_table.update((name, None) for name in names if is_storable(name))

    def add(self, encoded: Encoded) -> None:
        self.add_names(encoded.table_id, (name for _, name in encoded.partitions), whole=not encoded.are_new)
        hashes = ((key[1], None) for key in encoded.descriptors if key is not None)
        self.hashes.setdefault(encoded.table_id, {}).update(hashes)

    def statements(self, dialect: Dialect) -> list[Statement]:
        """For each table one or two, for each that has hashes one more, and then the last descriptor's id."""
        of_names = [
            statement
            for (table_id, whole), names in self.names.items()
            for statement in rows_by_names(table_id, names, dialect)[: 2 if whole else 1]
        ]
        of_hashes = [known_descriptors(table_id, hashes, dialect) for table_id, hashes in self.hashes.items()]
        return [*of_names, *of_hashes, *([Statement(LAST_DESCRIPTOR, {})] if of_hashes else [])]


class KnownPartitions:
    """`read` sends statements together. What is new in the batch is stored by `flush` where it has to be read."""

    def __init__(
        self, dialect: Dialect, read: Callable[[Sequence[Statement]], list[Rows]], flush: Callable[[], None]
    ) -> None:
        self._dialect = dialect
        self._read = read
        self._flush = flush
        self._encoded: dict[int, Encoded] = {}
        self.forget()

    def forget(self) -> None:
        self._rows: dict[PartitionKey, KnownRow] = {}
        self._descriptors: dict[int, Descriptor] = {}
        self._hashes: set[tuple[int, str]] = set()
        self._ids: dict[ContentKey, int] = {}
        self._last_descriptor: int | None = None

    def foreseen(self, works: Iterable[CatalogWork[Any]]) -> Wanted:
        """What units of work say they will ask for. They keep their lists, so that no other one gets the same id."""
        wanted = Wanted()
        for work in works:
            if work.partitions is not None:
                wanted.add_names(work.partitions[0].table_id, work.partitions[1])
            for given in (work.new_partitions, work.changed_partitions):
                if given is not None and given[1]:
                    with suppress(UnstorableText):  # to be raised where it is stored
                        found = self._encoded[id(given[1])] = _encoded(*given)
                        wanted.add(found)
        return wanted

    def learn(self, wanted: Wanted, answers: Iterable[Rows]) -> None:
        """The answers to its statements. What the batch has changed is known better than what is stored."""
        each = iter(answers)
        for (table_id, whole), names in wanted.names.items():
            rows = {row[1]: tuple(row) for row in next(each)}
            self._rows = {(table_id, name): rows.get(name) for name in names} | self._rows
            if whole and reads_descriptors(names):
                self._learn_descriptors(next(each))
        for table_id, hashes in wanted.hashes.items():
            ids = {(table_id, content_hash, base): found for content_hash, base, found in next(each)}
            self._ids = ids | self._ids
            self._hashes.update((table_id, content_hash) for content_hash in hashes)
        if wanted.hashes and self._last_descriptor is None:
            self._last_descriptor = next(each)[0][0] or 0

    def encoded(self, table: StoredTable, partitions: Sequence[Any]) -> Encoded:
        """As rows, and what is known of them. Raises UnstorableText."""
        found = self._encoded.get(id(partitions)) or _encoded(table, partitions)
        self._know(found)
        return found

    def rows(self, table_id: int, names: Iterable[str]) -> list[KnownRow]:
        """None for those that are not there; never NEW."""
        keys = [(table_id, name) for name in names]
        unknown = {key for key in keys if is_storable(key[1]) and self._rows.get(key, NEW) is NEW}
        if unknown:
            if not unknown.isdisjoint(self._rows):
                self._flush()
            wanted = Wanted()
            wanted.add_names(table_id, (name for _, name in unknown))
            self._rows = {key: row for key, row in self._rows.items() if key not in unknown}
            self._load(wanted)
        rows = [self._rows.get(key) for key in keys]
        self._load_descriptors(row[2] for row in rows if row is not None and row[2] is not None)
        return rows

    def row(self, key: PartitionKey) -> KnownRow:
        """Of one that was asked for."""
        return self._rows.get(key)

    @property
    def descriptors(self) -> dict[int, Descriptor]:
        """Those that rows have, by id."""
        return self._descriptors

    def descriptor_id(self, key: ContentKey, content: DescriptorKey) -> int | None:
        """Of one of the `encoded`; None for a new one."""
        found = self._ids.get(key)
        if found is not None and found not in self._descriptors:
            self._descriptors[found] = Descriptor(found, *content)
        return found

    def next_descriptor(self) -> int:
        assert self._last_descriptor is not None
        self._last_descriptor += 1
        return self._last_descriptor

    def take(self, changes: CatalogChanges) -> None:
        self._rows |= changes.partitions
        for key, row in changes.new_descriptors.items():
            found = descriptor_of_row(row)
            self._ids[key] = found.descriptor_id
            self._descriptors[found.descriptor_id] = found

    def forget_descriptors(self, table_ids: Iterable[int]) -> None:
        """Of these tables some may have gone."""
        gone = set(table_ids)
        self._ids = {key: found for key, found in self._ids.items() if key[0] not in gone}
        self._hashes = {key for key in self._hashes if key[0] not in gone}

    def _know(self, encoded: Encoded) -> None:
        """Which of the partitions are there, and which of the descriptors."""
        wanted = Wanted()
        wanted.add(encoded)
        are_known = all(key in self._rows for key in encoded.partitions if is_storable(key[1]))
        if not are_known or any((key[0], key[1]) not in self._hashes for key in encoded.descriptors if key is not None):
            self._load(wanted)

    def _load(self, wanted: Wanted) -> None:
        self.learn(wanted, self._read(wanted.statements(self._dialect)))

    def _load_descriptors(self, used: Iterable[int]) -> None:
        if missing := set(used) - self._descriptors.keys():
            self._learn_descriptors(self._read([descriptors_by_ids(missing, self._dialect)])[0])

    def _learn_descriptors(self, rows: Rows) -> None:
        self._descriptors |= by_id(found_descriptors(rows))


def _encoded(table: StoredTable, partitions: Sequence[Any]) -> Encoded:
    """Of new partitions, or of stored ones as they will be. Raises UnstorableText."""
    are_new = not isinstance(partitions[0], StoredPartition)
    return Encoded(table, [(each.name, each.partition) for each in partitions], are_new=are_new)
