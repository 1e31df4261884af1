"""Which locations the catalog takes: data that a drop would delete has to lie where this server may delete it."""

from typing import Final

from hms_gateway.metastore.checks.errors import file_errors_as_meta
from hms_gateway.metastore.ports.store import FileSystem, Reach
from hms_gateway.structs import MetaException

_ADVICE: Final = "name a directory around it in file_roots, or make the table external"


def check_place(files: FileSystem, location: str, *, is_owned: bool) -> None:
    """Whether a location may be recorded. Raises MetaException.

    `is_owned` means that the catalog owns the data there: it is a database's, or that of a table that is not external.
    What is not owned may lie outside the roots, and is then left alone.
    """
    with file_errors_as_meta():
        reach = files.reach(location)
        if reach is Reach.REFUSED:
            files.manages(location)
    if is_owned and reach is Reach.OUTSIDE:
        raise MetaException(f"{location} is outside the directories this server manages; {_ADVICE}")
