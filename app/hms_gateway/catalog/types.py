"""Types by name, and the fields of tables."""

from typing import Final

import msgspec
from sqlalchemy import delete, insert, select

from hms_gateway.catalog.arguments import table_in, table_named
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import DuplicateKey, Store
from hms_gateway.metastore.vocabulary.names import InvalidName, check_type_name, trim
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    EnvironmentContext,
    FieldSchema,
    GetFieldsRequest,
    GetFieldsResponse,
    GetSchemaRequest,
    GetSchemaResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Table,
    Type,
    UnknownTableException,
)
from hms_gateway.storage.schema.catalog import TYPES
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows, check_name, is_storable

# Types of the old type registry, which no client uses (semantics §2.4).


_EXTRA: Final = names_except(Type, "name")


class TypeRows(AggregateRows):
    def find(self, name: str) -> Type | None:
        if not is_storable(name):
            return None
        row = self._connection.execute(select(TYPES).where(TYPES.c.name == name)).first()
        if row is None:
            return None
        found = decode_extra(Type, row.extra)
        found.name = row.name
        return found

    def insert(self, new: Type) -> None:
        """Raises DuplicateKey."""
        name = new.name or ""
        check_name("type", name, self._dialect)
        if self.find(name) is not None:
            raise DuplicateKey(name)
        self._connection.execute(insert(TYPES).values(name=name, extra=encode_extra(new, _EXTRA)))

    def delete(self, name: str) -> None:
        """A missing one is ignored."""
        if is_storable(name):
            self._connection.execute(delete(TYPES).where(TYPES.c.name == name))


class Types:
    """Methods on types by name. Case counts, other than with everything else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_type(self, call: Call, name: str) -> Type:
        key = trim(required(name, "type name"))
        found = self._store.read(lambda snapshot: TypeRows(snapshot).find(key))
        if found is None:
            raise NoSuchObjectException(f'Type "{name}" not found.')
        return found

    def create_type(self, call: Call, type: Type) -> bool:
        new = required(type, "type")
        if new.fields is None:
            new = msgspec.structs.replace(new, fields=[])
        try:
            check_type_name(required(new.name, "type name"))
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        try:
            with unstorable_as_meta():
                self._store.write(lambda tx: TypeRows(tx).insert(new))
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Type {new.name} already exists") from error
        return True

    def drop_type(self, call: Call, type: str) -> bool:
        """True whether it was there or not."""
        key = trim(required(type, "type name"))
        self._store.write(lambda tx: TypeRows(tx).delete(key))
        return True

    def get_type_all(self, call: Call, name: str) -> dict[str, Type]:
        raise MetaException("Not yet implemented")


# The columns of a table, as get_fields and get_schema answer them (semantics §2.5).


class Fields:
    """Hive asks some serde classes for the columns; here they are always those that are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_fields(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        return _columns(self._table(table_named(db_name, table_name)))

    def get_fields_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_fields(call, db_name, table_name)

    def get_fields_req(self, call: Call, req: GetFieldsRequest) -> GetFieldsResponse:
        request = required(req, "req")
        return GetFieldsResponse(_columns(self._table(table_in(request.catName, request.dbName, request.tblName))))

    def get_schema(self, call: Call, db_name: str, table_name: str) -> list[FieldSchema]:
        """Columns, and partition keys behind them."""
        return _columns_and_keys(self._table(table_named(db_name, table_name)))

    def get_schema_with_environment_context(
        self, call: Call, db_name: str, table_name: str, environment_context: EnvironmentContext
    ) -> list[FieldSchema]:
        return self.get_schema(call, db_name, table_name)

    def get_schema_req(self, call: Call, req: GetSchemaRequest) -> GetSchemaResponse:
        request = required(req, "req")
        table = self._table(table_in(request.catName, request.dbName, request.tblName))
        return GetSchemaResponse(_columns_and_keys(table))

    def _table(self, name: TableName) -> Table:
        # Callers may ask for `table.column`.
        tbl_name = required(name.tbl_name, "table name").partition(".")[0]
        try:
            return self._store.read(TableName(name.db_name, tbl_name).load).table
        except NoSuchObjectException as error:
            raise UnknownTableException(error.message) from error


def _columns(table: Table) -> list[FieldSchema]:
    return (table.sd.cols if table.sd else None) or []


def _columns_and_keys(table: Table) -> list[FieldSchema]:
    return [*_columns(table), *(table.partitionKeys or [])]
