"""Rights of each method from `schema/rights.txt`: the objects that a call names and the rights it needs on them."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from hms_gateway.idl.schema_files import schema_file

TABLE: Final = "rights.txt"
_KINDS: Final = frozenset(
    {
        *("database", "table", "column", "function", "named", "leased", "component"),
        *("role", "location", "lock", "txn", "range", "lease", "by", "to"),
        *("object", "id", "other", "asked", "tables", "sources", "always"),
    }
)
OPEN: Final = "open"
ADMIN: Final = "admin"
ALWAYS: Final = "always"
ABOUT: Final = "about"
REFUSED: Final = "refused"


class Need(NamedTuple):
    """One part of the column "needs": `drop table dbname name` is ("drop", "table", ("dbname", "name"))."""

    verb: str
    kind: str
    paths: tuple[str, ...]


class MethodRights(NamedTuple):
    """One row of the table.

    needs    what the caller needs, all of it; empty for what every user may call
    refused  an object that the caller may not see is refused and not missing
    answer   what is left out of the answer, with the path of its database if it has one; empty for nothing
    names    where the call names more objects than those that it needs a right to
    """

    needs: tuple[Need, ...]
    refused: bool
    answer: tuple[str, ...]
    names: tuple[Need, ...]


@cache
def method_rights() -> Mapping[str, MethodRights]:
    """The rights by method name. Raises ValueError for a table that cannot be read."""
    return dict(_rows(schema_file(TABLE).read_text("utf-8")))


@cache
def lasting_rights() -> Mapping[str, MethodRights]:
    """The needs of methods that hold while authorization is off, too: roles, grants and owners are administrators'."""
    found = {name: tuple(_lasting(rights.needs)) for name, rights in method_rights().items()}
    return {name: MethodRights(needs, True, (), ()) for name, needs in found.items() if needs}


def _lasting(needs: tuple[Need, ...]) -> Iterator[Need]:
    """Needs that hold in any case. The maker of an object names its owner: engines name the account they run as."""
    for need in needs:
        if need.verb == "give":
            yield need
        elif need.verb in ("grant", "revoke") or (need.verb, need.kind) == (ADMIN, ALWAYS):
            yield Need(ADMIN, ALWAYS, ())
        elif (need.verb, need.kind) == ("owned", "by"):
            yield Need("granted", "by", need.paths)


def _rows(text: str) -> Iterator[tuple[str, MethodRights]]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    next(lines)  # the names of the columns
    for line in lines:
        name, needs, hidden, answer = map(str.strip, line.split("|"))
        if not needs or hidden not in ("", REFUSED):
            raise ValueError(
                f"schema/{TABLE}: {name} needs nothing or has an unknown `hidden`; see the file's comments"
            )
        parts = [_need(part.split()) for part in needs.split(",")]
        names = tuple(part for part in parts if part.verb == ABOUT)
        needed = tuple(part for part in parts if part.verb not in (OPEN, ABOUT))
        if bool(needed) == any(part.verb == OPEN for part in parts):
            # Else what a call only names would let everybody make it.
            raise ValueError(f"schema/{TABLE}: {name} has to be {OPEN} or to need something; see the file's comments")
        yield name, MethodRights(needed, hidden == REFUSED, tuple(answer.split()), names)


def _need(words: list[str]) -> Need:
    verb, *rest = words
    kind = rest.pop(0) if rest and rest[0] in _KINDS else ""
    return Need(verb, kind, tuple(rest))
