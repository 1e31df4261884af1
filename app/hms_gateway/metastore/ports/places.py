"""Where the catalog says that things lie, a page at a time: what a check of the directories needs of storage."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import PartitionId, TableId


class DatabasePlace(NamedTuple):
    """`locations` are where its tables go, and where its managed tables go, as far as they are stored."""

    name: str
    locations: tuple[str, ...]


class TablePlace(NamedTuple):
    """`owns_data` is true where the catalog makes the table's directory, and deletes it with the table."""

    table_id: TableId
    db_name: str
    name: str
    location: str | None
    owns_data: bool
    partition_keys: tuple[str, ...]
    partition_count: int

    def __str__(self) -> str:
        return f"{self.db_name}.{self.name}"


class PartitionPlace(NamedTuple):
    partition_id: PartitionId
    table_id: TableId
    name: str
    location: str | None


class PartitionsBelow(msgspec.Struct, frozen=True):
    """So many partitions of a table that the catalog owns, all at or below one location."""

    table: str
    location: str
    count: int


class Tree(NamedTuple):
    """A directory with everything below it; `newest_seconds` is the time of the last change."""

    directories: int
    files: int
    total_bytes: int
    newest_seconds: float


class DirectoryTrees(Protocol):
    """What a check needs of the file systems: directories of this machine below the roots. Raises FileSystemError."""

    def roots(self) -> list[str]: ...

    def is_local(self, location: str) -> bool:
        """Whether it is below a root on this machine; of other locations there is nothing to see here."""

    def is_directory(self, location: str) -> bool: ...

    def real_location(self, location: str) -> str:
        """The same text for all spellings of a location, and for all symbolic links that lead to it."""

    def names_below(self, location: str) -> Iterator[str]:
        """Names of the directories directly below, read as they are asked for."""

    def measure(self, location: str) -> Tree | None:
        """None for a directory that does not exist. Raises where part of it cannot be read."""

    def move_directory(self, source: str, target: str) -> None:
        """Nothing that is there is replaced."""

    def delete_directory(self, location: str) -> None:
        """With all that is in it."""

    def delete_directories(self, location: str) -> bool:
        """With the directories in it; False when there is more than directories."""
