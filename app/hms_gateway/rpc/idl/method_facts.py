"""Facts about each method from `schema/methods.txt`: the one table of what the IDL does not say.

Among them are its rights: the objects that a call names, and the rights that it needs on them.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from hms_gateway.rpc.idl.parser import schema_file

TABLE: Final = "methods.txt"
OPEN: Final = "open"
ADMIN: Final = "admin"
ALWAYS: Final = "always"
ABOUT: Final = "about"
_ALL_GENERATIONS: Final = "2.3, 3.1, 4"
_VALUES: Final = {"changes": {"value", "answer"}, "suspendable": {"yes"}, "rates": {"pass"}, "hidden": {"refused"}}
_KEYS: Final = {*_VALUES, "partitions", "known_to", "cached_by", "write_ids_in", "needs", "answer", "called_by"}
_KINDS: Final = frozenset(
    {
        *("database", "table", "column", "function", "named", "leased", "component"),
        *("role", "location", "lock", "txn", "range", "lease", "by", "to"),
        *("object", "id", "other", "asked", "tables", "sources", "always"),
    }
)
# Kinds of needs that name what a reply is cached by.
_SCOPE_KINDS: Final = {
    "table": "table",
    "foreign_keys": "table",
    "columns": "column",
    "named_tables": "tables",
    "databases": "",
    "database": "database",
    "tables": "database",
    "functions": "database",
}


class Need(NamedTuple):
    """One row "needs": `drop table dbname name` is ("drop", "table", ("dbname", "name"))."""

    verb: str
    kind: str
    paths: tuple[str, ...]


class MethodRights(NamedTuple):
    """Rights of a method.

    needs    what the caller needs, all of it; empty for what every user may call
    refused  an object that the caller may not see is refused and not missing
    answer   what is left out of the answer, with the path of its database if it has one; empty for nothing
    names    where the call names more objects than those that it needs a right to
    """

    needs: tuple[Need, ...]
    refused: bool
    answer: tuple[str, ...]
    names: tuple[Need, ...]


class MethodFacts(NamedTuple):
    """One method of the table.

    changes       repeating a call could do something twice, so it is repeated only under a key
    keeps_value   a repetition under a key runs the handler with what its unit of work gave the first time
    suspendable   a call holds no thread while its unit of work waits
    passes_rates  the rates of a user never refuse it, and under load it does not wait for the user's other calls
    partitions_in  where the partitions are that it is paid for by
    known_to      the generations of clients that know the method, such as "3.1, 4"
    cached_by     what a reply depends on, a word for `cache.scopes`; empty when replies are not kept
    scope_paths   the arguments that name it
    write_ids_in  the argument that carries the reader's list of write ids, "header", or empty
    called_by     known clients that call it
    """

    changes: bool
    keeps_value: bool
    suspendable: bool
    passes_rates: bool
    partitions_in: tuple[str, ...]
    known_to: str
    cached_by: str
    scope_paths: tuple[str, ...]
    write_ids_in: str
    called_by: str
    rights: MethodRights


@cache
def method_facts() -> Mapping[str, MethodFacts]:
    """The facts by method name. Raises ValueError for a table that cannot be read."""
    return dict(read_facts(schema_file(TABLE).read_text("utf-8")))


def changes_something(method: str) -> bool:
    """True if a repeated call of `method` could do something twice; also for a method that is not in the table."""
    facts = method_facts().get(method)
    return facts is None or facts.changes


@cache
def method_rights() -> Mapping[str, MethodRights]:
    """The rights by method name."""
    return {name: facts.rights for name, facts in method_facts().items()}


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


def read_facts(text: str) -> Iterator[tuple[str, MethodFacts]]:
    """The methods of a table. Raises ValueError for one that cannot be read."""
    names: set[str] = set()
    for part in text.split("\n[")[1:]:
        head, *lines = part.splitlines()
        name = head.removesuffix("]")
        if name in names:
            raise ValueError(f"schema/{TABLE}: {name} is there twice")
        names.add(name)
        rows: dict[str, str] = {}
        needs: list[Need] = []
        for line in lines:
            if line:
                key, _, value = line.partition(" = ")
                if key not in _KEYS or not value or value not in _VALUES.get(key, {value}):
                    raise ValueError(f"schema/{TABLE}: {name} has an unknown row {line!r}; see the file's comments")
                if key in rows and key != "needs":
                    raise ValueError(f"schema/{TABLE}: {name} has two rows {key}")
                rows[key] = value
                if key == "needs":
                    needs.append(_need(value.split()))
        yield name, _facts(name, rows, needs)


def _facts(name: str, rows: Mapping[str, str], needs: Iterable[Need]) -> MethodFacts:
    names = tuple(need for need in needs if need.verb == ABOUT)
    needed = tuple(need for need in needs if need.verb not in (OPEN, ABOUT))
    if bool(needed) == any(need.verb == OPEN for need in needs):
        # Else what a call only names would let everybody make it.
        raise ValueError(f"schema/{TABLE}: {name} has to be {OPEN} or to need something; see the file's comments")
    cached_by = rows.get("cached_by", "")
    kind = _SCOPE_KINDS[cached_by] if cached_by else ""
    scopes = [need.paths for need in (*needed, *names) if need.kind == kind and kind]
    return MethodFacts(
        changes="changes" in rows,
        keeps_value=rows.get("changes") == "value",
        suspendable="suspendable" in rows,
        passes_rates="rates" in rows,
        partitions_in=tuple(rows.get("partitions", "").split()),
        known_to=rows.get("known_to", _ALL_GENERATIONS),
        cached_by=cached_by,
        scope_paths=() if not scopes else scopes[-1 if cached_by == "foreign_keys" else 0],
        write_ids_in=rows.get("write_ids_in", ""),
        called_by=rows.get("called_by", ""),
        rights=MethodRights(needed, "hidden" in rows, tuple(rows.get("answer", "").split()), names),
    )


def _need(words: list[str]) -> Need:
    verb, *rest = words
    kind = rest.pop(0) if rest and rest[0] in _KINDS else ""
    return Need(verb, kind, tuple(rest))
