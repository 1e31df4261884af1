"""The table that arguments or the fields of a request name."""

from app.handlers.arguments import database_name, in_catalog
from app.metastore.partition_tables import TableName


def table_named(db_name: str | None, tbl_name: str | None) -> TableName:
    """The table of a method without catalogs, whose database may read `@hive#name`. Raises MetaException."""
    return TableName(database_name(db_name), tbl_name)


def table_in(catalog: str | None, db_name: str | None, tbl_name: str | None) -> TableName:
    """The table of a request that has a field for the catalog. Raises MetaException."""
    return TableName(in_catalog(catalog, db_name), tbl_name)
