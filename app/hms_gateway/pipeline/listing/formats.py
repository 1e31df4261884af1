"""The format of a file, by how it begins."""

from typing import Final

HEAD_BYTES: Final = 8
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


def format_of(head: bytes) -> str:
    """`text` for everything that does not begin like a known format, `empty` for nothing."""
    if not head:
        return "empty"
    return next((name for beginning, name in _BEGINNINGS if head.startswith(beginning)), "text")
