"""Which locations belong to an object by its name, and which a rule gives: compared by names of directories.

A location is read as it is stored, without following links. One that could mean another place than it seems to, to some
file system or client (`..`, also encoded), belongs to no object and no rule.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

import msgspec

from hms_gateway.metastore.vocabulary.locations import (
    Location,
    LocationError,
    directory_name,
    normalize_location,
    parse_location,
)

# A name directly below the warehouse with this end is the directory of a database, whether there is one or not.
DATABASE_END: Final = ".db"
_EVERYTHING_BELOW: Final = "/*"


class LocationPattern(msgspec.Struct, frozen=True):
    """A directory of a rule with all that is below it; `is_below` leaves the directory itself out."""

    directory: Location
    is_below: bool = False

    def covers(self, location: Location) -> bool:
        rest = rest_below(self.directory, location)
        return rest is not None and not (self.is_below and not rest)


def read_pattern(text: str) -> LocationPattern | None:
    """`s3://bucket/team`, or `s3://bucket/team/*` for what is below it; None for a text that is neither."""
    is_below = text.endswith(_EVERYTHING_BELOW)
    directory = text[:-1] if is_below else text
    location = read_place(directory)
    if location is None or "*" in directory or not parse_location(directory).scheme:
        return None
    return LocationPattern(location, is_below)


def read_place(text: str | None) -> Location | None:
    """A location in the form in which it is stored; None for one that cannot be compared."""
    try:
        location = parse_location(normalize_location(text))
    except LocationError:
        return None
    if "%" in location.authority or "::" in location.authority:
        return None
    return None if any(map(_is_doubtful, location.path.split("/"))) else location


def rest_below(directory: Location, location: Location) -> str | None:
    """What follows the directory, no slash before it; `""` for the directory itself, None for what is elsewhere."""
    top = directory.path.rstrip("/")
    if not f"{location.path.rstrip('/')}/".startswith(f"{top}/") or directory.file_system != location.file_system:
        return None
    return location.path[len(top) + 1 :]


def overlap(one: Location, other: Location) -> bool:
    """Whether one lies in the other, or both are the same."""
    return rest_below(one, other) is not None or rest_below(other, one) is not None


def first_below(database: Location, location: Location) -> Location | None:
    """The directory directly below the database's in which a location lies."""
    rest = rest_below(database, location)
    if not rest:
        return None
    return msgspec.structs.replace(database, path=f"{database.path.rstrip('/')}/{rest.partition('/')[0]}")


def is_of_table(name: str, table: str) -> bool:
    """Whether a directory in that of the database is a table's: its name, or its name and more behind a hyphen.

    Every other name may be that of a table to come. Engines write `orders`, `orders-<uuid>`, `orders-__PLACEHOLDER__`.
    """
    own = directory_name(table)
    return bool(own) and (name.lower() == own or name.lower().startswith(f"{own}-"))


def others_within(directory: Location, places: Iterable[Location]) -> list[Location]:
    """Those that lie below the directory."""
    return [place for place in places if rest_below(directory, place)]


def _is_doubtful(name: str) -> bool:
    if "%" not in name:
        return "::" in name
    while (decoded := unquote(name)) != name:
        name = decoded
    return any(part in (".", "..") for part in name.replace("\\", "/").split("/"))
