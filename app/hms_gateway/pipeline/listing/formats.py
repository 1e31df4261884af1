"""The format of a file, by how it begins."""

from collections.abc import Iterator, Sequence
from typing import Final

from hms_gateway.pipeline.listing.files import Files

HEAD_BYTES: Final = 8
# A version follows, which is not a letter: texts may begin with these as well.
_BEFORE_A_VERSION: Final = (b"SEQ", b"RCF")
_BEGINNINGS: Final = (
    (b"PAR1", "parquet"),
    (b"PARE", "parquet"),
    (b"ORC", "orc"),
    (b"Obj\x01", "avro"),
    (b"SEQ", "sequence"),
    (b"RCF", "rcfile"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
)


# What a reader of texts reads.
_TEXTS: Final = ("text", "gzip", "bzip2", "zstandard")
# Where each look costs a request, so many files of a directory have to do.
_HEADS_A_REMOTE_DIRECTORY: Final = 3


def format_of(head: bytes) -> str:
    """`text` for everything that does not begin like a known format, `empty` for nothing."""
    if not head:
        return "empty"
    if head[:3] in _BEFORE_A_VERSION and head[3:4] >= b" ":
        return "text"
    return next((name for beginning, name in _BEGINNINGS if head.startswith(beginning)), "text")


def formats_in(files: Files, path: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and format of the files in a directory, or of some where the file system is away."""
    for name in _some(names) if files.waits else names:
        try:
            yield name, format_of(files.read(f"{path}/{name}", 0, HEAD_BYTES))
        except OSError:
            # It is gone, or cannot be read: footers say so where it matters.
            continue


def unlike(files: Files, path: str, names: Sequence[str]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Two files of a directory, with their formats, that no reader reads both; None where there are none."""
    first: tuple[str, str] | None = None
    for found in formats_in(files, path, names) if len(names) > 1 else ():
        if first is not None and _reader_of(found) != _reader_of(first):
            return first, found
        first = first or found
    return None


def _reader_of(found: tuple[str, str]) -> str:
    return "text" if found[1] in _TEXTS else found[1]


def _some(names: Sequence[str]) -> Sequence[str]:
    """The first, the last and the one in the middle: files of one writer follow each other."""
    if len(names) <= _HEADS_A_REMOTE_DIRECTORY:
        return names
    ordered = sorted(names)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]
