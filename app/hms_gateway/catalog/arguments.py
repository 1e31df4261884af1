"""Arguments that every generation of clients spells differently: catalogs in names, tables, dialects in answers."""

from typing import Any, TypeVar

import msgspec

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import Function, HiveObjectRef, MetaException, Struct, Table
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, InvalidCatalogMarker, database_key, key_within

AnyStruct = TypeVar("AnyStruct", bound=Struct)
InCatalog = TypeVar("InCatalog", Table, Function, HiveObjectRef)


def database_name(argument: str | None) -> str | None:
    """The key of a database, or of a pattern, in an argument that may read `@catalog#name` (semantics §1.4).

    Raises MetaException for `@` without `#`.
    """
    try:
        return database_key(argument)
    except InvalidCatalogMarker as error:
        raise MetaException(str(error)) from error


def in_catalog(catalog: str | None, name: str | None) -> str | None:
    """The key of the database in a request that has a field for the catalog; see `database_name`."""
    try:
        return key_within(catalog, name)
    except InvalidCatalogMarker as error:
        raise MetaException(str(error)) from error


def is_newer(call: Call, argument: str | None = None) -> bool:
    """Whether the caller is of 3.1 or later: by its URL, or for putting the catalog into a name (semantics §10.1)."""
    return call.dialect is Dialect.HIVE_4 or (argument or "").startswith("@")


def with_fields(struct: AnyStruct, **fields: Any) -> AnyStruct:
    """A copy with some fields changed; what a service returns may be shared and stays untouched."""
    return msgspec.structs.replace(struct, **fields)


def table_named(db_name: str | None, tbl_name: str | None) -> TableName:
    """The table of a method without catalogs, whose database may read `@hive#name`. Raises MetaException."""
    return TableName(database_name(db_name), tbl_name)


def table_in(catalog: str | None, db_name: str | None, tbl_name: str | None) -> TableName:
    """The table of a request that has a field for the catalog. Raises MetaException."""
    return TableName(in_catalog(catalog, db_name), tbl_name)


def table_shown(call: Call, db_name: str | None, tbl_name: str | None, catalog: str | None = None) -> TableName:
    """The table whose partitions are answered: newer callers see their catalog. Raises MetaException."""
    newer = is_newer(call, db_name) or catalog is not None
    return TableName(in_catalog(catalog, db_name), tbl_name, DEFAULT_CATALOG if newer else None)


def with_plain_name(struct: InCatalog | None) -> InCatalog | None:
    """The struct of a client, with the key of its database."""
    if struct is None or struct.dbName is None:
        return struct
    return with_fields(struct, dbName=in_catalog(struct.catName, struct.dbName))
