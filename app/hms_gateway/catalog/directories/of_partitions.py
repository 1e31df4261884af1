"""The directories of partitions: made before the partitions are stored, taken back when that fails, counted."""

import logging
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from time import perf_counter
from typing import Final, TypeVar

import msgspec

from hms_gateway.catalog.directories.warehouse import check_place
from hms_gateway.metastore.checks.errors import file_errors_as_meta
from hms_gateway.metastore.ports.store import FileSystemError, Reach
from hms_gateway.metastore.vocabulary.locations import is_under, join, relative_part
from hms_gateway.storage.files.directories import Directories

S = TypeVar("S")
T = TypeVar("T")

_log = logging.getLogger(__name__)

THREADS_MAX: Final = 15
# Fewer calls than this are not worth starting threads for.
_FEW: Final = 8
# Neither are any number of calls that take no longer than this: a local directory takes a fiftieth of it, and threads
# would do nothing but hand the interpreter to each other. The patience is for a moment in which others had it.
_QUICK_SECONDS: Final = 0.000_5
_PATIENCE_SECONDS: Final = 0.01


class Found(msgspec.Struct, frozen=True):
    """A directory that was there already; `statistics` are (files, bytes) where they were asked for."""

    location: str
    statistics: tuple[int, int] | None = None


class PartitionDirectories:
    """Directories of many partitions at once, in threads where each is a request to a remote store."""

    def __init__(
        self, files: Directories, threads_max: int = THREADS_MAX, seconds: Callable[[], float] = perf_counter
    ) -> None:
        """`seconds` is the clock that measures what is slow."""
        self._files = files
        self._threads_max = threads_max
        self._seconds = seconds

    def make(self, locations: Sequence[str], counted: Container[str], new: set[str]) -> list[Found]:
        """Make the directories that are not there yet, and count the files in those of `counted` that are.

        Returns those that were there; `new` gets the locations made here, even when this raises FileSystemError for
        the first that cannot be made. What is not managed is left alone.
        """
        found: list[str] = []
        has_failed = threading.Event()
        make_directory = self._files.directory_maker()

        def make_one(location: str) -> None:
            is_new = make_directory(location)
            if is_new:
                new.add(location)
            elif is_new is not None and location not in new:
                found.append(location)

        def count_one(location: str) -> Found:
            return Found(location, self._files.quick_statistics(location) if location in counted else None)

        self._for_each(make_one, locations, has_failed)
        return self._for_each(count_one, found, has_failed)

    def check_places(self, locations: Iterable[str], *, is_owned: bool) -> None:
        """Whether partitions of a table that owns its data, or does not, may lie there. Raises MetaException."""
        with file_errors_as_meta():
            elsewhere = [location for location in locations if self._files.reach(location) is not Reach.MANAGED]
        for location in elsewhere:
            check_place(self._files, location, is_owned=is_owned)

    def make_again(self, locations: Sequence[str]) -> None:
        """Make directories that partitions already stored rely on; failures are only logged."""
        self._quietly(self._files.directory_maker(), locations)

    def take_back(self, root: str | None, locations: Sequence[str]) -> None:
        """Remove directories that are not used after all, and parents up to `root`; only empty ones are removed."""

        def remove(location: str) -> None:
            self._files.delete_empty_parents(join(location, "_"), max(1, _levels_below(root, location)))

        self._quietly(remove, locations)

    def count(self, locations: Sequence[str]) -> list[tuple[int, int] | None]:
        """Files and bytes below each location, None where the file system is not managed. Raises FileSystemError."""

        def count_one(location: str) -> tuple[int, int] | None:
            return self._files.quick_statistics(location) if self._files.manages(location) else None

        return self._for_each(count_one, locations, threading.Event())

    def delete(self, root: str | None, locations: Sequence[str], key_count: int) -> None:
        """Delete directories with what is in them, and parents left empty (semantics §2.10); failures are only logged.

        `root`, the table's directory, stays, and so does a partition's directory that contains it.
        """

        kept: list[str] = []

        def delete_one(location: str) -> None:
            if not self._files.manages(location) or (root is not None and is_under(location, root)):
                kept.append(location)
                return
            self._files.delete_directory(location)
            levels = _levels_below(root, location) or key_count
            self._files.delete_empty_parents(location, min(levels, key_count) - 1)

        self._quietly(delete_one, locations)
        outside = [location for location in kept if self._files.reach(location) is Reach.OUTSIDE]
        if outside:
            _log.warning(
                "Kept %s directories of partitions, such as %s: they are outside the directories this server manages "
                "(file_roots)",
                len(outside),
                outside[0],
            )

    def _quietly(self, action: Callable[[str], object], locations: Sequence[str]) -> None:
        def act(location: str) -> None:
            try:
                action(location)
            except FileSystemError as error:
                _log.warning("directory %s: %s", location, error)

        self._for_each(act, locations, threading.Event())

    def _for_each(self, action: Callable[[S], T], items: Sequence[S], has_failed: threading.Event) -> list[T]:
        """Results in the order of `items`. On the first failure the rest is left undone."""
        results: list[T] = []
        limit = self._seconds() + _PATIENCE_SECONDS
        for item in items:
            results.append(action(item))
            limit += _QUICK_SECONDS
            if self._seconds() > limit:
                break
        return results + self._for_each_slow(action, items[len(results) :], has_failed)

    def _for_each_slow(self, action: Callable[[S], T], items: Sequence[S], has_failed: threading.Event) -> list[T]:
        if len(items) < _FEW or self._threads_max < 2:
            return [action(item) for item in items]

        def run(share: Sequence[S]) -> list[T]:
            try:
                return [action(item) for item in share if not has_failed.is_set()]
            except BaseException:
                has_failed.set()
                raise

        size = -(-len(items) // (4 * self._threads_max))
        shares = [items[start : start + size] for start in range(0, len(items), size)]
        with ThreadPoolExecutor(self._threads_max, thread_name_prefix="directories") as threads:
            contexts = [copy_context() for _ in shares]  # files behave by what kind of call it is
            ran = threads.map(lambda context, share: context.run(run, share), contexts, shares)
            return [result for results in ran for result in results]


def _levels_below(root: str | None, location: str) -> int:
    """How many directories of `location` lie below `root`; 0 when it lies elsewhere."""
    relative = None if root is None else relative_part(root, location)
    return relative.count("/") if relative else 0
