"""The needs of a check of the directories from file systems."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol


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
