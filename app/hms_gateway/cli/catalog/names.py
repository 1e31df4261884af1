"""Names of the catalog as words of a command line: `db`, `db.table`, `db.table/partition`."""

from typing import NamedTuple

from hms_gateway.cli.terminal.output import fail


class CatalogName(NamedTuple):
    db_name: str
    table_name: str | None = None
    partition_name: str | None = None


def parse_name(text: str) -> CatalogName:
    """Ends the command when the text is not a name."""
    named, slash, partition = text.partition("/")
    db_name, point, table_name = named.partition(".")
    if not db_name or (point and not table_name) or "." in table_name or (slash and not (partition and point)):
        fail(f"{text!r} is not a name", "write database, database.table or database.table/key=value")
    return CatalogName(db_name.lower(), table_name.lower() or None, partition or None)
