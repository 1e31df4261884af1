"""Functions as rows."""

from typing import Any, Final

from sqlalchemy import Row, Select, bindparam, delete, insert, select, update

from hms_gateway.metastore.ports.objects import StoredFunction
from hms_gateway.metastore.ports.store import DuplicateKey
from hms_gateway.metastore.vocabulary.ids import DatabaseId, FunctionId
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS
from hms_gateway.storage.sql.filter_sql import matches_pattern
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import Repository, check_name, is_storable
from hms_gateway.structs import Function

_EXTRA: Final = names_except(Function, "functionName", "dbName", "catName")

_ROWS = select(FUNCTIONS, DATABASES.c.name.label("db_name")).join(
    DATABASES, DATABASES.c.database_id == FUNCTIONS.c.database_id
)
_BY_NAME = _ROWS.where(DATABASES.c.name == bindparam("db_name"), FUNCTIONS.c.name == bindparam("name"))


class FunctionRepository(Repository):
    """`object_ports.FunctionWrites`."""

    def find(self, db_name: str, name: str) -> StoredFunction | None:
        if not (is_storable(db_name) and is_storable(name)):
            return None
        row = self._connection.execute(_BY_NAME, {"db_name": db_name, "name": name}).first()
        return None if row is None else StoredFunction(FunctionId(row.function_id), _function(row))

    def names(self, db_name: str, pattern: Pattern | None = None) -> list[str]:
        if not is_storable(db_name):
            return []
        statement = (
            select(FUNCTIONS.c.name)
            .join(DATABASES, DATABASES.c.database_id == FUNCTIONS.c.database_id)
            .where(DATABASES.c.name == db_name)
            .order_by(FUNCTIONS.c.name)
        )
        return list(self._connection.execute(self._matching(statement, pattern)).scalars())

    def objects(self, db_name: str | None = None, pattern: Pattern | None = None) -> list[Function]:
        if db_name is not None and not is_storable(db_name):
            return []
        statement = _ROWS.order_by(DATABASES.c.name, FUNCTIONS.c.name)
        if db_name is not None:
            statement = statement.where(DATABASES.c.name == db_name)
        return [_function(row) for row in self._connection.execute(self._matching(statement, pattern))]

    def insert(self, database_id: DatabaseId, function: Function) -> None:
        self._check_free(database_id, function.functionName or "", except_for=None)
        self._connection.execute(insert(FUNCTIONS).values({**_row(function), "database_id": database_id}))

    def update(self, function_id: FunctionId, database_id: DatabaseId, function: Function) -> None:
        self._check_free(database_id, function.functionName or "", except_for=function_id)
        row = {**_row(function), "database_id": database_id}
        self._connection.execute(update(FUNCTIONS).where(FUNCTIONS.c.function_id == function_id).values(row))

    def delete(self, function_id: FunctionId) -> None:
        self._connection.execute(delete(FUNCTIONS).where(FUNCTIONS.c.function_id == function_id))

    def _matching(self, statement: Select[Any], pattern: Pattern | None) -> Select[Any]:
        condition = matches_pattern(FUNCTIONS.c.name, pattern, self._dialect)
        return statement if condition is None else statement.where(condition)

    def _check_free(self, database_id: DatabaseId, name: str, except_for: FunctionId | None) -> None:
        check_name("function", name, self._dialect)
        statement = select(FUNCTIONS.c.function_id).where(
            FUNCTIONS.c.database_id == database_id, FUNCTIONS.c.name == name
        )
        if self._connection.execute(statement).scalar() not in (None, except_for):
            raise DuplicateKey(name)


def _row(function: Function) -> dict[str, object]:
    return {"name": function.functionName, "extra": encode_extra(function, _EXTRA)}


def _function(row: Row[Any]) -> Function:
    function = decode_extra(Function, row.extra)
    function.functionName = row.name
    function.dbName = row.db_name
    return function
