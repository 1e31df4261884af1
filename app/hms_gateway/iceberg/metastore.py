"""Calls of the metastore by the REST catalog: the methods that Thrift clients call, with their rights and events."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hms_gateway.iceberg.errors import IcebergError, bad_request, commit_failed
from hms_gateway.iceberg.rows import VIEW, kind_of
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.call import Call, Waiting
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    GetTableRequest,
    NoSuchObjectException,
    Table,
    ThriftException,
    UnknownDBException,
)
from hms_gateway.rpc.structs.catalogs import catalog_prefix
from hms_gateway.txn.rules.locks import LockedByAnother

# A commit of Iceberg's HiveCatalog holds its lock for less than this.
_LOCKED_SECONDS_MAX: Final = 10.0
_LOCKED_PAUSE_SECONDS: Final = 0.1
_DENIED = "Permission denied"
Perform = Callable[..., Any]
"""`Processor.perform`."""


class Name(NamedTuple):
    """A table or view by its namespace. `key` is the database's within the metastore (rpc.structs.catalogs)."""

    catalog: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return database_key(self.catalog, self.namespace)

    @property
    def stored(self) -> tuple[str, str]:
        """The database's key and the name as rows have them."""
        return database_key(self.catalog, normalize(self.namespace)), normalize(self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


def database_key(catalog: str, namespace: str) -> str:
    return f"{catalog_prefix(catalog)}{namespace}"


class Metastore:
    """The methods that the catalog needs, for one call. Raises IcebergError, and what passes through handlers."""

    def __init__(self, perform: Perform, call: Call) -> None:
        self._perform = perform
        self.call = call

    def perform(self, method: str, handler: Callable[..., Any] | None = None, /, **arguments: Any) -> Any:
        try:
            return self._perform(self.call, method, handler, **arguments)
        except ThriftException as error:
            raise translated(error) from error

    def database(self, catalog: str, namespace: str) -> Database:
        """Raises IcebergError for a namespace that is missing or hidden."""
        try:
            found: Database = self._perform(self.call, "get_database", None, name=database_key(catalog, namespace))
        except NoSuchObjectException:
            raise no_namespace(namespace) from None
        except ThriftException as error:
            raise translated(error) from error
        return found

    def row(self, name: Name) -> Table | None:
        """The table or view, Iceberg's or not; None where there is none that the caller sees."""
        request = GetTableRequest(dbName=name.key, tblName=name.name)
        try:
            found: Table = self._perform(self.call, "get_table_req", None, req=request).table
        except NoSuchObjectException:
            return None
        except ThriftException as error:
            raise translated(error) from error
        return found

    def row_of(self, name: Name, kind: str) -> Table:
        """The row of an Iceberg table or view. Raises IcebergError for a missing one, and for one of another kind."""
        found = self.row(name)
        if found is None or kind_of(found) != kind:
            raise missing(name, kind, found)
        return found


def no_namespace(namespace: str) -> IcebergError:
    return IcebergError("NoSuchNamespaceException", f"Namespace does not exist: {namespace}")


def missing(name: Name, kind: str, found: Table | None = None) -> IcebergError:
    """For a table or view that is not there as one of Iceberg's."""
    word = _word(kind)
    error = f"NoSuch{word}Exception"
    if found is None:
        return IcebergError(error, f"{word} does not exist: {name}")
    other = {"": "a table of Hive, which the metastore's Thrift interface serves", VIEW: "a view"}
    is_what = other.get(kind_of(found), "a table")
    return IcebergError(error, f"{word} does not exist: {name}; the name is that of {is_what}")


def exists_already(name: Name, kind: str, found: Table | None = None) -> IcebergError:
    """For a table or view to be made at a name that is taken, in the words that Iceberg's compatibility kit expects."""
    other = "" if found is None or (kind_of(found) == VIEW) == (kind == VIEW) else " with same name"
    return IcebergError(
        "AlreadyExistsException", f"{_word(kind_of(found) if found else kind)}{other} already exists: {name}"
    )


def cannot_rename(source: Name, target: Name, found: Table) -> IcebergError:
    text = f"Cannot rename {source} to {target}. {_word(kind_of(found))} already exists"
    return IcebergError("AlreadyExistsException", text)


def _word(kind: str) -> str:
    return "View" if kind == VIEW else "Table"


def when_locked(call: Call, error: LockedByAnother) -> Waiting | IcebergError:
    """The failure of a commit that a lock stops: 409 for a call that has waited for ten seconds."""
    if call.waited_seconds < _LOCKED_SECONDS_MAX:
        return Waiting(_LOCKED_PAUSE_SECONDS)
    return commit_failed(error.message or "")


def translated(error: ThriftException) -> IcebergError:
    """A refusal of the metastore in Iceberg's error model."""
    text = error.message or type(error).__name__
    # Implicit locks say it in an exception that methods declare.
    if isinstance(error, LockedByAnother) or isinstance(error.__cause__, LockedByAnother):
        return commit_failed(text)
    if text.startswith(_DENIED):
        return IcebergError("ForbiddenException", text)
    if isinstance(error, AlreadyExistsException) or text.endswith("already exists"):
        return IcebergError("AlreadyExistsException", text)
    if isinstance(error, (NoSuchObjectException, UnknownDBException)):
        return IcebergError("NotFoundException", text)
    return bad_request(text)
