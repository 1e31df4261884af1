"""Objects of a call by its arguments, for logs, figures and rates: `sales`, `sales.orders`, a number of partitions.

Where they are is said by `schema/methods.txt`. Names are in lower case, as the catalog keeps them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from hms_gateway.rpc.idl.method_facts import MethodFacts, Need, method_facts
from hms_gateway.rpc.structs import Struct
from hms_gateway.rpc.structs.catalogs import plain_name, prefix_of
from hms_gateway.rpc.structs.paths import ArgumentPaths, argument_paths

OBJECTS_MAX: Final = 16

_Names: TypeAlias = Iterable[str]


class _Reader(NamedTuple):
    """Reads the names at some paths. Those of a container are left out where an object inside is named, too."""

    names: Callable[..., _Names]
    paths: ArgumentPaths
    is_container: bool


def objects_of(method: str, arguments: Struct) -> tuple[str, ...]:
    """The objects in the order in which they are named, OBJECTS_MAX at most."""
    found: dict[str, bool] = {}
    for reader in _readers(method):
        for values in islice(reader.paths.values(arguments), OBJECTS_MAX):
            for name in reader.names(*values):
                if name:
                    found.setdefault(name, reader.is_container)
    if len(found) < 2:
        return tuple(found)
    inside = {name.partition(".")[0] for name in found if "." in name} if any(found.values()) else set()
    named = (name for name, is_container in found.items() if not is_container or name not in inside)
    return tuple(islice(named, OBJECTS_MAX))


def partitions_of(facts: MethodFacts, arguments: Struct | None, result: Struct | None) -> int:
    """The number of partitions that a call returns or names. `result` may have a list that was not read yet."""
    count = 0
    for path in facts.partitions_in:
        for (value,) in argument_paths((path,)).values(result if path.startswith("success") else arguments):
            count += 0 if value is None else len(value)
    return count


@cache
def _readers(method: str) -> tuple[_Reader, ...]:
    rights = method_facts()[method].rights
    needs = [need for need in (*rights.needs, *rights.names) if need.verb not in _NAMELESS]
    # What a list beside a new table names comes behind the table.
    needs.sort(key=lambda need: need.kind == "other")
    return tuple(reader for need in needs if (reader := _reader(need)) is not None)


def _reader(need: Need) -> _Reader | None:
    names = _BY_VERB.get((need.verb, need.kind)) or _BY_KIND.get(need.kind)
    paths = need.paths
    if need.kind == "location":
        # Behind the names is what has the location.
        paths = paths[: min(2, len(paths) - 1)]
        names = _database if len(paths) == 1 else _object
    elif need.kind == "other":
        paths = paths[2:]
    return None if names is None else _Reader(names, argument_paths(paths), names is _database)


def _database(database: Any) -> _Names:
    return (_text(database),)


def _object(database: Any, name: Any) -> _Names:
    return (_qualified(database, name),)


def _column(database: Any, name: Any) -> _Names:
    return (_qualified(database, name and name.partition(".")[0]),)


def _objects(database: Any, names: Any) -> _Names:
    return (_qualified(database, name) for name in islice(names or (), OBJECTS_MAX))


def _moved(old_db: Any, old_name: Any, new_db: Any, new_name: Any) -> _Names:
    """A table keeps what the new one does not name."""
    return (_qualified(new_db or old_db, new_name or old_name),)


def _full_names(names: Any) -> _Names:
    return map(_text, islice(names or (), OBJECTS_MAX))


def _leased(elements: Any) -> _Names:
    return (_qualified(each.db_name, each.table_name) for each in _elements(elements))


def _components(elements: Any) -> _Names:
    return (_qualified(each.dbname, each.tablename) for each in _elements(elements))


def _privileged(elements: Any, *kinds: Any) -> _Names:
    refs = (each.hiveObject for each in _elements(elements))
    return (_qualified(ref.dbName, ref.objectName) for ref in refs if ref is not None)


def _reference(ref: Any) -> _Names:
    return () if ref is None else (_qualified(ref.dbName, ref.objectName),)


def _elements(elements: Any) -> Iterable[Any]:
    return (each for each in islice(elements or (), OBJECTS_MAX) if each is not None)


def _qualified(database: Any, name: Any) -> str:
    return ".".join(filter(None, (_text(database), _text(name))))


def _text(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    # A database of another catalog has its key, which says so.
    return text.lower() if prefix_of(text) else plain_name(text).lower()


# What is named besides by another part of the line, and what is no database and no table.
_NAMELESS: Final = frozenset({"give", "own", "self", "principal", "owned", "acted", "shown", "replication"})
_BY_VERB: Final[Mapping[tuple[str, str], Callable[..., _Names]]] = {
    ("grant", ""): _privileged,
    ("revoke", ""): _privileged,
    ("move", "table"): _moved,
}
_BY_KIND: Final[Mapping[str, Callable[..., _Names]]] = {
    "database": _database,
    "table": _object,
    "tables": _objects,
    "column": _column,
    "function": _object,
    "named": _full_names,
    "leased": _leased,
    "component": _components,
    "object": _reference,
    "other": _object,
}
