"""Parts of documents that are generated: the lines between a marker and the next `<!-- end -->`."""

from collections.abc import Iterable
from typing import Final

END: Final = "<!-- end -->"


def with_lines(document: str, marker: str, lines: Iterable[str]) -> str:
    """The document with what is between the marker and its end written anew. Raises ValueError when one is missing."""
    before, found, rest = document.partition(marker)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"{marker} or its {END} is missing")
    return "\n".join([before + marker, *lines, END]) + after
