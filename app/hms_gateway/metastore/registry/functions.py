"""Functions: create, read, alter and drop (semantics §2.14)."""

from typing import Any, Final

import msgspec

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import DuplicateKey, Event, Snapshot, Store, StoredDatabase, Transaction
from hms_gateway.metastore.vocabulary.names import InvalidName, check_function_name, display_name, normalize
from hms_gateway.metastore.vocabulary.patterns import parse_pattern
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.recorded_calls import creation_seconds
from hms_gateway.structs import (
    AlreadyExistsException,
    Function,
    FunctionType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)

CREATE_FUNCTION: Final = "CREATE_FUNCTION"
ALTER_FUNCTION: Final = "ALTER_FUNCTION"

_DEFAULTS: Final = Function(ownerType=PrincipalType.USER, functionType=FunctionType.JAVA)


class FunctionService:
    """What the metastore does with functions. Names are as callers spell them, without catalog.

    They are stored in lower case, where Hive keeps the caller's spelling and cannot find them again (semantics §13,
    row 19).
    """

    def __init__(self, store: Store, clock: Clock, events: EventMaker) -> None:
        self._store = store
        self._clock = clock
        self._events = events

    def create(self, function: Function | None) -> None:
        """Raises InvalidObjectException, NoSuchObjectException, AlreadyExistsException, MetaException."""
        given = required(function, "function")
        _check(given)
        created = creation_seconds(given.createTime, self._clock.seconds())

        def work(tx: Transaction) -> None:
            database = _find_database(tx, given.dbName)
            if database is None:
                raise NoSuchObjectException(given.dbName)
            new = _stored(given, database.database.name or "", created)
            tx.functions.insert(database.database_id, new)
            tx.append_event(self._created(new))

        try:
            with unstorable_as_meta():
                self._store.write(work)
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Function {given.functionName} already exists") from error

    def alter(self, db_name: str | None, name: str | None, function: Function | None) -> None:
        """Replace name, database, class and owner; resources and creation time stay as they are (semantics §2.14).

        A type of owner or function that is not sent stays, too. Raises InvalidObjectException, MetaException.
        """
        db_key, key = _keys(db_name, name)
        given = required(function, "function")
        _check(given)

        def work(tx: Transaction) -> None:
            found = tx.functions.find(db_key, key)
            if found is None:
                raise MetaException(f"function {name} doesn't exist")
            database = _find_database(tx, given.dbName)
            if database is None:
                raise InvalidObjectException(given.dbName)
            new = _stored(given, database.database.name or "", found.function.createTime, found.function)
            new = msgspec.structs.replace(new, resourceUris=found.function.resourceUris)
            tx.functions.update(found.function_id, database.database_id, new)
            tx.append_event(self._altered(found.function, new))

        try:
            with unstorable_as_meta():
                self._store.write(work)
        except DuplicateKey as error:
            raise MetaException(f"Function {given.functionName} already exists") from error

    def drop(self, db_name: str | None, name: str | None) -> None:
        """Raises NoSuchObjectException, MetaException."""
        db_key, key = _keys(db_name, name)

        def work(tx: Transaction) -> None:
            found = tx.functions.find(db_key, key)
            if found is None:
                raise NoSuchObjectException(f"Function {name} does not exist")
            tx.functions.delete(found.function_id)
            tx.append_event(self._events.drop_function(found.function))

        self._store.write(work)

    def get(self, db_name: str | None, name: str | None) -> Function:
        """Raises NoSuchObjectException with the text Spark looks for (clients §11.1), MetaException."""
        db_key, key = _keys(db_name, name)
        found = self._store.read(lambda snapshot: snapshot.functions.find(db_key, key))
        if found is None:
            raise NoSuchObjectException(f"Function {display_name(db_name, name)} does not exist")
        return found.function

    def names(self, db_name: str | None, pattern: str | None) -> list[str]:
        """Sorted; all of the database without a pattern. An unknown database has none. Raises MetaException."""
        db_key = normalize(required(db_name, "database name"))
        parsed = None if pattern is None else parse_pattern(pattern)
        return self._store.read(lambda snapshot: snapshot.functions.names(db_key, parsed))

    def objects(self, db_name: str | None, pattern: str | None) -> list[Function]:
        """As `names`, but whole functions."""
        db_key = normalize(required(db_name, "database name"))
        parsed = None if pattern is None else parse_pattern(pattern)
        return self._store.read(lambda snapshot: snapshot.functions.objects(db_key, parsed))

    def all(self) -> list[Function]:
        """Every function, ordered by database and name."""
        return self._store.read(lambda snapshot: snapshot.functions.objects())

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
        return self._events.event(event_type, db_name, None, {"db": db_name, **fields})


def _keys(db_name: str | None, name: str | None) -> tuple[str, str]:
    return normalize(required(db_name, "database name")), normalize(required(name, "function name"))


def _find_database(snapshot: Snapshot, name: str | None) -> StoredDatabase | None:
    return snapshot.database(normalize(required(name, "database name")))


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
