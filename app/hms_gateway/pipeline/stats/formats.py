"""Formats of files by their SerDe: which have footers, and how Spark reads them."""

from collections.abc import Mapping
from typing import Final

import msgspec

# Files are in the calendar that their format says, also where an old Spark would have used another one.
PARQUET_OPTIONS: Final = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


def format_of(library: str) -> str:
    """What the files of a SerDe are: `parquet`, `orc`, or "" for what has no footers."""
    name = library.lower().rpartition(".")[2]
    return next((each for each in ("parquet", "orc") if name.startswith(each)), "")


def how_to_read(library: str) -> str:
    """Spark's format for the files of a SerDe; "" where it has none."""
    name = library.lower().rpartition(".")[2]
    if name == "lazysimpleserde":
        return "text"
    return format_of(library) or ("json" if name == "jsonserde" else "")


class TextForm(msgspec.Struct, frozen=True):
    """How LazySimpleSerDe writes a row as a line."""

    separator: str = "\x01"
    null: str = "\\N"
    escape: str = ""


def text_form(parameters: Mapping[str, str]) -> TextForm:
    """Of the SerDe's parameters; a separator may be a character or its number."""
    separator = parameters.get("field.delim") or parameters.get("serialization.format") or "\x01"
    if separator.isdecimal() and len(separator) < 4:
        separator = chr(int(separator))
    return TextForm(separator, parameters.get("serialization.null.format", "\\N"), parameters.get("escape.delim", ""))
