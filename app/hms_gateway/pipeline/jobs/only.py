"""Which objects are wanted, by patterns of `database.table`."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Only:
    """Without patterns everything is wanted; with patterns nothing that belongs to no database."""

    patterns: tuple[str, ...]

    def wants(self, database: str, table: str = "") -> bool:
        """A table; without one the database, which is wanted with one of its tables."""
        if not self.patterns:
            return True
        if table:
            name = f"{database}.{table}".lower()
            return any(fnmatchcase(name, pattern.lower()) for pattern in self.patterns)
        databases = (pattern.lower().partition(".")[0] for pattern in self.patterns)
        return bool(database) and any(fnmatchcase(database.lower(), pattern) for pattern in databases)
