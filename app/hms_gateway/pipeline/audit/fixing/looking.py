"""Looks at one directory right before something is done about it, and deletes it."""

from collections.abc import Iterator

import msgspec

from hms_gateway.pipeline.listing import Entry, Files, files_of, is_hidden
from hms_gateway.pipeline.storage import Storage


class Seen(msgspec.Struct, frozen=True):
    """Visible files at and below a directory; `newest_seconds` and `all_files` are about hidden ones, too.

    `newest_seconds` is 0 where the file system does not know when anything was changed.
    """

    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    all_files: int = 0


class Looker:
    """Directories by location. Methods raise ListingProblem, OSError and OptionError."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def look(self, location: str) -> Seen | None:
        """None where there is no directory."""
        files = files_of(location, self._storage)
        path = files.root(location)
        if not files.is_directory(path):
            return None
        visible = size = count = newest_ms = 0
        for entry, is_visible in _everything(files, path, True):
            newest_ms = max(newest_ms, entry.modified_ms)
            if entry.is_link or not entry.is_directory:
                count += 1
                visible += is_visible
                size += entry.bytes if is_visible else 0
        return Seen(visible, size, newest_ms / 1_000, count)

    def delete(self, location: str) -> int:
        """The directory with all that is in it; how many files that were. A link in it is deleted, not followed."""
        seen = self.look(location)
        if seen is None:
            return 0
        files = files_of(location, self._storage)
        files.delete(files.root(location))
        return seen.all_files


def _everything(files: Files, path: str, is_visible: bool) -> Iterator[tuple[Entry, bool]]:
    """Every entry below a directory, and whether engines see it. Raises ListingProblem."""
    for entry in files.scan(path):
        is_seen = is_visible and not is_hidden(entry.name, is_directory=entry.is_directory)
        yield entry, is_seen
        if entry.is_directory and not entry.is_link:
            yield from _everything(files, f"{path}/{entry.name}", is_seen)
