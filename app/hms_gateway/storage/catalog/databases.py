"""Databases as rows; partitions whose table is dropped already, deleted some at a time.

The latter only where a database takes long for it (`Dialect.deleted_with_table_max`). Nothing finds them meanwhile:
partitions are asked for by the ids of tables, which are not given again.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.store import DatabaseId, DuplicateKey, StoredDatabase
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.rpc.structs import Database
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.catalog import (
    DATABASES,
    DESCRIPTORS,
    DROPPED_TABLES,
    FURTHER_KEYS,
    PARTITIONS,
)
from hms_gateway.storage.sql.filter_sql import has_id_among, in_catalog, of_default_catalog
from hms_gateway.storage.sql.fragments import DATABASE_EXTRA, decode_extra, decode_map, encode_extra, encode_map
from hms_gateway.storage.sql.repository import Repository, check_name, check_text, is_storable

DATABASE_BY_NAME: Final = select(DATABASES).where(DATABASES.c.name == bindparam("db_name"))
_DatabaseRow: Final = namedtuple("_DatabaseRow", DATABASES.c.keys())  # type: ignore[misc]


def database_statement(name: str) -> Statement:
    return Statement(DATABASE_BY_NAME, {"db_name": name})


def found_database(rows: Rows) -> StoredDatabase | None:
    return stored_database(rows[0]) if rows else None


_NAMES: Final = select(DATABASES.c.name).order_by(DATABASES.c.name)
# What every client lists first: making the statement takes as long as running it.
_NAMES_OF_DEFAULT: Final = _NAMES.where(of_default_catalog(DATABASES.c.name))


class DatabaseReads(Repository):
    # Those that were read ahead, None for no such database.
    _foreseen_databases: Mapping[str, StoredDatabase | None] = MappingProxyType({})

    def database(self, name: str) -> StoredDatabase | None:
        if name in self._foreseen_databases:
            return self._foreseen_databases[name]
        if not is_storable(name):
            return None
        return found_database(self._run_together([database_statement(name)])[0])

    def database_names(self, pattern: Pattern | None = None, prefix: str | None = None) -> list[str]:
        if prefix == "" and pattern is None:
            return list(self._connection.execute(_NAMES_OF_DEFAULT).scalars())
        statement = _NAMES.where(*in_catalog(DATABASES.c.name, prefix, pattern, self._dialect))
        return list(self._connection.execute(statement).scalars())


class DatabaseWrites(DatabaseReads):
    def insert_database(self, database: Database) -> DatabaseId:
        self._check_free(database.name or "", except_for=None)
        return DatabaseId(self._inserted_id(insert(DATABASES).values(_row(database))))

    def update_database(self, database_id: DatabaseId, database: Database) -> None:
        self._check_free(database.name or "", except_for=database_id)
        self._connection.execute(update(DATABASES).where(DATABASES.c.database_id == database_id).values(_row(database)))

    def delete_dropped(self, table_id: int) -> None:
        """Delete the next partitions of a dropped table, with the last ones everything else that it has left."""
        of_table = PARTITIONS.c.table_id == table_id
        next_ones = select(PARTITIONS.c.partition_id).where(of_table).order_by(PARTITIONS.c.part_name).limit(PIECE_ROWS)
        ids = self._connection.scalars(next_ones).all()
        for table in (FURTHER_KEYS, PARTITIONS):
            self._connection.execute(delete(table).where(has_id_among(table.c.partition_id, ids, self._dialect)))
        if len(ids) < PIECE_ROWS:
            for table in (DESCRIPTORS, DROPPED_TABLES):
                self._connection.execute(delete(table).where(table.c.table_id == table_id))

    def _check_free(self, name: str, except_for: DatabaseId | None) -> None:
        check_name("database", name, self._dialect)
        found = self._connection.execute(select(DATABASES.c.database_id).where(DATABASES.c.name == name)).scalar()
        if found not in (None, except_for):
            raise DuplicateKey(name)


def _row(database: Database) -> dict[str, object]:
    for text in (database.description, database.locationUri, database.ownerName):
        check_text(f"a text of database {database.name}:", text)
    return {
        "name": database.name,
        "description": database.description,
        "location": database.locationUri,
        "owner_name": database.ownerName,
        "owner_type": database.ownerType,
        "parameters": None if database.parameters is None else encode_map(database.parameters),
        "create_time": database.createTime,
        "extra": encode_extra(database, DATABASE_EXTRA),
    }


def stored_database(values: Sequence[Any]) -> StoredDatabase:
    """From a row of DATABASES."""
    row: Any = _DatabaseRow._make(values)
    database = decode_extra(Database, row.extra)
    database.name = row.name
    database.description = row.description
    database.locationUri = row.location
    database.parameters = None if row.parameters is None else decode_map(row.parameters)
    database.ownerName = row.owner_name
    database.ownerType = row.owner_type
    database.createTime = row.create_time
    return StoredDatabase(DatabaseId(row.database_id), database)


PIECE_ROWS: Final = 1_000


def first_dropped(connection: Connection) -> int | None:
    """The id of a table whose partitions are still to be deleted."""
    return connection.execute(select(DROPPED_TABLES.c.table_id).order_by(DROPPED_TABLES.c.table_id).limit(1)).scalar()
