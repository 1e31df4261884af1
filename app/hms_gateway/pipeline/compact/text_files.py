"""Several text files as one: the same lines in the same order, byte by byte."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from hms_gateway.pipeline.compact.rules import NotPlain
from hms_gateway.pipeline.storage import Files

_PIECE_BYTES: Final = 4 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# By these Hadoop knows that a file is compressed.
_COMPRESSED: Final = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".zst", ".lzo", ".xz", ".zlib")


class TextLines:
    """Lines as Hadoop's reader ends them: by CR, LF, or both. `rows` is how many there are."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash, self._last = sha256(), b""

    def add(self, piece: bytes) -> None:
        self.rows += piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
        if self._last == b"\r" and piece.startswith(b"\n"):
            # They end one line, also when they come apart.
            self.rows -= 1
        self._hash.update(piece)
        self._last = piece[-1:] or self._last

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def kind_of(filing: Files, path: str) -> bytes:
    """All text is alike. Raises NotPlain for what is compressed."""
    if path.lower().endswith(_COMPRESSED):
        raise NotPlain(f"has the file {path.rpartition('/')[2]}, which is compressed text")
    return b""


def merge(filing: Files, paths: Sequence[str], target: str) -> TextLines:
    """Write the lines of files to a new file; what was written. Raises NotPlain, OSError."""
    lines = TextLines()
    with filing.writing(target) as out:
        for piece in _pieces(filing, paths):
            lines.add(piece)
            out.write(piece)
    return lines


def content(filing: Files, paths: Iterable[str]) -> TextLines:
    """The lines of files in their order, each file with an end of its last line."""
    lines = TextLines()
    for piece in _pieces(filing, paths):
        lines.add(piece)
    return lines


def _pieces(filing: Files, paths: Iterable[str]) -> Iterator[bytes]:
    """A line at the end of a file ends there; a byte order mark is one only at the beginning of a file."""
    for path in paths:
        last = b""
        with filing.reading(path) as file:
            for piece in _read(file):
                yield piece
                last = piece[-1:]
        if last not in (b"", b"\n"):
            yield b"\n"


def _read(file: Any) -> Iterator[bytes]:
    first = file.read(_PIECE_BYTES)
    if first.startswith(_BYTE_ORDER_MARK):
        first = first[len(_BYTE_ORDER_MARK) :]
    while first:
        yield first
        first = file.read(_PIECE_BYTES)
