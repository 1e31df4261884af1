"""What decisions are made from: grants, roles, owners, rules and administrators, as frozen values."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from hms_gateway.catalog.rights.patterns import NamePattern
from hms_gateway.catalog.rights.places import LocationPattern
from hms_gateway.metastore.vocabulary.ids import EventId
from hms_gateway.metastore.vocabulary.locations import Location
from hms_gateway.structs import HiveObjectType, PrincipalType

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


class Party(NamedTuple):
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


class Thing(NamedTuple):
    """What an action is on: everything, a database, or a table. Names are normalised."""

    database: str = ""
    table: str = ""

    def __str__(self) -> str:
        if not self.database:
            return "the whole catalog"
        return f"table {self.database}.{self.table}" if self.table else f"database {self.database}"


EVERYTHING: Final = Thing()


class Held(NamedTuple):
    """A privilege that a party has been granted, in lower case. One on columns or partitions only shows the table.

    `grantor` is the user who has granted it, empty for another party.
    """

    privilege: str
    on: Thing
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
    members: Mapping[Party, frozenset[str]] = MappingProxyType({})
    options: Mapping[Party, frozenset[str]] = MappingProxyType({})
    held: Mapping[Party, tuple[Held, ...]] = MappingProxyType({})
    databases: Mapping[str, Party | None] = MappingProxyType({})
    places: Mapping[str, Location | None] = MappingProxyType({})
    rules: tuple[Rule, ...] = ()
    administrators: frozenset[str] = frozenset()
