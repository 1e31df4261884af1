"""Arguments that every generation of clients spells differently: catalogs in names, tables, dialects in answers."""

from typing import Any, TypeVar

import msgspec

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.vocabulary.names import (
    DEFAULT_CATALOG,
    InvalidCatalogMarker,
    normalize,
    parse_database_argument,
)
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import Function, HiveObjectRef, MetaException, Struct, Table

AnyStruct = TypeVar("AnyStruct", bound=Struct)
InCatalog = TypeVar("InCatalog", Table, Function, HiveObjectRef)


def database_name(argument: str | None) -> str | None:
    """The plain database name (or pattern) in an argument that may read `@hive#name` (semantics §1.4).

    There is one catalog. A name in any other stays as it is: it has characters no database can have, so it is found
    nowhere and refused as a new name. Raises MetaException for `@` without `#`.
    """
    if argument is None or not argument.startswith("@"):
        return argument
    try:
        parsed = parse_database_argument(argument)
    except InvalidCatalogMarker as error:
        raise MetaException(str(error)) from error
    return parsed.database if parsed.catalog == DEFAULT_CATALOG else argument


def in_catalog(catalog: str | None, name: str | None) -> str | None:
    """The database name of a request that has a field for the catalog; see `database_name`."""
    if not catalog or normalize(catalog) == DEFAULT_CATALOG:
        return database_name(name)
    return f"@{catalog}#{name or ''}"


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
    """The struct of a client, its database under the name it has within the one catalog."""
    if struct is None or struct.dbName is None:
        return struct
    return with_fields(struct, dbName=in_catalog(struct.catName, struct.dbName))
