"""Indexes of 2.3: rows beside their table, each with a table of its own for the entries (semantics §2.17)."""

from typing import Final

import msgspec

from hms_gateway.catalog.tables.index_drops import index_event, index_table, index_table_name, remove_index
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import stored_descriptor
from hms_gateway.metastore.ports.objects import StoredIndex
from hms_gateway.metastore.ports.store import DuplicateKey, Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import display_name, normalize
from hms_gateway.metastore.vocabulary.parameters import with_new_ddl_time, without_nulls
from hms_gateway.metastore.vocabulary.texts import java_text
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import (
    AlreadyExistsException,
    Index,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Table,
)

CREATE_INDEX: Final = "CREATE_INDEX"
ALTER_INDEX: Final = "ALTER_INDEX"


class IndexService:
    """What the metastore does with indexes. Names are as callers spell them, without catalog."""

    def __init__(self, store: Store, clock: Clock, events: EventMaker, tables: TableService) -> None:
        self._store = store
        self._clock = clock
        self._events = events
        self._tables = tables

    def add(self, index: Index | None, table: Table | None) -> Index:
        """Store the index and make its table.

        Raises AlreadyExistsException, InvalidObjectException, MetaException.
        """
        given = required(index, "index")
        required(given.indexName, "index name")
        self._store.read(lambda snapshot: _check_new(snapshot, given, table))
        new = self._stored(given)

        def insert(tx: Transaction) -> None:
            base = _check_name_free(tx, given)
            tx.indexes.insert(base.table_id, new)
            stored = tx.indexes.find(base.table_id, new.indexName or "")
            assert stored is not None
            fields = {"indexObjJson": self._events.object_json(stored.index)}
            tx.append_event(index_event(self._events, CREATE_INDEX, stored.index, fields))

        try:
            with unstorable_as_meta():
                self._tables.create(table, on_insert=insert)
        except DuplicateKey as error:
            raise _taken(given) from error
        # The name comes back as it was sent, as in Hive.
        return msgspec.structs.replace(self.get(_base(given), new.indexName), indexName=given.indexName)

    def alter(self, name: TableName, index_name: str | None, index: Index | None) -> None:
        """Replace the parameters, nothing else. Raises MetaException."""
        given = required(index, "index")

        def work(tx: Transaction) -> None:
            try:
                found = _find(tx, name, index_name)
            except NoSuchObjectException as error:
                raise MetaException(f"NoSuchObjectException(message:{error.message})") from error
            after = msgspec.structs.replace(found.index, parameters=self._parameters(given))
            tx.indexes.update(found.index_id, after)
            fields = {
                "beforeIndexObjJson": self._events.object_json(found.index),
                "afterIndexObjJson": self._events.object_json(after),
            }
            tx.append_event(index_event(self._events, ALTER_INDEX, after, fields))

        self._store.write(work)

    def drop(self, name: TableName, index_name: str | None, delete_data: bool) -> None:
        """With its table, and with `delete_data` that table's data. Raises NoSuchObjectException, MetaException."""

        def work(tx: Transaction) -> list[str]:
            found = _find(tx, name, index_name)
            return remove_index(tx, found, self._tables, self._events, delete_data=delete_data)

        self._tables.delete_directories(self._store.write(work))

    def get(self, name: TableName, index_name: str | None) -> Index:
        """Raises NoSuchObjectException `db.t index=i not found`, MetaException."""
        return self._store.read(lambda snapshot: _find(snapshot, name, index_name)).index

    def of_table(self, name: TableName) -> list[Index]:
        """Ordered by name; a table that is not there has none. Raises MetaException."""

        def work(snapshot: Snapshot) -> list[Index]:
            table = name.find(snapshot)
            return [] if table is None else [stored.index for stored in snapshot.indexes.of_table(table.table_id)]

        return self._store.read(work)

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
    if index_table_name(index, name) != place:
        raise InvalidObjectException(
            f"Index table {name} is not the table given with it; name {shown} in indexTableName"
        )
    # Not before: any user could ask for any table of any database.
    if index_table(snapshot, index) is not None:
        raise InvalidObjectException("Unable to add index because index table already exists")
    required(required(index.sd, "storage descriptor of the index").serdeInfo, "serdeInfo of the index")


def _check_name_free(snapshot: Snapshot, index: Index) -> StoredTable:
    """The table of a new index. Raises AlreadyExistsException, InvalidObjectException, MetaException."""
    base = _base(index).find(snapshot)
    if base is not None and snapshot.indexes.find(base.table_id, normalize(index.indexName or "")) is not None:
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
        found = snapshot.indexes.find(table.table_id, normalize(required(index_name, "index name")))
    if found is None:
        shown = "null" if index_name is None else index_name
        raise NoSuchObjectException(f"{name} index={shown} not found")
    return found
