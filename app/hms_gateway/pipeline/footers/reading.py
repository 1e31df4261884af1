"""Reads the footer of one file: the end of the file is read, once where it is short, and the format is found in it."""

from collections.abc import Callable
from typing import Final, TypeAlias

from hms_gateway.pipeline.footers.footer import Footer, FooterProblem
from hms_gateway.pipeline.footers.orc import FOOTER_BYTES_MAX, NotAMessage, footer_length, orc_footer
from hms_gateway.pipeline.footers.parquet import parquet_footer
from hms_gateway.pipeline.footers.parquet_structs import NotAFooter

FOOTER_FORMATS: Final = ("parquet", "orc")
_TAIL_BYTES: Final = 32 * 1024
_PARQUET_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_PARQUET_TRAILER_BYTES: Final = 8
_ORC_MAGIC: Final = b"ORC"

# Bytes of a file from an offset on, as many as asked for.
Read: TypeAlias = Callable[[int, int], bytes]


def read_footer(path: str, size: int, read: Read) -> Footer:
    """The footer of the file `path` of `size` bytes. Raises FooterProblem, also for an OSError of `read`."""
    if size == 0:
        raise FooterProblem(path, "is empty; delete it, or write the file again")
    try:
        tail = _exactly(read, max(0, size - _TAIL_BYTES), min(size, _TAIL_BYTES))
        return _footer(path, size, read, tail)
    except (NotAFooter, NotAMessage) as error:
        raise FooterProblem(path, f"has a footer that cannot be read ({error}); write the file again") from error
    except OSError as error:
        raise FooterProblem(path, f"cannot be read: {error.strerror or error}; allow it, or repair the disk") from error


def _footer(path: str, size: int, read: Read, tail: bytes) -> Footer:
    if tail[-4:] == _PARQUET_MAGIC and size > _PARQUET_TRAILER_BYTES:
        length = int.from_bytes(tail[-8:-4], "little")
        return parquet_footer(_section(size, read, tail, length, _PARQUET_TRAILER_BYTES))
    if tail[-4:] == _ENCRYPTED_MAGIC:
        raise FooterProblem(path, "has an encrypted footer; its columns are not known here")
    if tail[-1 - len(_ORC_MAGIC) : -1] == _ORC_MAGIC:
        length = tail[-1]
        postscript = _section(size, read, tail, length, 1)
        return orc_footer(_section(size, read, tail, footer_length(postscript), length + 1), postscript)
    raise FooterProblem(path, "is neither a Parquet nor an ORC file, or it is cut off; write the file again")


def _section(size: int, read: Read, tail: bytes, length: int, behind: int) -> bytes:
    """The bytes that end `behind` bytes before the end of the file."""
    if length == 0 or length + behind > size:
        raise NotAFooter(f"it is to have {length} bytes of a file of {size}")
    if length > FOOTER_BYTES_MAX:
        raise NotAFooter(f"it has {length} bytes; at most {FOOTER_BYTES_MAX} are read")
    if length + behind <= len(tail):
        return tail[len(tail) - behind - length : len(tail) - behind]
    return _exactly(read, size - behind - length, length)


def _exactly(read: Read, offset: int, length: int) -> bytes:
    found = read(offset, length)
    if len(found) != length:
        raise NotAFooter(f"the file is shorter than its {offset + length} bytes when it was listed")
    return found
