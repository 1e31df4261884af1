"""Databases, tables and partitions as they are written on the command line."""

from hms_gateway.cli.terminal.output import fail
from hms_gateway.txn.rules.names import Target


def parse_object(text: str, database: str) -> Target:
    """`table`, `database.table`, `database.table/ds=1/hr=2`, or `database.*` for the database as a whole.

    A table without a database is in `database`. Names stay as they are spelled.
    """
    named, slash, partition = text.partition("/")
    db_name, point, table_name = named.partition(".")
    if not point:
        db_name, table_name = database, named
    is_database = point and table_name == "*"
    if not db_name or not table_name or "." in table_name or (slash and (is_database or not partition)):
        fail(f"{text!r} is not an object", "write database.table, database.table/partition, or database.*")
    if is_database:
        return Target(db_name)
    return Target(db_name, table_name, partition or None)
