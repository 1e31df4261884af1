"""The table that arguments or the fields of a request name."""

from hms_gateway.catalog.arguments import database_name, in_catalog, is_newer
from hms_gateway.metastore.selection.table_name import TableName
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call


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
