"""The values of decisions: grants, roles, owners, rules and administrators; patterns of names and places.

Places are compared by names of directories. A location is read as it is stored, without following links. One that could
mean another place than it seems to, to some file system or client (`..`, also encoded), belongs to no object and no
rule.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from hms_gateway.metastore.vocabulary.locations import (
    Location,
    LocationError,
    directory_name,
    normalize_location,
    parse_location,
)
from hms_gateway.metastore.vocabulary.names import EventId
from hms_gateway.rpc.structs import HiveObjectType, PrincipalType
from hms_gateway.rpc.structs.catalogs import shown_key

# As many as a file of rules may have objects, roughly.
_PATTERNS_KEPT: Final = 10_000


class NamePattern(msgspec.Struct, frozen=True):
    """A pattern over normalised names. Keys of databases in another catalog match none that begins otherwise."""

    text: str

    @property
    def matches_everything(self) -> bool:
        return not self.text.strip("*")

    def matcher(self) -> Callable[[str], object]:
        """A function of a name, which is true for a match."""
        return _compiled(self.text).fullmatch


@lru_cache(_PATTERNS_KEPT)
def _compiled(text: str) -> re.Pattern[str]:
    pattern = ".*".join(map(re.escape, re.sub(r"\*+", "*", text).split("*")))
    return re.compile(pattern if text.startswith("@") else f"(?!@){pattern}", re.DOTALL)


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
    """Rest of a location below the directory, no slash before it; `""` for the directory itself, None elsewhere."""
    top = directory.path.rstrip("/")
    if not f"{location.path.rstrip('/')}/".startswith(f"{top}/") or directory.file_system != location.file_system:
        return None
    return location.path[len(top) + 1 :]


def overlap(one: Location, other: Location) -> bool:
    """Tell whether one lies in the other, or both are the same."""
    return rest_below(one, other) is not None or rest_below(other, one) is not None


def first_below(database: Location, location: Location) -> Location | None:
    """The directory directly below the database's in which a location lies."""
    rest = rest_below(database, location)
    if not rest:
        return None
    return msgspec.structs.replace(database, path=f"{database.path.rstrip('/')}/{rest.partition('/')[0]}")


def is_of_table(name: str, table: str) -> bool:
    """Tell whether a directory of the database is a table's: its name, or its name and more behind a hyphen.

    Every other name may be that of a table to come. Engines write `orders`, `orders-<uuid>`, `orders-__PLACEHOLDER__`.
    """
    own = directory_name(table)
    return bool(own) and (name.lower() == own or name.lower().startswith(f"{own}-"))


def others_within(directory: Location, places: Iterable[Location]) -> list[Location]:
    """Places that lie below the directory."""
    return [place for place in places if rest_below(directory, place)]


def _is_doubtful(name: str) -> bool:
    if "%" not in name:
        return "::" in name
    while (decoded := unquote(name)) != name:
        name = decoded
    return any(part in (".", "..") for part in name.replace("\\", "/").split("/"))


ADMIN_ROLE: Final = "admin"
PUBLIC_ROLE: Final = "public"


class Action(StrEnum):
    """An action of a call on an object. The first is to know that it exists, the last three cannot be granted."""

    SEE = "see"
    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    LOCK = "lock"
    REGISTER = "register"
    OWN = "own"
    ADMIN = "admin"


# What grants and rules may name: the actions on objects, and everything.
ALL: Final = "all"
PRIVILEGES: Final = frozenset({*(action.value for action in Action), ALL} - {"register", "own", "admin"})
# A table is seen by who has any of these on it, on its database or on everything; `create` is of databases only.
OF_TABLES: Final = frozenset({*PRIVILEGES, "index"} - {"create"})


class Principal(NamedTuple):
    """A user, group or role; `kind` is Hive's PrincipalType."""

    kind: int
    name: str

    def __str__(self) -> str:
        return f"{_KIND_NAMES.get(self.kind, 'principal')} {self.name}"


_KIND_NAMES: Final = {
    int(PrincipalType.USER): "user",
    int(PrincipalType.ROLE): "role",
    int(PrincipalType.GROUP): "group",
}


class Securable(NamedTuple):
    """Object of an action: everything, a database, or a table. Names are normalised."""

    database: str = ""
    table: str = ""

    def __str__(self) -> str:
        if not self.database:
            return "the whole catalog"
        database = shown_key(self.database)
        return f"table {database}.{self.table}" if self.table else f"database {database}"


EVERYTHING: Final = Securable()


class GrantedPrivilege(NamedTuple):
    """A privilege that a party has been granted, in lower case. One on columns or partitions only shows the table.

    `grantor` is the user who has granted it, empty for another party.
    """

    privilege: str
    on: Securable
    is_partial: bool = False
    with_grant_option: bool = False
    grantor: str = ""


# Of what a privilege is partial.
PARTS: Final = frozenset({int(HiveObjectType.COLUMN), int(HiveObjectType.PARTITION)})


def privilege_name(text: str) -> str:
    """A privilege as decisions know it: `ALL PRIVILEGES` is `all`."""
    name = text.strip().lower().replace(" ", "_")
    return ALL if name == "all_privileges" else name


class Rule(msgspec.Struct, frozen=True):
    """One rule of the file: what these users, groups and roles may do with which objects, and locations for them."""

    name: str
    users: frozenset[str]
    groups: frozenset[str]
    roles: frozenset[str]
    actions: frozenset[str]
    objects: tuple[tuple[NamePattern, NamePattern | None], ...]
    locations: tuple[LocationPattern, ...] = ()


class Policy(msgspec.Struct, frozen=True):
    """Everything that decisions depend on, as of one version of the catalog.

    members   the roles that each party has been granted directly
    options   roles that a party may grant on
    held      what each party has been granted
    databases the owner of each database, None for none
    places    where each database lies, None for what cannot be compared
    """

    version: EventId = EventId(0)
    members: Mapping[Principal, frozenset[str]] = MappingProxyType({})
    options: Mapping[Principal, frozenset[str]] = MappingProxyType({})
    held: Mapping[Principal, tuple[GrantedPrivilege, ...]] = MappingProxyType({})
    databases: Mapping[str, Principal | None] = MappingProxyType({})
    places: Mapping[str, Location | None] = MappingProxyType({})
    rules: tuple[Rule, ...] = ()
    administrators: frozenset[str] = frozenset()
