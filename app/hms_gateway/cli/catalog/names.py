"""Names of the catalog as words of a command line: `db`, `db.table`, `db.table/partition`."""

from typing import NamedTuple

from hms_gateway.cli.terminal.output import fail


class CatalogName(NamedTuple):
    db_name: str
    table_name: str | None = None
    partition_name: str | None = None

    def __str__(self) -> str:
        table = "" if self.table_name is None else f".{self.table_name}"
        return f"{self.db_name}{table}{f'/{self.partition_name}' if self.partition_name else ''}"

    def holds(self, other: "CatalogName") -> bool:
        """True for itself and what is in it; an empty name holds everything."""
        return not self.db_name or self == other or (self.table_name is None and self.db_name == other.db_name)


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
