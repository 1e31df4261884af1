"""Calls about another catalog than `hive`, made of calls that know of none; answers as if there were no other."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from hms_gateway.rpc.structs import METHODS, GetAllFunctionsResponse, GetValidWriteIdsResponse
from hms_gateway.rpc.structs.catalogs import (
    DEFAULT_CATALOG,
    catalog_prefix,
    key_within,
    place,
    seen_from,
    without_catalog,
)
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType

Call = Callable[..., Any]
# Arguments that name a database, or a pattern of them, by another word.
_DATABASE_OF: Final[Mapping[str, str]] = {
    "get_database": "name",
    "drop_database": "name",
    "get_databases": "pattern",
    "get_table_meta": "db_patterns",
}


def call_in_catalog(call: Call, catalog: str, name: str, arguments: Any) -> Any:
    """The answer of a method about a catalog, empty for the default one; `call` takes the method and its arguments.

    Without the write ids of transactional tables, which Hive's requests name without a catalog.
    """
    special = _SPECIAL.get(name)
    if catalog and special is not None:
        return special(call, catalog, arguments)
    return _asked(call, catalog, name, arguments)


def catalog_named(text: str) -> str:
    """The catalog that an option names, empty for the default one."""
    return "" if text.strip().lower() == DEFAULT_CATALOG else text.strip().lower()


def lack_of_catalog(call: Call, catalog: str) -> str | None:
    """Problem with a catalog at a metastore; None where it has the catalog."""
    try:
        names: list[str] = call("get_catalogs").names or []
    except ApplicationError as error:
        if error.type is not ApplicationErrorType.UNKNOWN_METHOD:
            raise
        return f"catalog {catalog} cannot be there: the metastore has no catalogs, which came with Hive 3.1"
    return None if catalog in names else f"catalog {catalog} does not exist; the metastore has {', '.join(names)}"


def _asked(call: Call, catalog: str, name: str, arguments: Any) -> Any:
    place(METHODS[name], arguments, catalog, _DATABASE_OF.get(name, ""))
    answer = call(name, *(getattr(arguments, field.name) for field in arguments.definition.fields))
    return without_catalog(METHODS[name].definition, answer, catalog) if catalog else answer


def _databases(call: Call, catalog: str, arguments: Any) -> Any:
    return call("get_databases", catalog_prefix(catalog))


def _functions(call: Call, catalog: str, arguments: Any) -> Any:
    """The method itself answers about the default catalog only."""
    found = []
    for database in _databases(call, catalog, arguments):
        key = f"{catalog_prefix(catalog)}{database}"
        for function in call("get_functions", key, "*"):
            asked = METHODS["get_function"].arguments(database, function)
            found.append(_asked(call, catalog, "get_function", asked))
    return GetAllFunctionsResponse(functions=found)


def _privileges(call: Call, catalog: str, arguments: Any) -> Any:
    """What is granted on everything is in no catalog."""
    ref = msgspec.structs.replace(arguments.hiveObject, catName=catalog)
    found = call("list_privileges", arguments.principal_name, arguments.principal_type, ref)
    inside = [one for one in found if (one.hiveObject.catName or "").lower() == catalog and one.hiveObject.dbName]
    return without_catalog(METHODS["list_privileges"].definition, inside, catalog)


def _events(call: Call, catalog: str, arguments: Any) -> Any:
    """Events of every catalog: the reader sees by their ids that none is missing."""
    answer = call("get_next_notification", arguments.rqst)
    for event in answer.events or ():
        if event.dbName:
            # Clients of 2.3 are told by the key, others by the field.
            event.dbName = seen_from(catalog, key_within(event.catName, event.dbName) or "")
        event.catName = None
    return answer


_SPECIAL: Final[Mapping[str, Callable[[Call, str, Any], Any]]] = {
    "get_all_databases": _databases,
    "get_all_functions": _functions,
    "list_privileges": _privileges,
    "get_next_notification": _events,
    "get_valid_write_ids": lambda call, catalog, arguments: GetValidWriteIdsResponse(tblValidWriteIds=[]),
}
