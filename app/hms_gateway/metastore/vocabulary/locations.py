"""Locations (`file:/a/b`, `s3a://bucket/a`): normalised as Hadoop's Path does, joined, compared, default places.

Functions below `normalize_location` take normalised locations.
"""

import re
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.names import is_default_database, normalize
from hms_gateway.metastore.vocabulary.texts import remembered

FILE_SYSTEMS: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
"""Schemes that are other spellings of one file system, with its scheme by which fsspec knows it."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_SLASHES = re.compile("/{2,}")
_OUTSIDE_DIRECTORY_NAME = re.compile(r"[^A-Za-z0-9_]")


def file_system_of(scheme: str) -> str:
    """The scheme in the one spelling of its file system."""
    scheme = scheme.lower()
    return FILE_SYSTEMS.get(scheme, scheme)


class LocationError(ValueError):
    """A location cannot be used; the text is that of the MetaException clients see."""


class Location(msgspec.Struct, frozen=True):
    """`[scheme:][//authority]path`, taken apart; absent parts are empty. `str()` puts it together again."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        scheme = f"{self.scheme}:" if self.scheme else ""
        authority = f"//{self.authority}" if self.authority else ""
        return f"{scheme}{authority}{self.path}"

    @property
    def file_system(self) -> tuple[str, str]:
        """Scheme and authority in one spelling: two locations on one file system share them."""
        scheme, authority = file_system_of(self.scheme), self.authority.lower()
        return scheme, "" if scheme == "file" and authority == "localhost" else authority


def normalize_location(text: str | None) -> str:
    """The form in which a location is stored (semantics §3.1).

    Path characters are never decoded or encoded. A path without scheme is one of this machine; a relative one is
    refused, and so is `..`: what may be touched is decided by comparing paths. Raises LocationError.
    """
    if not text:
        missing = "a null" if text is None else "an empty"
        raise LocationError(f"java.lang.IllegalArgumentException: Can not create a Path from {missing} string")
    location = parse_location(text)
    if not location.path.startswith("/") and not (location.authority and not location.path):
        raise LocationError(
            f"java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute URI: {text}"
        )
    return str(Location(location.scheme or "file", location.authority, _normalized_path(location.path, text)))


@remembered(1_024, lambda location: len(location))
def is_normalized(location: str) -> bool:
    """Whether `normalize_location` would change nothing; then it does not change a partition's default one below."""
    try:
        return normalize_location(location) == location
    except LocationError:
        return False


def parse_location(text: str) -> Location:
    """Take a location apart without changing anything: a colon counts as the scheme's only before the first slash."""
    head, colon, rest = text.partition(":")
    if not colon or "/" in head:
        head, rest = "", text
    elif not _SCHEME.fullmatch(head):
        raise LocationError(
            f"java.lang.IllegalArgumentException: java.net.URISyntaxException: Illegal character in scheme name: {text}"
        )
    if not rest.startswith("//"):
        return Location(head, "", rest)
    authority, slash, path = rest[2:].partition("/")
    return Location(head, authority, slash + path)


def spellings(location: Location) -> list[str]:
    """The location by each scheme of its file system, as it is spelled first."""
    name = file_system_of(location.scheme)
    schemes = [location.scheme, name, *(scheme for scheme, of in FILE_SYSTEMS.items() if of == name)]
    return [str(msgspec.structs.replace(location, scheme=scheme)) for scheme in dict.fromkeys(schemes)]


def join(parent: str, child: str) -> str:
    """`child`, a relative path, below `parent`."""
    return f"{parent.rstrip('/')}/{child}"


def default_database_location(warehouse_root: str, database: str) -> str:
    """Where a database lies unless it says otherwise; `default` is the root itself (semantics §3.2)."""
    if is_default_database(database):
        return warehouse_root
    return join(warehouse_root, f"{normalize(database)}.db")


def database_path(warehouse_root: str, database: str, stored_location: str | None) -> str:
    """Where a database's tables go: its stored location, except for `default` (semantics §1.3)."""
    if is_default_database(database) or not stored_location:
        return default_database_location(warehouse_root, database)
    return stored_location


def default_table_location(database_location: str, table: str) -> str:
    """Where a table lies unless it says otherwise (semantics §3.2)."""
    return join(database_location, directory_name(table))


def directory_name(table: str) -> str:
    """A table's name as a directory's: all but letters, digits and `_` become `-<decimal code>-`, `a/b` `a-47-b`."""
    return _OUTSIDE_DIRECTORY_NAME.sub(lambda found: f"-{ord(found[0])}-", normalize(table))


def default_partition_location(table_location: str, partition_name: str) -> str:
    """Where a partition lies unless it says otherwise (semantics §3.2)."""
    return join(table_location, partition_name)


def is_default_table_location(location: str, database_location: str, table: str) -> bool:
    """Whether a rename of the table moves its directory: compared ignoring case (semantics §2.7 item 7)."""
    return location.lower() == default_table_location(database_location, table).lower()


def same_file_system(one: str, other: str) -> bool:
    """Whether two locations have the same scheme and authority, so that a directory can be renamed between them."""
    return parse_location(one).file_system == parse_location(other).file_system


def on_file_system_of(location: str, model: str) -> str:
    """The path of `location` with the scheme and authority of `model` (semantics §2.7 item 7, §2.11)."""
    return str(msgspec.structs.replace(parse_location(model), path=parse_location(location).path))


def is_under(parent: str, child: str) -> bool:
    """Whether `child` is `parent` itself or lies below it, by whole path components."""
    return relative_part(parent, child) is not None


def relative_part(parent: str, child: str) -> str | None:
    """What follows `parent` in `child`, with its leading slash (semantics §4.7); `""` if equal, None if not below."""
    above, below = parse_location(parent), parse_location(child)
    if above.file_system != below.file_system:
        return None
    path = above.path.rstrip("/")
    if below.path.rstrip("/") == path:
        return ""
    return below.path.removeprefix(path) if below.path.startswith(f"{path}/") else None


def moved_location(location: str, old: str, new: str) -> str | None:
    """`location` after the directory `old` was renamed to `new`; None when it did not lie there.

    Hive replaces the text of the old path wherever it occurs (semantics §2.7 item 7), so that renaming `/w/t` also
    changes `/w/t2/…`; only whole components count here.
    """
    relative = relative_part(old, location)
    return None if relative is None else new.rstrip("/") + relative


def _normalized_path(path: str, text: str) -> str:
    if "\0" in text:
        raise LocationError("java.lang.IllegalArgumentException: A location must not contain the character NUL")
    components = [component for component in _SLASHES.sub("/", path).split("/") if component != "."]
    if ".." in components:
        raise LocationError(f"java.lang.IllegalArgumentException: A location must not contain '..': {text}")
    return "/".join(components).rstrip("/") or "/"
