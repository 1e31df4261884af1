"""Catalogs in messages: fields and prefixes outside, one key of a database inside.

Clients of Hive 3.1 and later name a catalog in a field beside the database's name, or write `@catalog#database` in its
place (semantics §1.4). Inside, a database has one name: its plain name in the default catalog, and its key
`@catalog#database` in another one. No database can be given such a name, so no plain name reaches another catalog.
`fold` makes keys of what a call names before anything else reads it, and `unfolder` takes them apart in its answer:
rules, rights, caches and storage in between see one name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from operator import is_not
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.rpc.idl import BaseType, Field, ListType, MapType, MethodDef, StructType, Type
from hms_gateway.rpc.structs import IDL
from hms_gateway.rpc.structs.base import Method, Struct

DEFAULT_CATALOG: Final = "hive"
_MARKER: Final = "@"
_SEPARATOR: Final = "#"
_EMPTY_DATABASE: Final = "!"
# What Java's String.trim() removes: everything up to and including the space, nothing beyond it.
TRIMMED: Final = "".join(map(chr, range(0x21)))

_CATALOGS: Final = ("catName", "catalogName", "cat_name", "catalog")
_DATABASES: Final = frozenset(
    {
        *("dbName", "db_name", "dbname", "databaseName", "database", "db", "oldDbName"),
        *("table_db", "pktable_db", "fktable_db", "parent_db_name", "foreign_db_name"),
    }
)
# Structs with the name of a database in a field that has another meaning elsewhere.
_FIELD_OF: Final[Mapping[str, str]] = {
    "Database": "name",
    "GetDatabaseRequest": "name",
    "DropDatabaseRequest": "name",
    "GetDatabaseObjectsRequest": "pattern",
}
_EVENTS: Final = StructType("NotificationEventResponse")

# Before a name in the text of a struct.
_FIELD: Final = "dbName:"


class InvalidCatalogMarker(ValueError):
    """A name of a database starts with `@` but has no `#`."""


def catalog_prefix(catalog: str | None) -> str:
    """Beginning of the keys of a catalog's databases: `@spark#`; empty for the default catalog and for none."""
    return _prefix(catalog) if catalog else ""


def _prefix(catalog: str) -> str:
    name = catalog.strip(TRIMMED).lower()
    return "" if name == DEFAULT_CATALOG else f"{_MARKER}{name}{_SEPARATOR}"


def prefix_of(name: str | None) -> str:
    """The prefix of the catalog in which a database is, by its key or as `@catalog#database`."""
    if not name or not name.startswith(_MARKER):
        return ""
    catalog, separator, _ = name[1:].partition(_SEPARATOR)
    return _prefix(catalog) if separator else ""


def catalog_of(key: str | None) -> str:
    """Name of the catalog that a database is in, by its key."""
    return prefix_of(key)[1:-1] or DEFAULT_CATALOG


def plain_name(key: str) -> str:
    """Name of a database within its catalog, by its key."""
    return key.partition(_SEPARATOR)[2] if key.startswith(_MARKER) else key


def marked(catalog: str, database: str) -> str:
    """`@catalog#database`, also for the default catalog: it means the same in calls about whichever catalog."""
    return f"{_MARKER}{catalog.lower()}{_SEPARATOR}{database}"


def seen_from(catalog: str, key: str) -> str:
    """A database for a client of the catalog: its plain name there, `@other#database` elsewhere, also in `hive`."""
    return plain_name(key) if catalog_of(key) == catalog else marked(catalog_of(key), plain_name(key))


def beside(key: str, name: str) -> str:
    """A database, or a pattern of them, in the catalog of `@catalog#database`; the name itself beside a plain one."""
    return f"{key[: key.index(_SEPARATOR) + 1]}{name}" if key.startswith(_MARKER) and _SEPARATOR in key else name


def shown_key(key: str) -> str:
    """Text for a database: `catalog.database` for `@catalog#database`, else the name itself."""
    catalog, separator, database = key.removeprefix(_MARKER).partition(_SEPARATOR)
    return f"{catalog}.{database}" if separator and key.startswith(_MARKER) else key


def database_key(name: str | None) -> str | None:
    """The key of `@catalog#database`, or a pattern of keys; the name itself, unless it starts with `@`.

    `@hive#` is no name, `@hive#!` the empty one (semantics §1.4). Raises InvalidCatalogMarker for `@` without `#`.
    """
    if name is None or not name.startswith(_MARKER):
        return name if name is None or name[:1] > " " or not _hides_marker(name) else f"{_SEPARATOR}{name}"
    catalog, separator, database = name[1:].partition(_SEPARATOR)
    if not separator:
        raise InvalidCatalogMarker(
            f"{name} is prepended with the catalog marker but does not appear to have a catalog name in it"
        )
    prefix = _prefix(catalog)
    if prefix:
        return f"{prefix}{database.strip(TRIMMED)}"
    return "" if database == _EMPTY_DATABASE else database or None


def _hides_marker(name: str) -> bool:
    """True for blanks before a marker, which is none then: names are trimmed later, so it stays behind something."""
    return name[:1] <= " " and name.lstrip(TRIMMED).startswith(_MARKER)


def key_within(catalog: str | None, name: str | None) -> str | None:
    """The key of a database that is named beside its catalog. Raises InvalidCatalogMarker."""
    prefix = catalog_prefix(catalog)
    if not prefix or (name or "").startswith(_MARKER):
        return database_key(name)
    return f"{prefix}{(name or '').strip(TRIMMED)}"


def key_of_qualified(database: str) -> str:
    """The key of `database` or `catalog.database`, as views name their sources."""
    before, _, name = database.rpartition(".")
    return key_within(before.rpartition(".")[2], name) or ""


def shown_text(text: str, objects: Iterable[str]) -> str:
    """An error's text with `catalog.database` for each key, as Hive writes it; the plain name of a key alone or in a
    struct.

    Keys are those in catalogs of `objects`, which the call named: the rest of the text may be the caller's own.
    """
    if _MARKER not in text or _SEPARATOR not in text:
        return text
    for prefix in {prefix for name in objects if (prefix := _prefix_of_object(name))}:
        if text.startswith(prefix) and not any(map(str.isspace, text)):
            return text[len(prefix) :]
        text = text.replace(f"{_FIELD}{prefix}", _FIELD).replace(prefix, f"{prefix[1:-1]}.")
    return text


def _prefix_of_object(name: str) -> str:
    """That of `@catalog#database.table`, `catalog.database.table` or either's database."""
    database = name.rpartition(".")[0]
    return prefix_of(name) or ("" if _MARKER in database else prefix_of(key_of_qualified(database)))


class _Places(NamedTuple):
    """Fields of a struct that have to do with catalogs: its own, those of its databases, and structs with such fields.

    Of each struct inside: the field, the name of its class, and whether the field is a list or map of them.
    """

    catalog: str | None
    databases: tuple[str, ...]
    inside: tuple[tuple[str, str, bool], ...]


def fold(arguments: Struct) -> None:
    """Put keys in the places of the databases that the arguments of a call name beside a catalog, in place.

    A struct without a catalog is in that of the struct around it, of the database that the call names, or of the table
    that comes before it: as Hive fills it in.
    """
    places = _of_arguments(type(arguments))
    if places.inside or places.catalog:
        _fold(arguments, places, "")


def _fold(struct: Any, places: _Places, prefix: str) -> str:
    """The prefix of the struct's catalog."""
    named = "" if places.catalog is None else catalog_prefix(getattr(struct, places.catalog))
    prefix = named or ("" if places.catalog is not None and getattr(struct, places.catalog) else prefix)
    for field in places.databases:
        name = getattr(struct, field)
        if name is None:
            continue
        if name.startswith(_MARKER) and not named:
            prefix = prefix_of(name)
        elif prefix and places.catalog is not None:
            # Also before a marker, which is part of the name where a field says the catalog.
            setattr(struct, field, f"{prefix}{name.strip(TRIMMED)}")
        elif name[:1] <= " " and _hides_marker(name):
            setattr(struct, field, f"{_SEPARATOR}{name}")
    following = prefix
    for field, class_name, is_many in places.inside:
        value = getattr(struct, field)
        if value is None:
            continue
        inner = _of_struct(class_name)
        if is_many:
            for one in value.values() if isinstance(value, dict) else value:
                if one is not None:
                    _fold(one, inner, following)
        else:
            found = _fold(value, inner, following)
            following = following or (found if class_name == "Table" else "")
    return prefix


def unfolder(method: MethodDef, *, lists_databases: bool = False, is_newer: bool = True) -> Callable[[Any], Any] | None:
    """The function that shows the answer of a method with plain names and their catalogs; None where there are none.

    With `lists_databases` the answer is names of databases. Callers before 3.1 are told of events in all catalogs by
    the keys of databases, since they do not look at catalogs.
    """
    if lists_databases and isinstance(method.returns, ListType) and method.returns.element is BaseType.STRING:
        return _plain_names
    if method.returns == _EVENTS and not is_newer:
        return None
    inside = None if method.returns is None else _inside("", method.returns)
    if inside is None:
        return None
    _, class_name, is_many = inside
    return partial(_unfolded_many if is_many else _unfolded, class_name=class_name)


def place(method: Method, arguments: Struct, catalog: str, database: str = "") -> None:
    """Name a catalog wherever a caller that knows of none does not, in place: what a client of `catalog` sends.

    `database` is the argument that names a database, where its name does not say so. Structs without a field for the
    catalog, such as a component of a lock, get keys; in others, `@other#database` becomes its two fields, as Hive wants
    it. Without a catalog only that is done.
    """
    prefix, places = catalog_prefix(catalog), _named_in(arguments.definition.name, arguments.definition.fields)
    for field in () if places.catalog is not None else method.definition.arguments:
        name = getattr(arguments, field.name)
        if (field.name in _DATABASES or field.name == database) and isinstance(name, str):
            setattr(arguments, field.name, name if name.startswith(_MARKER) else f"{prefix}{name}")
    _name(arguments, places, catalog)


def without_catalog(method: MethodDef, answer: Any, catalog: str) -> Any:
    """The answer to a client of `catalog`, in place: no catalog is named, and databases of others are `@other#name`."""
    name = None if method.returns is None else _struct_in(method.returns)
    if name is not None:
        places = _named_in(name, IDL.structs[name].fields)
        for one in _each(answer):
            _forget(one, places, catalog)
    return answer


def _name(struct: Any, places: _Places, catalog: str) -> None:
    """Set the catalog of a struct and of those inside; one that a caller names stays, also in a database's name."""
    for field in places.databases:
        name = getattr(struct, field)
        if not isinstance(name, str):
            continue
        if places.catalog is None:
            setattr(struct, field, name if name.startswith(_MARKER) else f"{catalog_prefix(catalog)}{name}")
        elif name.startswith(_MARKER) and _SEPARATOR in name:
            catalog = name[1 : name.index(_SEPARATOR)]
            setattr(struct, field, plain_name(name))
    if catalog and places.catalog is not None and getattr(struct, places.catalog) in (None, DEFAULT_CATALOG):
        setattr(struct, places.catalog, catalog)
    for value, inner in _structs_in(struct, places):
        _name(value, inner, catalog)


def _forget(struct: Any, places: _Places, catalog: str) -> None:
    if places.catalog is not None:
        setattr(struct, places.catalog, None)
    for field in () if places.catalog is not None else places.databases:
        name = getattr(struct, field)
        if isinstance(name, str):
            setattr(struct, field, seen_from(catalog, name))
    for value, inner in _structs_in(struct, places):
        _forget(value, inner, catalog)


def _structs_in(struct: Any, places: _Places) -> Iterator[tuple[Any, _Places]]:
    for field, class_name, _ in places.inside:
        for one in _each(getattr(struct, field)):
            yield one, _named_in(class_name, IDL.structs[class_name].fields)


def _each(value: Any) -> Iterator[Any]:
    """The structs of a field's value."""
    if isinstance(value, Mapping):
        value = value.values()
    yield from () if value is None else (one for one in (value if _is_many(value) else (value,)) if one is not None)


def _is_many(value: Any) -> bool:
    return not isinstance(value, Struct) and isinstance(value, Iterable)


_named: Final[dict[str, _Places]] = {}


def _named_in(name: str, fields: tuple[Field, ...], around: frozenset[str] = frozenset()) -> _Places:
    """Fields of a struct that name catalogs or databases, and of structs that do, whether with a catalog or without.

    `around` are the structs around it, which are not looked into again.
    """
    if name not in _named:
        own, around = _found(name, fields), around | {name}
        inside = [
            (field.name, inner, not isinstance(field.type, StructType))
            for field in fields
            if (inner := _struct_in(field.type)) is not None
            and inner not in around
            and any(_named_in(inner, IDL.structs[inner].fields, around))
        ]
        # Arguments without a catalog are named by `place`.
        has_names = name in IDL.structs or own.catalog is not None
        _named[name] = _Places(own.catalog, own.databases if has_names else (), tuple(inside))
    return _named[name]


def unfolded(struct: Any) -> Any:
    """A struct with plain names of databases and their catalogs; itself where all are of the default catalog."""
    return _unfolded(struct, struct.definition.name)


def _plain_names(names: Any) -> Any:
    is_of_other = isinstance(names, list) and names and names[0].startswith(_MARKER)
    return [plain_name(name) for name in names] if is_of_other else names


def _unfolded_many(values: Any, class_name: str) -> Any:
    # What is read while it is sent was made for its reader (`TableName.shown`). No answer has a map of such structs.
    if not isinstance(values, list):
        return values
    shown = [_unfolded(value, class_name) for value in values]
    return shown if any(map(is_not, shown, values)) else values


def _unfolded(struct: Any, class_name: str) -> Any:
    if not isinstance(struct, Struct):
        return struct
    places = _of_struct(class_name)
    changes: dict[str, Any] = {}
    if places.catalog is not None:
        for field in places.databases:
            key = getattr(struct, field)
            prefix = prefix_of(key) if key and key.startswith(_MARKER) else ""
            if prefix and changes.setdefault(places.catalog, prefix[1:-1]) == prefix[1:-1]:
                changes[field] = key[len(prefix) :] or None
    for field, inner, is_many in places.inside:
        value = getattr(struct, field)
        if value is not None:
            shown = (_unfolded_many if is_many else _unfolded)(value, inner)
            if shown is not value:
                changes[field] = shown
    return msgspec.structs.replace(struct, **changes) if changes else struct


@cache
def _of_arguments(arguments: type[Struct]) -> _Places:
    return _found(arguments.definition.name, arguments.definition.fields)


@cache
def _of_struct(name: str) -> _Places:
    return _found(name, IDL.structs[name].fields)


def _found(name: str, fields: tuple[Field, ...]) -> _Places:
    names = [field.name for field in fields if not isinstance(field.type, StructType | ListType | MapType)]
    catalog = next((each for each in _CATALOGS if each in names), None)
    databases = tuple(each for each in names if each in _DATABASES or each == _FIELD_OF.get(name))
    inside = [found for field in fields if (found := _inside(field.name, field.type)) is not None]
    return _Places(catalog, databases, tuple(inside))


def _inside(field: str, kind: Type) -> tuple[str, str, bool] | None:
    name = _struct_in(kind)
    found = name is not None and _names_catalog(name)
    return (field, name, not isinstance(kind, StructType)) if found and name is not None else None


def _struct_in(kind: Type) -> str | None:
    """The struct of a field, or of the elements of its list or map."""
    if isinstance(kind, ListType):
        kind = kind.element
    elif isinstance(kind, MapType):
        kind = kind.value
    return kind.name if isinstance(kind, StructType) else None


# Structs that name a catalog, or have one inside that does. One that is being looked into has none of its own.
_known: Final[dict[str, bool]] = {}


def _names_catalog(name: str) -> bool:
    if name not in _known:
        fields = IDL.structs[name].fields
        _known[name] = any(field.name in _CATALOGS and _struct_in(field.type) is None for field in fields)
        if not _known[name]:
            inside = (_struct_in(field.type) for field in fields)
            _known[name] = any(each is not None and _names_catalog(each) for each in inside)
    return _known[name]
