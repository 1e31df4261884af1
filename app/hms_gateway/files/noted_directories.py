"""Directories that note what calls do with them, for traces. Locations are not noted: some hold credentials."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hms_gateway.files.directories import Directories
from hms_gateway.timing.spans import current_notes


class NotedDirectories(Directories):
    def is_directory(self, location: str) -> bool:
        with _noted("is_directory"):
            return super().is_directory(location)

    def exists(self, location: str) -> bool:
        with _noted("exists"):
            return super().exists(location)

    def make_directory(self, location: str) -> bool:
        with _noted("make_directory"):
            return super().make_directory(location)

    def directory_maker(self) -> Callable[[str], bool | None]:
        make = super().directory_maker()

        def noted(location: str) -> bool | None:
            with _noted("make_directory"):
                return make(location)

        return noted

    def delete_directory(self, location: str) -> None:
        with _noted("delete_directory"):
            super().delete_directory(location)

    def delete_empty_parents(self, location: str, levels: int) -> None:
        with _noted("delete_empty_parents"):
            super().delete_empty_parents(location, levels)

    def move_directory(self, source: str, target: str) -> None:
        with _noted("move_directory"):
            super().move_directory(source, target)

    def quick_statistics(self, location: str) -> tuple[int, int]:
        with _noted("quick_statistics"):
            return super().quick_statistics(location)


@contextmanager
def _noted(operation: str) -> Iterator[None]:
    notes, begin = current_notes(), time.perf_counter()
    try:
        yield
    finally:
        if notes is not None:
            notes.add(f"files {operation}", begin)
