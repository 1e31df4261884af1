"""The files of a directory in one row."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from hms_gateway.pipeline.listing.files import Entry, Files, ListingProblem, is_hidden

_DEPTH_MAX: Final = 32


class Folded(NamedTuple):
    """Files that are not hidden. `names` are paths of those that are not empty, `largest` is one of these paths."""

    files: int = 0
    bytes: int = 0
    largest: str = ""
    largest_bytes: int = 0
    names: tuple[str, ...] = ()


def fold(files: Files, path: str, entries: Iterable[Entry], depth: int = 0) -> Folded:
    """The files in a directory and those below it, hidden directories left out. Raises ListingProblem."""
    count = total = largest_bytes = 0
    largest, names = "", list[str]()
    for name, is_directory, size, _, _ in entries:
        if is_hidden(name, is_directory=is_directory):
            continue
        if is_directory:
            if depth >= _DEPTH_MAX:
                raise ListingProblem(f"{path}/{name}", f"lies more than {_DEPTH_MAX} directories below a table's")
            inner = fold(files, f"{path}/{name}", files.scan(f"{path}/{name}"), depth + 1)
            if not inner.files:
                continue
            count, total = count + inner.files, total + inner.bytes
            names += [f"{name}/{other}" for other in inner.names]
            size, name = inner.largest_bytes, f"{name}/{inner.largest}"
        else:
            count, total = count + 1, total + size
            if size:
                names.append(name)
        if size > largest_bytes or not largest:
            largest, largest_bytes = name, size
    return Folded(count, total, largest, largest_bytes, tuple(names))
