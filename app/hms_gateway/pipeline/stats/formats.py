"""Formats of files by their SerDe: which have footers, and how Spark reads them."""

from collections.abc import Mapping
from typing import Final

# Files of others are in the calendar that their format says, by whatever program they were written.
_PARQUET_OPTIONS: Final = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


def format_of(library: str) -> str:
    """What the files of a SerDe are: `parquet`, `orc`, or "" for what has no footers."""
    name = library.lower().rpartition(".")[2]
    return next((each for each in ("parquet", "orc") if name.startswith(each)), "")


def how_to_read(library: str, parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Spark's format and options for the files of a SerDe; "" where Spark has none."""
    name = library.lower().rpartition(".")[2]
    if name.startswith("parquet"):
        return "parquet", _PARQUET_OPTIONS
    if name.startswith("orc"):
        return "orc", {}
    if name == "lazysimpleserde":
        separator = parameters.get("field.delim", parameters.get("serialization.format", "\x01"))
        return "csv", {
            "sep": chr(int(separator)) if separator.isdecimal() and len(separator) < 4 else separator,
            "nullValue": parameters.get("serialization.null.format", "\\N"),
            "quote": "\0",
            "escape": parameters.get("escape.delim", "\0"),
            "emptyValue": "",
            "lineSep": "\n",
        }
    return ("json", {}) if name == "jsonserde" else ("", {})
