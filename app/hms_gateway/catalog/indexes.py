"""Indexes of 2.3: rows beside their table, each with a table of its own for the entries (semantics §2.17)."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from sqlalchemy import Row, bindparam, delete, insert, select, update

from hms_gateway.catalog.arguments import database_name, table_named, with_fields
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import java_text, required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import stored_descriptor
from hms_gateway.metastore.ports.store import (
    DuplicateKey,
    Event,
    LeftDirectory,
    Snapshot,
    Store,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.names import DatabaseId, IndexId, TableId, display_name, normalize
from hms_gateway.metastore.vocabulary.parameters import with_new_ddl_time, without_nulls
from hms_gateway.metastore.vocabulary.table_types import TableType
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Index,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Table,
)
from hms_gateway.rpc.structs.catalogs import plain_name
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import DATABASES, TABLE_INDEXES, TABLES
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows, check_name, check_text, is_storable

CREATE_INDEX: Final = "CREATE_INDEX"
ALTER_INDEX: Final = "ALTER_INDEX"
DROP_INDEX: Final = "DROP_INDEX"

_EXTRA: Final = names_except(Index, "indexName", "dbName", "origTableName", "indexTableName")

# Database and table are named as they are named now, whatever they were when the index was made.
_ROWS = (
    select(TABLE_INDEXES, TABLES.c.name.label("tbl_name"), DATABASES.c.name.label("db_name"))
    .join(TABLES, TABLES.c.table_id == TABLE_INDEXES.c.table_id)
    .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
)
_OF_DATABASE = _ROWS.where(TABLES.c.database_id == bindparam("database_id"))
_OF_TABLE = _ROWS.where(TABLE_INDEXES.c.table_id == bindparam("table_id")).order_by(TABLE_INDEXES.c.name)
_BY_NAME = _OF_TABLE.where(TABLE_INDEXES.c.name == bindparam("name"))


class StoredIndex(msgspec.Struct, frozen=True):
    """An index as get_index_by_name returns it, and its id."""

    index_id: IndexId
    index: Index


class IndexRows(AggregateRows):
    """Names are lower-cased by the caller."""

    def find(self, table_id: TableId, name: str) -> StoredIndex | None:
        if not is_storable(name):
            return None
        row = self._connection.execute(_BY_NAME, {"table_id": table_id, "name": name}).first()
        return None if row is None else _stored_index(row)

    def of_table(self, table_id: TableId) -> list[StoredIndex]:
        """Ordered by name."""
        return [_stored_index(row) for row in self._connection.execute(_OF_TABLE, {"table_id": table_id})]

    def of_database(self, database_id: DatabaseId) -> list[StoredIndex]:
        """Indexes on tables of the database, in no order."""
        return [_stored_index(row) for row in self._connection.execute(_OF_DATABASE, {"database_id": database_id})]

    def insert(self, table_id: TableId, index: Index) -> None:
        """Raises DuplicateKey."""
        name = index.indexName or ""
        check_name("index", name, self._dialect)
        if self.find(table_id, name) is not None:
            raise DuplicateKey(name)
        self._connection.execute(insert(TABLE_INDEXES).values({**_row(index), "table_id": table_id, "name": name}))

    def update(self, index_id: IndexId, index: Index) -> None:
        """Replace everything but name and table."""
        self._connection.execute(update(TABLE_INDEXES).where(TABLE_INDEXES.c.index_id == index_id).values(_row(index)))

    def delete(self, index_id: IndexId) -> None:
        self._connection.execute(delete(TABLE_INDEXES).where(TABLE_INDEXES.c.index_id == index_id))


class IndexTables(Protocol):
    """Tables of indexes; tables know indexes, so that indexes cannot import them."""

    def create(self, table: Table | None, *, on_insert: Callable[[Transaction], None]) -> None: ...

    def remove(self, tx: Transaction, found: StoredTable, *, delete_data: bool) -> list[LeftDirectory]:
        """Take a table out of the catalog; the directories to delete after the commit."""

    def delete_directories(self, directories: list[LeftDirectory]) -> None: ...


class Indexes:
    """Methods on indexes. The largest number of indexes that callers name makes no difference, as in Hive."""

    def __init__(self, store: Store, clock: Clock, events: EventMaker, tables: IndexTables) -> None:
        self._store = store
        self._clock = clock
        self._events = events
        self._tables = tables

    def add_index(self, call: Call, new_index: Index, index_table: Table) -> Index:
        """Store the index and make its table."""
        given = required(new_index, "index")
        if given.dbName is not None:
            given = with_fields(given, dbName=database_name(given.dbName))
        required(given.indexName, "index name")
        self._store.read(lambda snapshot: _check_new(snapshot, given, index_table))
        new = self._stored(given)

        def insert(tx: Transaction) -> None:
            base = _check_name_free(tx, given)
            rows = IndexRows(tx)
            rows.insert(base.table_id, new)
            stored = rows.find(base.table_id, new.indexName or "")
            assert stored is not None
            fields = {"indexObjJson": self._events.object_json(stored.index)}
            tx.append_event(_index_event(self._events, CREATE_INDEX, stored.index, fields))

        try:
            with unstorable_as_meta():
                self._tables.create(index_table, on_insert=insert)
        except DuplicateKey as error:
            raise _taken(given) from error
        # The name comes back as it was sent, as in Hive.
        stored = self._store.read(lambda snapshot: _find(snapshot, _base(given), new.indexName))
        return msgspec.structs.replace(stored.index, indexName=given.indexName)

    def alter_index(self, call: Call, dbname: str, base_tbl_name: str, idx_name: str, new_idx: Index) -> None:
        """Replace the parameters, nothing else."""
        name = table_named(dbname, base_tbl_name)
        given = required(new_idx, "index")

        def work(tx: Transaction) -> None:
            try:
                found = _find(tx, name, idx_name)
            except NoSuchObjectException as error:
                raise MetaException(f"NoSuchObjectException(message:{error.message})") from error
            after = msgspec.structs.replace(found.index, parameters=self._parameters(given))
            IndexRows(tx).update(found.index_id, after)
            fields = {
                "beforeIndexObjJson": self._events.object_json(found.index),
                "afterIndexObjJson": self._events.object_json(after),
            }
            tx.append_event(_index_event(self._events, ALTER_INDEX, after, fields))

        self._store.write(work)

    def drop_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str, deleteData: bool) -> bool:
        """Drop an index with its table, and with `deleteData` that table's data."""
        name = table_named(db_name, tbl_name)

        def work(tx: Transaction) -> list[LeftDirectory]:
            found = _find(tx, name, index_name)
            return remove_index(tx, found, self._tables, self._events, delete_data=bool(deleteData))

        self._tables.delete_directories(self._store.write(work))
        return True

    def get_index_by_name(self, call: Call, db_name: str, tbl_name: str, index_name: str) -> Index:
        name = table_named(db_name, tbl_name)
        return self._store.read(lambda snapshot: _find(snapshot, name, index_name)).index

    def get_indexes(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[Index]:
        """Ordered by name; a table that is not there has none."""
        name = table_named(db_name, tbl_name)

        def work(snapshot: Snapshot) -> list[Index]:
            table = name.find(snapshot)
            return [] if table is None else [stored.index for stored in IndexRows(snapshot).of_table(table.table_id)]

        return self._store.read(work)

    def get_index_names(self, call: Call, db_name: str, tbl_name: str, max_indexes: int) -> list[str]:
        return [index.indexName or "" for index in self.get_indexes(call, db_name, tbl_name, max_indexes)]

    def _stored(self, given: Index) -> Index:
        return msgspec.structs.replace(
            given,
            indexName=normalize(given.indexName or ""),
            indexTableName=None if given.indexTableName is None else normalize(given.indexTableName),
            createTime=self._clock.seconds(),
            lastAccessTime=given.lastAccessTime or 0,
            sd=None if given.sd is None else stored_descriptor(given.sd),
            parameters=self._parameters(given),
            deferredRebuild=bool(given.deferredRebuild),
        )

    def _parameters(self, given: Index) -> dict[str, str]:
        return with_new_ddl_time(without_nulls(given.parameters), self._clock.seconds())


def remove_index(
    tx: Transaction, stored: StoredIndex, tables: IndexTables, events: EventMaker, *, delete_data: bool
) -> list[LeftDirectory]:
    """Remove the index and the table it keeps its entries in; the directories to delete after the commit."""
    table = dropped_table(tx, stored.index)
    IndexRows(tx).delete(stored.index_id)
    directories = [] if table is None else tables.remove(tx, table, delete_data=delete_data)
    tx.append_event(_dropped(events, stored.index))
    return directories


def dropped_table(snapshot: Snapshot, index: Index) -> StoredTable | None:
    """Table that goes with the index. Another one with its name stays: who drops an index may have no right to it."""
    table = _index_table(snapshot, index)
    return table if table is not None and table.table.tableType == TableType.INDEX_TABLE else None


def _index_table(snapshot: Snapshot, index: Index) -> StoredTable | None:
    """Table of the index's entries, in the index's own database unless it names another one."""
    return None if index.indexTableName is None else snapshot.table(*_index_table_name(index, index.indexTableName))


def _index_table_name(index: Index, given: str) -> tuple[str, str]:
    """Database and table that an index's `indexTableName` means."""
    db_name, dot, tbl_name = given.rpartition(".")
    return normalize(db_name if dot else index.dbName or ""), normalize(tbl_name)


def _index_event(events: EventMaker, event_type: str, index: Index, fields: dict[str, Any]) -> Event:
    """An event about an index, filed under the table it is for."""
    db_name = index.dbName or ""
    message = {"db": plain_name(db_name), **fields, "timestamp": events.timestamp()}
    return events.event(event_type, db_name, index.origTableName, message)


def _dropped(events: EventMaker, index: Index) -> Event:
    fields = {
        "indexName": index.indexName,
        "origTableName": index.origTableName,
        "indexTableName": index.indexTableName,
    }
    return _index_event(events, DROP_INDEX, index, fields)


def _base(index: Index) -> TableName:
    return TableName(index.dbName, index.origTableName)


def _check_new(snapshot: Snapshot, index: Index, table: Table | None) -> None:
    """Hive answers some of these as if it had stored them. Raises as `_check_name_free`."""
    _check_name_free(snapshot, index)
    made, name = required(table, "index table"), required(index.indexTableName, "index table name")
    db_name, tbl_name = required(made.dbName, "database name"), required(made.tableName, "table name")
    shown, place = display_name(db_name, tbl_name), (normalize(db_name), normalize(tbl_name))
    if place[0] != normalize(index.dbName or ""):
        raise InvalidObjectException(
            f"Index table {shown} is not in the database of its index; make it in {index.dbName}"
        )
    if _index_table_name(index, name) != place:
        raise InvalidObjectException(
            f"Index table {name} is not the table given with it; name {shown} in indexTableName"
        )
    # Not before: any user could ask for any table of any database.
    if _index_table(snapshot, index) is not None:
        raise InvalidObjectException("Unable to add index because index table already exists")
    required(required(index.sd, "storage descriptor of the index").serdeInfo, "serdeInfo of the index")


def _check_name_free(snapshot: Snapshot, index: Index) -> StoredTable:
    """The table of a new index. Raises AlreadyExistsException, InvalidObjectException, MetaException."""
    base = _base(index).find(snapshot)
    if base is not None and IndexRows(snapshot).find(base.table_id, normalize(index.indexName or "")) is not None:
        raise _taken(index)
    if base is None:
        raise InvalidObjectException("Unable to add index because database or the orginal table do not exist")
    return base


def _taken(index: Index) -> AlreadyExistsException:
    return AlreadyExistsException(f"Index already exists:{java_text(index)}")


def _find(snapshot: Snapshot, name: TableName, index_name: str | None) -> StoredIndex:
    table = name.find(snapshot)
    found = None
    if table is not None:
        found = IndexRows(snapshot).find(table.table_id, normalize(required(index_name, "index name")))
    if found is None:
        shown = "null" if index_name is None else index_name
        raise NoSuchObjectException(f"{name} index={shown} not found")
    return found


def _row(index: Index) -> dict[str, Any]:
    check_text("index table", index.indexTableName)
    return {"index_table_name": index.indexTableName, "extra": encode_extra(index, _EXTRA)}


def _stored_index(row: Row[Any]) -> StoredIndex:
    index = decode_extra(Index, row.extra)
    index.indexName = row.name
    index.dbName = row.db_name
    index.origTableName = row.tbl_name
    index.indexTableName = row.index_table_name
    return StoredIndex(IndexId(row.index_id), index)
