"""Functions: create, read, alter and drop (semantics §2.14)."""

from typing import Any, Final

import msgspec
from sqlalchemy import Row, Select, bindparam, delete, insert, select, update

from hms_gateway.catalog.arguments import database_name, in_catalog, is_newer, with_fields, with_plain_name
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import DuplicateKey, Event, Snapshot, Store, StoredDatabase, Transaction
from hms_gateway.metastore.vocabulary.names import (
    DatabaseId,
    FunctionId,
    InvalidName,
    check_function_name,
    display_name,
    normalize,
)
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_pattern
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Function,
    FunctionType,
    GetAllFunctionsResponse,
    GetFunctionsRequest,
    GetFunctionsResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, plain_name, prefix_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import creation_seconds
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS
from hms_gateway.storage.sql.filter_sql import matches_pattern
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows, check_name, is_storable

CREATE_FUNCTION: Final = "CREATE_FUNCTION"
ALTER_FUNCTION: Final = "ALTER_FUNCTION"

_DEFAULTS: Final = Function(ownerType=PrincipalType.USER, functionType=FunctionType.JAVA)
_EXTRA: Final = names_except(Function, "functionName", "dbName", "catName")

_ROWS = select(FUNCTIONS, DATABASES.c.name.label("db_name")).join(
    DATABASES, DATABASES.c.database_id == FUNCTIONS.c.database_id
)
_BY_NAME = _ROWS.where(DATABASES.c.name == bindparam("db_name"), FUNCTIONS.c.name == bindparam("name"))


class StoredFunction(msgspec.Struct, frozen=True):
    """A function as get_function returns it, and its id."""

    function_id: FunctionId
    function: Function


class FunctionRows(AggregateRows):
    """Names are lower-cased by the caller."""

    def find(self, db_name: str, name: str) -> StoredFunction | None:
        if not (is_storable(db_name) and is_storable(name)):
            return None
        row = self._connection.execute(_BY_NAME, {"db_name": db_name, "name": name}).first()
        return None if row is None else StoredFunction(FunctionId(row.function_id), _function(row))

    def objects(self, db_name: str | None = None, pattern: Pattern | None = None) -> list[Function]:
        """Functions of one database or of all, ordered by database and name in byte order."""
        if db_name is not None and not is_storable(db_name):
            return []
        statement = _ROWS.order_by(DATABASES.c.name, FUNCTIONS.c.name)
        if db_name is not None:
            statement = statement.where(DATABASES.c.name == db_name)
        return [_function(row) for row in self._connection.execute(self._matching(statement, pattern))]

    def names(self, db_name: str, pattern: Pattern | None = None) -> list[str]:
        """Sorted in byte order; an unknown database has none."""
        if not is_storable(db_name):
            return []
        statement = (
            select(FUNCTIONS.c.name)
            .join(DATABASES, DATABASES.c.database_id == FUNCTIONS.c.database_id)
            .where(DATABASES.c.name == db_name)
            .order_by(FUNCTIONS.c.name)
        )
        return list(self._connection.execute(self._matching(statement, pattern)).scalars())

    def insert(self, database_id: DatabaseId, function: Function) -> None:
        """Raises DuplicateKey."""
        self._check_free(database_id, function.functionName or "", except_for=None)
        self._connection.execute(insert(FUNCTIONS).values({**_row(function), "database_id": database_id}))

    def update(self, function_id: FunctionId, database_id: DatabaseId, function: Function) -> None:
        """Replace everything. Raises DuplicateKey for a taken name."""
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


class Functions:
    """Methods on functions.

    Names are stored in lower case, where Hive keeps the caller's spelling and cannot find them again (semantics §13,
    row 19).
    """

    def __init__(self, store: Store, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self._clock = clock
        self._events = events

    def create_function(self, call: Call, func: Function) -> None:
        given = required(with_plain_name(func), "function")
        _check(given)
        created = creation_seconds(given.createTime, self._clock.seconds())

        def work(tx: Transaction) -> None:
            database = _find_database(tx, given.dbName)
            if database is None:
                raise NoSuchObjectException(given.dbName)
            new = _stored(given, database.database.name or "", created)
            FunctionRows(tx).insert(database.database_id, new)
            tx.append_event(self._created(new))

        try:
            with unstorable_as_meta():
                self._store.write(work)
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Function {given.functionName} already exists") from error

    def drop_function(self, call: Call, dbName: str, funcName: str) -> None:
        db_key, key = _keys(database_name(dbName), funcName)

        def work(tx: Transaction) -> None:
            rows = FunctionRows(tx)
            found = rows.find(db_key, key)
            if found is None:
                raise NoSuchObjectException(f"Function {funcName} does not exist")
            rows.delete(found.function_id)
            tx.append_event(self._events.drop_function(found.function))

        self._store.write(work)

    def alter_function(self, call: Call, dbName: str, funcName: str, newFunc: Function) -> None:
        """Replace name, database, class and owner; resources and creation time stay as they are (semantics §2.14).

        A type of owner or function that is not sent stays, too.
        """
        db_name, function = database_name(dbName), with_plain_name(newFunc)
        db_key, key = _keys(db_name, funcName)
        given = required(function, "function")
        _check(given)

        def work(tx: Transaction) -> None:
            rows = FunctionRows(tx)
            found = rows.find(db_key, key)
            if found is None:
                raise MetaException(f"function {funcName} doesn't exist")
            database = _find_database(tx, given.dbName)
            if database is None:
                raise InvalidObjectException(given.dbName)
            new = _stored(given, database.database.name or "", found.function.createTime, found.function)
            new = msgspec.structs.replace(new, resourceUris=found.function.resourceUris)
            rows.update(found.function_id, database.database_id, new)
            tx.append_event(self._altered(found.function, new))

        try:
            with unstorable_as_meta():
                self._store.write(work)
        except DuplicateKey as error:
            raise MetaException(f"Function {given.functionName} already exists") from error

    def get_functions(self, call: Call, dbName: str, pattern: str) -> list[str]:
        """Sorted; all of the database without a pattern. An unknown database has none."""
        return self._names(database_name(dbName), pattern)

    def get_functions_req(self, call: Call, request: GetFunctionsRequest) -> GetFunctionsResponse:
        """`returnNames` is on unless the caller turns it off."""
        request = required(request, "request")
        db_name = in_catalog(request.catalogName, request.dbName)
        if request.returnNames is None or request.returnNames:
            return GetFunctionsResponse(function_names=self._names(db_name, request.pattern))
        db_key, parsed = _selection(db_name, request.pattern)
        found = self._store.read(lambda snapshot: FunctionRows(snapshot).objects(db_key, parsed))
        return GetFunctionsResponse(functions=[_in_default_catalog(function) for function in found])

    def get_function(self, call: Call, dbName: str, funcName: str) -> Function:
        """Raises NoSuchObjectException with the text Spark looks for (clients §11.1)."""
        db_key, key = _keys(database_name(dbName), funcName)
        found = self._store.read(lambda snapshot: FunctionRows(snapshot).find(db_key, key))
        if found is None:
            shown = display_name(database_name(dbName), funcName)
            raise NoSuchObjectException(f"Function {shown} does not exist")
        return _in_default_catalog(found.function) if is_newer(call, dbName) else found.function

    def get_all_functions(self, call: Call) -> GetAllFunctionsResponse:
        """Functions of the default catalog, as in Hive."""
        every = self._store.read(lambda snapshot: FunctionRows(snapshot).objects())
        found = [one for one in every if not prefix_of(one.dbName)]
        return GetAllFunctionsResponse([_in_default_catalog(one) for one in found] if is_newer(call) else found)

    def _names(self, db_name: str | None, pattern: str | None) -> list[str]:
        db_key, parsed = _selection(db_name, pattern)
        return self._store.read(lambda snapshot: FunctionRows(snapshot).names(db_key, parsed))

    def _created(self, function: Function) -> Event:
        fields = {"functionObjJson": self._events.object_json(function), "timestamp": self._events.timestamp()}
        return self._event(CREATE_FUNCTION, function, fields)

    def _altered(self, before: Function, after: Function) -> Event:
        """Hive writes no event for it; without one no cache would notice the change (design D7)."""
        fields = {
            "functionObjBeforeJson": self._events.object_json(before),
            "functionObjAfterJson": self._events.object_json(after),
            "timestamp": self._events.timestamp(),
        }
        event = self._event(ALTER_FUNCTION, after, fields)
        if before.dbName == after.dbName:
            return event
        # What followers of the log need to know is the database it left.
        return msgspec.structs.replace(event, renamed_from=(before.dbName or "", ""))

    def _event(self, event_type: str, function: Function, fields: dict[str, Any]) -> Event:
        db_name = function.dbName or ""
        return self._events.event(event_type, db_name, None, {"db": plain_name(db_name), **fields})


def _keys(db_name: str | None, name: str | None) -> tuple[str, str]:
    return normalize(required(db_name, "database name")), normalize(required(name, "function name"))


def _selection(db_name: str | None, pattern: str | None) -> tuple[str, Pattern | None]:
    return normalize(required(db_name, "database name")), None if pattern is None else parse_pattern(pattern)


def _find_database(snapshot: Snapshot, name: str | None) -> StoredDatabase | None:
    return snapshot.database(normalize(required(name, "database name")))


def _in_default_catalog(function: Function) -> Function:
    return with_fields(function, catName=DEFAULT_CATALOG)


def _check(function: Function) -> None:
    try:
        check_function_name(required(function.functionName, "function name"))
    except InvalidName as error:
        raise InvalidObjectException(str(error)) from error
    if function.className is None:
        raise InvalidObjectException("Function class name cannot be null")
    required(function.dbName, "database name")
    for resource in function.resourceUris or []:
        required(required(resource, "resource").resourceType, "resource type")


def _stored(given: Function, db_name: str, create_time: int | None, before: Function = _DEFAULTS) -> Function:
    """The row of a function; what `before` says counts where nothing is sent."""
    return msgspec.structs.replace(
        given,
        functionName=normalize(given.functionName or ""),
        dbName=db_name,
        ownerType=before.ownerType if given.ownerType is None else given.ownerType,
        createTime=create_time,
        functionType=before.functionType if given.functionType is None else given.functionType,
        resourceUris=given.resourceUris or [],
        catName=None,
    )


def _row(function: Function) -> dict[str, object]:
    return {"name": function.functionName, "extra": encode_extra(function, _EXTRA)}


def _function(row: Row[Any]) -> Function:
    function = decode_extra(Function, row.extra)
    function.functionName = row.name
    function.dbName = row.db_name
    return function
