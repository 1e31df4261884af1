"""Names of the catalog as words of a command line: `db`, `db.table`, `db.table/partition`."""

from typing import NamedTuple

from hms_gateway.cli.terminal.output import fail


class CatalogName(NamedTuple):
    db_name: str
    table_name: str | None = None
    partition_name: str | None = None


def parse_name(text: str, *, is_partition_too: bool = False) -> CatalogName:
    """Ends the command when the text is not a name, or names a partition where a command takes none."""
    named, slash, partition = text.partition("/")
    db_name, point, table_name = named.partition(".")
    is_partition = bool(is_partition_too and point and "=" in partition)
    if not db_name or (point and not table_name) or "." in table_name or (slash and not is_partition):
        forms = (
            "database, database.table or database.table/key=value" if is_partition_too else "database or database.table"
        )
        fail(f"{text!r} is not a name", f"write {forms}")
    return CatalogName(db_name.lower(), table_name.lower() or None, partition or None)
