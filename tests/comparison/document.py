"""Writes docs/differences.md from the table of differences: `python -m tests.comparison.document`."""

from pathlib import Path

from tests.comparison.answers import Difference
from tests.comparison.differences import DIFFERENCES
from tests.comparison.third_differences import THIRD, UNASKED
from tests.comparison.uncompared_differences import UNCOMPARED, Uncompared

FILE = Path(__file__).parents[2] / "docs" / "differences.md"
OPENING = """\
# Differences from Apache Hive Metastore

Written by `python -m tests.comparison.document` from the tables in `tests/comparison`; do not edit.

Every call is answered as Apache Hive Metastore 2.3.10 answers it, exceptions and their texts included. Tests compare
the two call by call: recorded answers, the same scripts on both, and random calls. This page lists the intended
differences. The comparison reads the same table, so any other difference fails a test.
"""
THIRD_OPENING = """\
# Differences from Apache Hive Metastore 3.1.3

Answers of 3.1.3 to the same scripts, but for those about indexes and odd arguments, are recorded and compared with ours
to callers of 3.1 and later. What is listed above holds here too; this comes on top.
"""
UNCOMPARED_OPENING = """\
# What the comparison does not see

Calls of Hive 3.1 and later, which no script makes, and behaviour that no answer shows: encodings, files,
times. Each entry names the test that shows what the gateway does.
"""


def text() -> str:
    """The whole document."""
    compared = [OPENING, *map(_section, DIFFERENCES), THIRD_OPENING, *map(_section, (*THIRD, *UNASKED))]
    return "\n".join([*compared, UNCOMPARED_OPENING, *(_section(entry, entry.test) for entry in UNCOMPARED)])


def _section(entry: Difference | Uncompared, test: str = "") -> str:
    methods = "every method" if entry.methods == "*" else ", ".join(f"`{name}`" for name in entry.methods.split())
    lines = [f"## {entry.name[0].upper()}{entry.name[1:]}", "", f"{methods}", ""]
    lines += [f"* Hive: {entry.hive}", f"* Here: {entry.ours}", f"* Why: {entry.why}"]
    lines += [f"* Test: `{test}`", ""] if test else [""]
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(text())
