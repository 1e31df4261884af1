"""Which databases and tables a call names in its arguments, for logs and figures: `sales`, `sales.orders`.

Where they are is said by `schema/rights.txt`. Names are in lower case, as the catalog keeps them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from hms_gateway.idl.method_rights import Need, method_rights
from hms_gateway.structs import Struct

OBJECTS_MAX: Final = 16

_Names: TypeAlias = Iterator[str]


class _Reader(NamedTuple):
    """Reads the names at some paths. Those of `containers` are left out where an object inside is named, too."""

    read: Callable[[Struct, tuple[str, ...]], _Names]
    paths: tuple[str, ...]
    is_container: bool


def objects_of(method: str, arguments: Struct) -> tuple[str, ...]:
    """The objects in the order in which they are named, OBJECTS_MAX at most."""
    found: dict[str, bool] = {}
    for reader in _readers(method):
        for name in reader.read(arguments, reader.paths):
            if name:
                found.setdefault(name, reader.is_container)
    if len(found) < 2:
        return tuple(found)
    inside = {name.partition(".")[0] for name in found if "." in name} if any(found.values()) else set()
    named = (name for name, is_container in found.items() if not is_container or name not in inside)
    return tuple(islice(named, OBJECTS_MAX))


@cache
def _readers(method: str) -> tuple[_Reader, ...]:
    rights = method_rights()[method]
    readers = [reader for need in (*rights.needs, *rights.names) if (reader := _reader(need)) is not None]
    # What a list beside a new table names comes behind the table.
    return tuple(sorted(readers, key=lambda reader: reader.read is _other))


def _reader(need: Need) -> _Reader | None:
    if (need.verb, need.kind) == ("write", "location"):
        # Behind the names is what has the location.
        paths = need.paths[: min(2, len(need.paths) - 1)]
        return _Reader(_database if len(paths) == 1 else _object, paths, len(paths) == 1)
    read = _BY_VERB.get((need.verb, need.kind)) or (None if need.verb in _NAMELESS else _BY_KIND.get(need.kind))
    return None if read is None else _Reader(read, need.paths, need.kind == "database")


def _values(arguments: Struct, paths: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """What is at these paths, for each element of a list that they go through."""
    way, is_list, _ = paths[0].partition("[]")
    if not is_list:
        yield tuple(_at(arguments, path) for path in paths)
        return
    behind = len(way) + len("[].")
    for element in islice(_at(arguments, way) or (), OBJECTS_MAX):
        yield tuple(_at(element, path[behind:]) for path in paths)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if value is None:
            return None
        value = getattr(value, name)
    return value


def _database(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for (database,) in _values(arguments, paths):
        yield _text(database)


def _object(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for database, name in _values(arguments, paths):
        yield _qualified(database, name)


def _column(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for database, name in _values(arguments, paths):
        yield _qualified(database, name and name.partition(".")[0])


def _objects(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for database, names in _values(arguments, paths):
        for name in islice(names or (), OBJECTS_MAX):
            yield _qualified(database, name)


def _moved(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    """A table keeps what the new one does not name."""
    for old_db, old_name, new_db, new_name in _values(arguments, paths):
        yield _qualified(new_db or old_db, new_name or old_name)


def _other(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    return _object(arguments, paths[2:])


def _full_names(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for (names,) in _values(arguments, paths):
        yield from map(_text, islice(names or (), OBJECTS_MAX))


def _leased(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for each in _elements(arguments, paths):
        yield _qualified(each.db_name, each.table_name)


def _components(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for each in _elements(arguments, paths):
        yield _qualified(each.dbname, each.tablename)


def _privileged(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for each in _elements(arguments, paths):
        if each.hiveObject is not None:
            yield _qualified(each.hiveObject.dbName, each.hiveObject.objectName)


def _reference(arguments: Struct, paths: tuple[str, ...]) -> _Names:
    for (each,) in _values(arguments, paths):
        if each is not None:
            yield _qualified(each.dbName, each.objectName)


def _elements(arguments: Struct, paths: tuple[str, ...]) -> Iterator[Any]:
    for elements, *_ in _values(arguments, paths):
        yield from (each for each in islice(elements or (), OBJECTS_MAX) if each is not None)


def _qualified(database: Any, name: Any) -> str:
    return ".".join(filter(None, (_text(database), _text(name))))


def _text(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    # A database may be named as `@catalog#database`.
    return text.rpartition("#")[2].lower() if text.startswith("@") else text.lower()


# What is named besides by another part of the line, and what is no database and no table.
_NAMELESS: Final = frozenset({"give", "own", "self", "principal", "owned", "acted", "shown", "replication"})
_BY_VERB: Final[Mapping[tuple[str, str], Callable[[Struct, tuple[str, ...]], _Names]]] = {
    ("grant", ""): _privileged,
    ("revoke", ""): _privileged,
    ("move", "table"): _moved,
}
_BY_KIND: Final[Mapping[str, Callable[[Struct, tuple[str, ...]], _Names]]] = {
    "database": _database,
    "table": _object,
    "tables": _objects,
    "column": _column,
    "function": _object,
    "named": _full_names,
    "leased": _leased,
    "component": _components,
    "object": _reference,
    "other": _other,
}
