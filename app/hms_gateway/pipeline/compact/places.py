"""Where new files go: below a hidden directory, so that neither MSCK nor a reader of the table's directory finds them,
and in a directory of the old one's name, which readers of the partition do not take for hidden.
"""

from typing import Final

HIDDEN: Final = ".hms-compact"


def base_of(table_location: str, *, is_partitioned: bool) -> str:
    """The directory that has the hidden one of a table: its own, or the one around it where the table itself moves."""
    if is_partitioned:
        return table_location.rstrip("/")
    return before_hidden(table_location).rpartition("/")[0]


def before_hidden(location: str) -> str:
    """Where something was before it was compacted for the first time."""
    head, hidden, rest = location.rstrip("/").partition(f"/{HIDDEN}/")
    return f"{head}/{rest.partition('/')[2]}" if hidden else head


def is_of_one(one: str, other: str) -> bool:
    """True if two directories are of one partition, before and after it was compacted."""
    return before_hidden(one) == before_hidden(other)


def target_of(base: str, run: str, location: str) -> str:
    """The new directory for `location`; empty for one that does not lie in `base`."""
    inside = before_hidden(location)
    if not inside.startswith(f"{base}/"):
        return ""
    return f"{base}/{HIDDEN}/{run}/{inside[len(base) + 1 :]}"
