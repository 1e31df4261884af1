"""What the metastore's rules need from storage and from file systems.

Primitives below, semantics above: nothing here knows Hive's error texts. Tables, partitions, databases and events are
methods of a unit of work; the rows of any other aggregate are a class over its connection, in `catalog`.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from hms_gateway.metastore.filters.binding import BoundNode
from hms_gateway.metastore.filters.table_filter import TableFilter
from hms_gateway.metastore.vocabulary.names import DatabaseId as DatabaseId
from hms_gateway.metastore.vocabulary.names import EventId as EventId
from hms_gateway.metastore.vocabulary.names import PartitionId as PartitionId
from hms_gateway.metastore.vocabulary.names import TableId as TableId
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.rpc.structs import (
    Database,
    DatabaseCounts,
    EncodedList,
    FieldSchema,
    FoundName,
    Partition,
    PartitionGroup,
    Table,
    TableMeta,
)
from hms_gateway.rpc.structs.base import EncodedTexts
from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.presented import Actor
from hms_gateway.txn.ports.leases import LeaseWrites
from hms_gateway.txn.ports.txn import BatchedWrites as BatchedWrites
from hms_gateway.txn.ports.txn import HeldLocks, TxnReads, TxnWrites

if TYPE_CHECKING:
    from sqlalchemy import Connection


T = TypeVar("T")


class StoreError(Exception):
    """Storage failed, or cannot take what was asked of it; the text is safe to show. Raised by storage only."""


class StoreUnavailable(StoreError):
    """The database cannot be reached; nothing was changed. The caller may try again later (HTTP 503).

    `detail` is what the driver said. It names hosts and accounts, so it is for the operator and not for callers.
    `limit` is the name of the limit that is in the way, if one is.
    """

    def __init__(self, text: str, detail: str = "", limit: str = "") -> None:
        super().__init__(text)
        self.detail = detail
        self.limit = limit


class StoreFailure(StoreError):
    """The database failed, or refused what it should have taken: nothing that a caller did wrong."""


class OutcomeUnknown(StoreFailure):
    """The connection was lost while committing: the change may or may not have happened."""


class DuplicateKey(StoreError):
    """A unique name is taken already: `name` is the object's, as stored."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} exists already")
        self.name = name


class UnstorableText(StoreError):
    """A name or text cannot be stored: it is too long for an index, or no database can hold its characters."""


class StoredTable(msgspec.Struct, frozen=True):
    """A table as get_table returns it, its ids, the exact number of its partitions, and whether it has indexes.

    `as_stored` is storage's own, by which it sees whether the table has changed since.
    """

    table_id: TableId
    database_id: DatabaseId
    table: Table
    partition_count: int
    has_indexes: bool
    as_stored: object = None

    @property
    def key_names(self) -> list[str]:
        return [key.name or "" for key in self.table.partitionKeys or []]


class StoredDatabase(msgspec.Struct, frozen=True):
    """A database as get_database returns it, and its id."""

    database_id: DatabaseId
    database: Database


class StoredPartition(msgspec.Struct, frozen=True):
    """A partition as get_partition returns it, its id, and its name (`ds=2024-01-01/hr=1`).

    `as_stored` is storage's own, by which it sees whether the partition has changed since; it is not compared here.
    """

    partition_id: PartitionId
    name: str
    partition: Partition
    as_stored: object = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPartition) and (self.partition_id, self.name, self.partition) == (
            other.partition_id,
            other.name,
            other.partition,
        )

    __hash__ = None  # type: ignore[assignment]


class NewPartition(msgspec.Struct, frozen=True):
    """A partition to store; `name` is the canonical one made from its values (semantics §3.8)."""

    name: str
    partition: Partition


class Selection(msgspec.Struct, frozen=True):
    """Which partitions of one table: all conditions that are set hold; order is always by name, byte order.

    names          exact stored names; unknown ones are ignored
    partial_values one entry for each leading key, None for "any" (semantics §4.6)
    filter         a bound partition filter (semantics §4)
    limit          at most so many, None for all
    """

    names: Sequence[str] | None = None
    partial_values: Sequence[str | None] | None = None
    filter: BoundNode | None = None
    limit: int | None = None


class PendingMove(msgspec.Struct, frozen=True):
    """A directory move that was announced before it was made, so that a crash in between can be mended."""

    move_id: int
    table_id: TableId
    source: str
    target: str


class LeftDirectory(msgspec.Struct, frozen=True):
    """A directory to delete after the commit that dropped its table; `may_be_used` is true if others may lie there."""

    location: str
    may_be_used: bool = False


class Event(msgspec.Struct, frozen=True):
    """A notification event to append; `message` is the JSON text (semantics §2.20), ids and time are storage's.

    `renamed_from` is the normalised (database, table) that a rename left behind, for followers of the log.
    `emptied_partitions` are the names of those that a truncation was about; they are not kept.
    """

    event_type: str
    db_name: str
    table_name: str | None
    message: str
    renamed_from: tuple[str, str] | None = None
    emptied_partitions: Sequence[str] = ()


class StoredEvent(msgspec.Struct, frozen=True):
    event_id: EventId
    event_time: int
    event: Event


class EventSelection(msgspec.Struct, frozen=True):
    """Which events: all conditions that are set hold. Names are normalised.

    up_to          the last id to look at
    prefix         beginning of the keys of a catalog's databases, `""` for the default one's
    table_names    any of these tables
    types          any of these types, and none of `skipped_types`
    limit          at most so many, None for all
    has_messages   whether their messages are read; they are empty otherwise
    """

    after: EventId
    up_to: int | None = None
    db_name: str | None = None
    prefix: str | None = None
    table_names: Sequence[str] | None = None
    types: Sequence[str] | None = None
    skipped_types: Sequence[str] = ()
    limit: int | None = None
    has_messages: bool = True


class Snapshot(Protocol):
    """One consistent state of the catalog. Names are normalised (lower case) by the caller."""

    def foresee(self, tables: Sequence[tuple[str, str]]) -> None:
        """These and their databases will be asked for: read them at once."""

    @property
    def connection(self) -> "Connection":
        """The connection for the rows of an aggregate."""

    @property
    def txns(self) -> TxnReads: ...

    def database(self, name: str) -> StoredDatabase | None: ...

    def database_names(self, pattern: Pattern | None = None, prefix: str | None = None) -> list[str]:
        """Sorted in byte order; with `prefix` those of one catalog, whose keys begin so, with it before the pattern."""

    def table(self, db_name: str, tbl_name: str) -> StoredTable | None: ...

    def table_with_id(self, table_id: int) -> StoredTable | None: ...

    def tables(self, db_name: str, tbl_names: Sequence[str] | None = None) -> list[StoredTable]:
        """All tables of the database, or those named, ordered by name; unknown names are ignored."""

    def table_names(
        self,
        db_name: str,
        pattern: Pattern | None = None,
        table_type: str | None = None,
        filter: TableFilter | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Sorted in byte order; an unknown database has none."""

    def table_metas(
        self,
        db_pattern: Pattern | None,
        tbl_pattern: Pattern | None,
        table_types: Sequence[str] | None,
        prefix: str | None = None,
    ) -> list[TableMeta]:
        """Tables of all catalogs, or with `prefix` of one, as `database_names`."""

    def search_names(self, db_text: str | None, text: str, limit: int, details: bool = False) -> list[FoundName]:
        """Those with the text in their names, the best first; with `db_text` only in databases with it in theirs."""

    def count_objects(self, db_name: str | None, details: bool = False) -> list[DatabaseCounts]:
        """Count the objects of the database, or of each, by name."""

    def partition(self, table: StoredTable, name: str) -> StoredPartition | None: ...

    def partitions(self, table: StoredTable, selection: Selection) -> list[StoredPartition]:
        """As objects, all at once: for changing them."""

    def partition_list(self, table: StoredTable, selection: Selection) -> EncodedList:
        """For sending them. A long list keeps this snapshot open until it is closed; short ones are read at once."""

    def partition_names(self, table: StoredTable, selection: Selection) -> list[str]: ...

    def partition_name_list(self, table: StoredTable, selection: Selection) -> list[str] | EncodedTexts:
        """For sending them; a long list keeps this snapshot open until it is closed."""

    def partition_values(self, table: StoredTable, selection: Selection) -> list[list[str]]:
        """The values of each partition in key order, ordered by partition name."""

    def count_partitions(self, table: StoredTable, selection: Selection) -> int: ...

    def partition_names_from(
        self, table: StoredTable, selection: Selection, after: str, *, descending: bool, limit: int
    ) -> list[str]:
        """The names behind `after`, in their order or against it; "" is from the beginning."""

    def partition_groups(self, table: StoredTable, selection: Selection, keys: int, limit: int) -> list[PartitionGroup]:
        """By the values of the first keys, in the order of names."""

    def outside_locations(self, table: StoredTable, selection: Selection | None = None) -> list[str]:
        """Locations of the partitions that do not lie under the table's own location, each once."""

    def current_event_id(self) -> EventId: ...

    def events_after(self, event_id: EventId, limit: int | None = None) -> list[StoredEvent]:
        """In order of their ids."""

    def events(self, selection: EventSelection) -> list[StoredEvent]:
        """In order of their ids."""

    def first_events(self, selection: EventSelection) -> list[tuple[str, str | None, EventId]]:
        """For each database and table that selected events are about, the first of these; the limit does not count."""

    def count_events(self, selection: EventSelection) -> int: ...

    def pending_moves(self) -> list[PendingMove]: ...


class Transaction(Snapshot, HeldLocks, Protocol):
    """A unit of work that changes the catalog. One runs at a time: what it reads stays true until it commits."""

    @property
    def txns(self) -> TxnWrites: ...

    @property
    def leases(self) -> LeaseWrites: ...

    def refuse_second(self, key: CallKey) -> None:
        """Raises AlreadyConcluded for a call whose change was made before."""

    def conclude(self, key: CallKey, value: object) -> None:
        """Note that the change of a call, which gave `value`, is part of this unit of work."""

    def made_events(self) -> Sequence[Event]:
        """Those that this unit of work has appended."""

    def insert_database(self, database: Database) -> DatabaseId:
        """Raises DuplicateKey."""

    def update_database(self, database_id: DatabaseId, database: Database) -> None: ...

    def delete_database(self, database_id: DatabaseId) -> None:
        """With everything in it: functions, tables, partitions, indexes."""

    def unchanged(self, loaded: StoredTable) -> StoredTable | None:
        """The table as it is now, if only the number of its partitions has changed since it was read, else None."""

    def insert_table(self, database_id: DatabaseId, table: Table) -> TableId:
        """Raises DuplicateKey."""

    def update_table(self, table_id: TableId, database_id: DatabaseId, table: Table) -> None:
        """Replace the table's own row; partitions keep columns and locations. Raises DuplicateKey for a taken name."""

    def delete_table(self, table_id: TableId) -> None:
        """With its partitions, indexes and marks."""

    def move_partition_locations(self, table_id: TableId, old_path: str, new_path: str) -> None:
        """Give every partition whose location lies under `old_path` the same place under `new_path`."""

    def replace_partition_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> None:
        """Write the column list into the storage descriptor of every partition (ALTER TABLE … CASCADE)."""

    def insert_partitions(self, table: StoredTable, partitions: Sequence[NewPartition]) -> None:
        """Raises DuplicateKey with the name of the first that exists already."""

    def are_unchanged(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> bool:
        """Whether these are stored exactly as when they were read."""

    def update_partitions(self, table: StoredTable, partitions: Sequence[StoredPartition]) -> None:
        """Replace what is stored under each id, name and values included. Raises DuplicateKey."""

    def delete_partitions(self, table: StoredTable, names: Sequence[str]) -> None: ...

    def append_event(self, event: Event) -> EventId:
        """The event takes effect with the unit of work; ids are dense and in commit order (design D7)."""

    def delete_events_before(self, seconds: int, count_max: int) -> int:
        """Forget the oldest events, up to `count_max`, as long as they are older; how many went.

        The newest always stays, and so do all after an event that stays: a reader of the events after the one it
        know sees from the first id whether something is missing.
        """

    def insert_pending_move(self, table_id: TableId, source: str, target: str) -> int: ...

    def delete_pending_move(self, move_id: int) -> None: ...


class CatalogWork(msgspec.Struct, Generic[T], frozen=True):
    """A unit of work that a store may run together with others, and what it will ask for, as far as is known.

    That is read ahead for all of them. Whatever else `work` asks for it gets all the same.

    tables              by database and name, whether they exist or not; and their databases
    new_tables          so many tables it makes
    new_partitions      the very list that it inserts, and their table, which it finds unchanged
    changed_partitions  the very list that it updates, and their table, which it finds unchanged; names stay
    partitions          by name, whether they exist or not, and their table
    reads_locks         whether it looks at the locks that are held on its tables and databases
    """

    work: Callable[[Transaction], T]
    tables: Sequence[tuple[str, str]] = ()
    new_tables: int = 0
    new_partitions: tuple[StoredTable, Sequence[NewPartition]] | None = None
    changed_partitions: tuple[StoredTable, Sequence[StoredPartition]] | None = None
    partitions: tuple[StoredTable, Sequence[str]] | None = None
    reads_locks: bool = False

    def __call__(self, transaction: Transaction) -> T:
        return self.work(transaction)


class Store(Protocol):
    """Units of work. `work` may run more than once before it succeeds, so it touches nothing but its argument."""

    def read(self, work: Callable[[Snapshot], T], *, asks_once: bool = False) -> T:
        """Run `work` on one consistent state. An EncodedList in the result stays readable until it is closed.

        With `asks_once` it asks for tables and databases by their names, for all at once: by `foresee` or as the only
        thing. It runs again from its beginning if it asks for more. Raises StoreUnavailable.
        """

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` and commit; when this returns the change is durable, when it raises nothing has changed.

        Whatever `work` raises passes through unchanged. Raises StoreUnavailable and OutcomeUnknown.
        """

    def ready(self) -> None:
        """Raises StoreUnavailable when the database cannot be reached."""

    def version(self) -> EventId:
        """The newest event's id, which is the catalog's version; cheap. Raises StoreUnavailable."""

    def data_version(self) -> int | None:
        """A number that changes with every commit (SQLite, microseconds); None where the database has none."""

    def changes_since(self, event_id: EventId) -> list[StoredEvent]:
        """The events after `event_id` in order, with an empty `message`: cheap. Raises StoreUnavailable.

        When the first of them is not `event_id + 1`, those between are forgotten already.
        """

    def close(self) -> None:
        """Finish the writes that are waiting, then give back everything."""


class VersionWatch(Protocol):
    """A connection that asks for the newest event's id without waiting. After an error it is of no more use."""

    @property
    def sees_lasting_only(self) -> bool:
        """True if what it reports is never lost again. Else a crash may lose it, and loses the connection then."""

    @property
    def knows_changes(self) -> bool:
        """True if it can be asked for them."""

    def fileno(self) -> int:
        """The socket, readable when there may be an answer."""

    def ask(self) -> None:
        """Send the question. Raises StoreUnavailable."""

    def answer(self) -> EventId | None:
        """The answer as far as it has arrived, None before. Raises StoreUnavailable."""

    def ask_changes(self, event_id: EventId) -> None:
        """The question for the events after that one. Raises StoreUnavailable."""

    def changes(self) -> Sequence[StoredEvent] | None:
        """The answer to this, as `answer`."""

    def close(self) -> None:
        """Give the connection back."""


class Reach(StrEnum):
    """What a location is to this server.

    MANAGED   below one of its roots: directories are made, moved, deleted and measured
    OUTSIDE   on a file system it manages, but not below a root: it may be recorded, and nothing there is touched
    IGNORED   on a file system it leaves to others
    REFUSED   on a file system whose locations it does not take
    """

    MANAGED = "managed"
    OUTSIDE = "outside"
    IGNORED = "ignored"
    REFUSED = "refused"


class FileSystemError(Exception):
    """A directory could not be made, moved, read or deleted; the text is safe to show."""


class FileSystemAway(FileSystemError):
    """The file system does not answer now, or this process has no room to ask it: the same may succeed later."""


class DirectoryNotMade(FileSystemError):
    """A directory could not be made where it is wanted, for instance because a file is in the way."""


class ObjectsKept(FileSystemError):
    """A bucket refuses to delete some objects, which no other try will change; all others are gone."""


# What is asked of who made which change.


class ChangeSelection(msgspec.Struct, frozen=True):
    """Selection of changes: times in seconds since 1970, both included; `before` is an event, which is not."""

    user: str | None = None
    db_name: str | None = None
    table_name: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    limit: int = 100


class MadeChange(msgspec.Struct, frozen=True):
    """A change as its event names it, and who made it."""

    event_id: EventId
    seconds: int
    event_type: str
    db_name: str
    table_name: str | None
    actor: Actor


# The needs of a check of the directories from file systems.


class Tree(NamedTuple):
    """A directory with everything below it; `newest_seconds` is the time of the last change."""

    directories: int
    files: int
    total_bytes: int
    newest_seconds: float
