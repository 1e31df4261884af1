"""The rows of a database into a backup, and back into a database of any kind.

A backup is one state: everything is read in one transaction. A restore is one transaction too, in which the rows are
read again and compared before it ends. What belongs to a moment stays behind: locks, leases, who rebuilds a view, which
gateways run. A transaction that was open is aborted, since its locks are gone.

No id that a client may know from the lost state is given again, or clients and caches would take the new for the old.
How far the lost state had come nobody knows. So every counter goes on from the time of the restore, in milliseconds:
between two restores fewer ids are given than milliseconds pass. In the log of events this leaves a gap, by which
caches, streams and replication notice that what they have read may be lost, as if events had expired.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Engine,
    LargeBinary,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from hms_gateway.metastore.changes.events import RESTORE_CATALOG
from hms_gateway.metastore.ports.store import StoreError, StoreFailure, UnstorableText
from hms_gateway.storage.backup.archive import (
    FORMAT,
    Backup,
    BackupFolder,
    BackupWriter,
    Inventory,
    TableRows,
    backup_name,
    rows_of,
    sums_of,
)
from hms_gateway.storage.dialects import dialect_of_url, parse_url
from hms_gateway.storage.dialects.base import Retryable
from hms_gateway.storage.dialects.integrity import IntegrityCheck
from hms_gateway.storage.dialects.kinds import as_unavailable, dialect_of, translated
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.migrations.revisions import check_revision, current_revision, migrate_engine
from hms_gateway.storage.schema.catalog import (
    CATALOG,
    DROPPED_TABLES,
    GATEWAYS,
    METADATA,
    NOTIFICATIONS,
    OF_PARTITIONED,
    PENDING_MOVES,
    READABLE_BY,
    REVISION,
)
from hms_gateway.storage.schema.txn import COUNTERS, LEASE_WAITERS, LEASES, LOCKS, REBUILDS, TXN_COUNTERS, TXNS
from hms_gateway.txn.rules.transactions import TxnStatus

# Of a moment, or of one kind of database only.
_LEFT: Final = frozenset({LOCKS, LEASES, LEASE_WAITERS, REBUILDS, GATEWAYS, DROPPED_TABLES})
# In an order in which every reference is whole.
_KEPT: Final = [table for table in METADATA.sorted_tables if table not in _LEFT]
# The database counts their keys.
_COUNTING: Final = [table for table in METADATA.sorted_tables if table.autoincrement_column is not None]
_ROWS_AT_ONCE: Final = 1_000

Tell = Callable[[str], object]
"""Called with the name of each table before it is read or written."""


class Made(NamedTuple):
    """A backup that was written: its size, and the number of chunks that no earlier file had."""

    backup: Backup
    file_bytes: int
    chunks: int
    is_increment: bool


class Restored(NamedTuple):
    """The outcome of a restore: its event, and the number of transactions that it aborted."""

    inventory: Inventory
    event_id: int
    aborted: int


def back_up(
    url: str, path: Path, now_ms: Callable[[], int], files: Mapping[str, bytes], tell: Tell, *, is_base: bool = False
) -> Made:
    """Write the state of a database, which may be in use, to a new file in the folder `path`.

    `now_ms` gives the time, `files` are put in as well. With `is_base` the file needs no other, otherwise it has what
    the newest one has not.
    Raises StoreError.
    """
    parsed = parse_url(url)
    dialect = dialect_of_url(parsed)
    source = dialect.file(parsed)
    if source is not None:
        _check_file(source)
    with _using(dialect.reading_engine(parsed)) as engine:
        check_revision(engine, is_exact=True)
        with BackupFolder(path) as folder, translated(engine), engine.connect() as connection:
            newest = None if is_base else folder.newest()
            tables = {} if newest is None else newest.inventory.tables
            known = {chunk.sha256: chunk for table in tables.values() for chunk in table.chunks}
            event_id = connection.execute(select(CATALOG.c.last_event_id)).scalar_one()
            time_ms = now_ms()  # the state is that of the first statement: no change in it is later
            name = backup_name(time_ms, event_id)
            with BackupWriter(folder, name, known) as writer:
                written = {}
                for table in _KEPT:
                    tell(table.name)
                    columns = list(map(str, table.columns.keys()))
                    written[str(table.name)] = writer.add_rows(columns, _rows(connection, table, columns))
                sums = {file: writer.add_file(file, content) for file, content in files.items()}
                dialect.end_reading(connection)
                made = Inventory(FORMAT, version("hms-gateway"), REVISION, event_id, time_ms, written, sums)
                size = writer.finish(made, None if source is None else source.stat())
        return Made(Backup(name, made), size, writer.written, bool(known))


def restore(url: str, folder: BackupFolder, backup: Backup, now_ms: int, tell: Tell, *, replaces: bool) -> Restored:
    """Put the rows of a backup in the place of those of a database.

    The schema is made where there is none. The backup is read as a whole before, so nothing is written of one that is
    damaged. With `replaces` rows that are there are given up. Gateways may run meanwhile: their calls wait or are
    refused, and afterwards they go on with what was restored. Raises StoreError.
    """
    inventory = backup.inventory
    if not READABLE_BY <= inventory.revision <= REVISION:
        raise StoreError(
            f"{folder.path / backup.name} has revision {inventory.revision} of the tables, this program takes"
            f" {READABLE_BY} to {REVISION}: restore with version {inventory.program} of the program; if that is older,"
            " run `hms-gateway migrate` afterwards"
        )
    folder.verify(backup)
    parsed = parse_url(url)
    with _using(dialect_of_url(parsed).writing_engine(parsed)) as engine:
        with translated(engine), engine.connect() as connection:
            found = current_revision(connection)
        if found is None:
            migrate_engine(engine)
        check_revision(engine, is_exact=True)
        with translated(engine), engine.begin() as connection:
            _Restoring(connection, folder, inventory, tell).prepare(now_ms, replaces=replaces)
        with translated(engine), engine.begin() as connection:
            return _Restoring(connection, folder, inventory, tell).run(now_ms, replaces=replaces)


@contextmanager
def _using(engine: Engine) -> Iterator[Engine]:
    """Dispose of the engine at the end. Raises StoreUnavailable where the database would have all done again."""
    try:
        yield engine
    except Retryable as error:
        raise as_unavailable(error) from error
    finally:
        engine.dispose()


class _Restoring:
    """A restore inside one transaction, and a transaction before it."""

    def __init__(self, connection: Connection, folder: BackupFolder, inventory: Inventory, tell: Tell) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)
        self._folder = folder
        self._inventory = inventory
        self._tell = tell

    def prepare(self, now_ms: int, *, replaces: bool) -> None:
        """Let ids that the database gives be newer than all that are known; if nothing is restored, some are left out.

        Raises StoreError.
        """
        if not replaces:
            self._check_empty()
        least = max(now_ms, 1 + max(self._inventory.event_id, *self._counters(), *self._newest_ids()))
        self._dialect.raise_ids(self._connection, _COUNTING, least)

    def run(self, now_ms: int, *, replaces: bool) -> Restored:
        # Every change of every gateway waits for this row, which is changed and not replaced: they would find none.
        self._connection.execute(update(CATALOG).values(last_event_id=CATALOG.c.last_event_id))
        counters = self._counters()
        if not replaces:
            self._check_empty()
        # Gateways move these directories now, and settle it afterwards.
        moves = self._connection.execute(select(PENDING_MOVES)).mappings().all()
        for table in reversed(METADATA.sorted_tables):
            if table not in (GATEWAYS, CATALOG):
                self._connection.execute(delete(table))
        for table in _KEPT:
            if table.name in self._inventory.tables and table is not CATALOG:
                self._tell(table.name)
                self._load(table, self._inventory.tables[table.name])
        self._connection.execute(update(CATALOG).values(last_event_id=self._inventory.event_id))
        for table in _KEPT:
            if table.name in self._inventory.tables:
                self._compare(table, self._inventory.tables[table.name])
        restored = set(self._connection.execute(select(PENDING_MOVES.c.move_id)).scalars())
        if left := [dict(move) for move in moves if move["move_id"] not in restored]:
            self._connection.execute(insert(PENDING_MOVES), left)
        newest = self._connection.execute(select(func.max(NOTIFICATIONS.c.event_id))).scalar() or 0
        if newest > self._inventory.event_id:
            raise StoreError(f"the backup has events up to {newest}, but its catalog is at {self._inventory.event_id}")
        event_id = max(now_ms, 1 + max(*counters, *self._counters()))
        return Restored(self._inventory, event_id, self._go_on(event_id, now_ms))

    def _counters(self) -> list[int]:
        """The newest ids that are known of each kind."""
        columns = [
            CATALOG.c.last_event_id,
            TXN_COUNTERS.c.last_id,
            *(key for table in _COUNTING for key in table.primary_key),
        ]
        return [self._connection.execute(select(func.max(column))).scalar() or 0 for column in columns]

    def _newest_ids(self) -> Iterator[int]:
        """The newest id of each kind of rows in the backup: its last chunk ends with it."""
        for table in _COUNTING:
            kept = self._inventory.tables.get(table.name)
            if kept is not None and kept.chunks:
                (key,) = table.primary_key
                yield rows_of(self._folder.chunk(kept.chunks[-1]))[-1][kept.columns.index(key.name)]

    def _check_empty(self) -> None:
        for table in _KEPT:
            if table is not CATALOG and self._connection.execute(select(table).limit(1)).first() is not None:
                raise StoreError(
                    f"the database is not empty: it has rows in {table.name}; restore into another one, or give up all"
                    " that it has with --replace"
                )

    def _load(self, table: Table, kept: TableRows) -> None:
        unknown = [name for name in kept.columns if name not in table.columns]
        if unknown:
            raise StoreError(f"the backup has the columns {', '.join(unknown)} of {table.name}, which are unknown here")
        binary = [number for number, name in enumerate(kept.columns) if isinstance(table.c[name].type, LargeBinary)]
        statement = insert(table)
        for chunk in kept.chunks:
            rows = rows_of(self._folder.chunk(chunk))
            for row in rows if binary else ():
                for number in binary:
                    row[number] = row[number] and base64.b64decode(row[number])
            values = [dict(zip(kept.columns, row, strict=True)) for row in rows]
            try:
                with translated(self._connection.engine):
                    self._dialect.run_together(self._connection, [Statement(statement, values)])
            except (StoreFailure, UnstorableText) as error:
                raise StoreError(f"this database does not take the rows of {table.name}: {error}") from error

    def _compare(self, table: Table, kept: TableRows) -> None:
        """Raises StoreError unless the database now gives the rows that were put in."""
        rows = _rows(self._connection, table, kept.columns)
        found = sums_of(rows)
        for chunk in kept.chunks:
            if next(found, None) != (chunk.sha256, chunk.rows):
                raise StoreError(f"this database gives back other rows of {table.name}; nothing is restored")
        if next(found, None) is not None:
            raise StoreError(f"this database gives back more rows of {table.name}; nothing is restored")

    def _go_on(self, event_id: int, now_ms: int) -> int:
        """Let everything go on after the restored state; returns the number of transactions that are aborted."""
        is_open = TXNS.c.state == TxnStatus.OPEN.value
        reason = "it was open when the catalog was backed up"
        ended = update(TXNS).where(is_open).values(state=TxnStatus.ABORTED.value, ended_ms=now_ms, reason=reason)
        aborted = self._connection.execute(ended).rowcount
        self._connection.execute(delete(TXN_COUNTERS))
        self._connection.execute(insert(TXN_COUNTERS), [{"name": name, "last_id": event_id} for name in COUNTERS])
        self._connection.execute(update(CATALOG).values(last_event_id=event_id))
        event = {"event_id": event_id, "event_time": now_ms // 1000, "event_type": RESTORE_CATALOG, "db_name": ""}
        message = f'{{"eventId":{self._inventory.event_id},"timestamp":{now_ms // 1000}}}'
        self._connection.execute(insert(NOTIFICATIONS).values(**event, message=message))
        return aborted


def _rows(connection: Connection, table: Table, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    rows: Select[Any] = select(*(table.c[name] for name in columns)).order_by(*table.primary_key)
    if table in OF_PARTITIONED:
        # Those of tables that are dropped already are only still to be deleted.
        rows = rows.where(table.c.table_id.not_in(select(DROPPED_TABLES.c.table_id)))
    return iter(connection.execute(rows, execution_options={"yield_per": _ROWS_AT_ONCE}))


def _check_file(file: Path) -> None:
    if not file.exists():
        raise StoreError(f"database {file} not found; --data-dir or --database says where it is")
    damage = IntegrityCheck(file).find_damage()
    if damage is not None:
        raise StoreError(f"database {file} is damaged: {damage}; restore a backup")
