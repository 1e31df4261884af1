"""The files of a directory in one row."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from hms_gateway.pipeline.listing.files import Entry, Files, ListingProblem, is_hidden

_DEPTH_MAX: Final = 32


class Folded(NamedTuple):
    """Files that are not hidden. `sample` is the path of the largest, below the directory; times in milliseconds.

    `names` are the paths of those that are not empty.
    """

    files: int = 0
    bytes: int = 0
    newest_ms: int = 0
    smallest: int = 0
    sample: str = ""
    sample_bytes: int = 0
    names: tuple[str, ...] = ()


def fold(files: Files, path: str, entries: Iterable[Entry], depth: int = 0) -> Folded:
    """The files in a directory and those below it, hidden directories left out. Raises ListingProblem."""
    count = total = newest = sample_bytes = 0
    smallest, sample = -1, ""
    names: list[str] = []
    for name, is_directory, size, modified in entries:
        if is_hidden(name, is_directory=is_directory):
            continue
        if is_directory:
            if depth >= _DEPTH_MAX:
                raise ListingProblem(f"{path}/{name}", f"lies more than {_DEPTH_MAX} directories below a table's")
            inner = fold(files, f"{path}/{name}", files.scan(f"{path}/{name}"), depth + 1)
            if not inner.files:
                continue
            count, total, newest = count + inner.files, total + inner.bytes, max(newest, inner.newest_ms)
            names += [f"{name}/{other}" for other in inner.names]
            size, modified, name = inner.sample_bytes, inner.newest_ms, f"{name}/{inner.sample}"
            smallest = inner.smallest if smallest < 0 else min(smallest, inner.smallest)
        else:
            count, total = count + 1, total + size
            smallest = size if smallest < 0 else min(smallest, size)
            if size:
                names.append(name)
        if modified > newest:
            newest = modified
        if size > sample_bytes or not sample:
            sample, sample_bytes = name, size
    return Folded(count, total, newest, max(smallest, 0), sample, sample_bytes, tuple(names))
