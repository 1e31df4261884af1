"""The one function that decides: a caller, an action, an object and the policy in, yes or no and why out.

What follows from what:

* An administrator may do everything: a user of the setting, who has the role `admin`, or whom a rule gives `admin`.
  Role and rule count only with `may_administer`. Without it a caller grants no roles: they might contain `admin`.
* A grant on everything holds for every database, one on a database for each of its tables. `all` is every action.
* The owner of a database may do everything with it and with all that is in it, since dropping it ends both. Where the
  owner is the role `public`, everybody may see it and create in it, but no functions, whose code engines load for
  every user.
* The owner of a table may do everything with the table.
* A table is seen by who may do anything with it; a grant on some columns or partitions shows it and no more.
* A database is seen by who may do anything with it or sees one of its tables.
* `lock` (all but shared reads) comes with every action that changes the object.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from hms_gateway.catalog.rights.policy import (
    ADMIN_ROLE,
    ALL,
    OF_TABLES,
    PUBLIC_ROLE,
    Action,
    GrantedPrivilege,
    Policy,
    Principal,
    Rule,
    Securable,
)
from hms_gateway.metastore.vocabulary.locations import Location
from hms_gateway.rpc.structs import PrincipalType

USER: Final = int(PrincipalType.USER)
GROUP: Final = int(PrincipalType.GROUP)
ROLE: Final = int(PrincipalType.ROLE)
_PUBLIC: Final = Principal(ROLE, PUBLIC_ROLE)
# A caller with more roles than this has the nearest ones.
ROLES_MAX: Final = 1_000
REMEMBERED_MAX: Final = 10_000

_CHANGING: Final = ("insert", "update", "delete", "alter", "drop", "lock")
_TABLE_NEEDS: Final[Mapping[Action, frozenset[str]]] = {
    Action.SEE: OF_TABLES,
    Action.LOCK: frozenset({*_CHANGING, ALL}),
    Action.OWN: frozenset(),
    **{
        action: frozenset({action.value, ALL})
        for action in (Action.SELECT, Action.INSERT, Action.UPDATE, Action.DELETE, Action.ALTER, Action.DROP)
    },
    # Nothing is created in a table; its partitions are inserted.
    Action.CREATE: frozenset({ALL}),
    Action.REGISTER: frozenset({ALL}),
}
_DATABASE_NEEDS: Final[Mapping[Action, frozenset[str]]] = {
    **_TABLE_NEEDS,
    Action.SEE: frozenset({*OF_TABLES, "create", "show_database"}),
    Action.CREATE: frozenset({"create", ALL}),
    Action.REGISTER: frozenset({"create", ALL}),
    Action.LOCK: frozenset({"alter", "drop", "lock", ALL}),
}
_OF_PUBLIC_OWNER: Final = frozenset({Action.SEE, Action.CREATE})


class Decision(NamedTuple):
    """`why` names the grant, role, rule or ownership; for a refusal it says that there is none.

    `through` is a table because of which a database is seen; what depends on it ends with the table.
    """

    allowed: bool
    why: str
    through: Securable | None = None


# Tables that each party owns, by database.
Owners: TypeAlias = Mapping[Principal, Mapping[str, frozenset[str]]]
NO_OWNERS: Final[Owners] = MappingProxyType({})


class Visible(NamedTuple):
    """Which tables of a database a caller sees: all of them, or these and what one of the functions takes."""

    everything: bool
    names: frozenset[str] = frozenset()
    matchers: tuple[Callable[[str], object], ...] = ()

    def select(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are seen, in their order."""
        if self.everything:
            return list(names)
        seen = self.names
        if not self.matchers:
            return [name for name in names if name in seen]
        matchers = self.matchers
        return [name for name in names if name in seen or any(matches(name) for matches in matchers)]


class Permissions:
    """All that a policy says of one caller, made once; `decide` then takes a few look-ups."""

    def __init__(
        self,
        user: str,
        groups: frozenset[str],
        policy: Policy,
        owners: Owners = NO_OWNERS,
        *,
        may_administer: bool = True,
    ) -> None:
        self.user = user
        self.may_administer = may_administer
        self.policy = policy
        self.owners = owners
        # The parties that the caller is, with how it came to be each.
        self.parties = _parties(user, groups, policy, frozenset() if may_administer else {ADMIN_ROLE})
        self._rules = [(rule, matching) for rule in policy.rules if (matching := _rule_party(rule, self.parties))]
        self.admin_because = self._admin()
        self._held = _by_thing(self.parties, policy)
        self._tables_of: dict[str, list[str]] = {}
        for on in self._held:
            if on.table:
                self._tables_of.setdefault(on.database, []).append(on.table)
        self._known: dict[tuple[Action, Securable], Decision] = {}

    def decide(self, action: Action, thing: Securable) -> Decision:
        """Decide if the caller may do this. Pure: the same policy and owners give the same decision."""
        if self.admin_because is not None:
            return Decision(True, self.admin_because)
        remembered = self._known
        known = remembered.get((action, thing))
        if known is None:
            if len(remembered) >= REMEMBERED_MAX:
                remembered.clear()
            known = remembered[action, thing] = self._decided(action, thing)
        return known

    def owners_changed(self, owners: Owners) -> None:
        """Decide by these from now on. A decision that is being made meanwhile is not kept."""
        self.owners = owners
        self._known = {}

    def may_grant(self, privilege: str, thing: Securable) -> Decision:
        """Whether the caller may grant this privilege on: an owner, or who has it with the grant option."""
        owned = self.decide(Action.OWN, thing)
        if owned.allowed:
            return owned
        for on in _containers(thing):
            for held, party in self._held.get(on, ()):
                if held.with_grant_option and not held.is_partial and held.privilege in (privilege, ALL):
                    return Decision(True, f"{_of(party, self)} has the grant option of {held.privilege} on {on}")
        return Decision(False, f"{self.user} has no grant option of {privilege} on {thing}")

    def may_revoke(self, privilege: str, thing: Securable, of: Principal, *, is_partial: bool) -> Decision:
        """Decide if the caller may take a privilege from a party: an owner, or the only one who has granted it."""
        owned = self.decide(Action.OWN, thing)
        if owned.allowed:
            return owned
        standing = [
            held
            for held in self.policy.held.get(of, ())
            if (held.privilege, held.on, held.is_partial) == (privilege, thing, is_partial)
        ]
        if standing and all(held.grantor == self.user for held in standing):
            return Decision(True, f"{self.user} has granted {privilege} on {thing} to {of}")
        return Decision(False, f"{self.user} has not granted {privilege} on {thing} to {of}")

    def may_grant_role(self, role: str) -> bool:
        """Whether the caller has the role with its admin option."""
        if self.admin_because is not None:
            return True
        return self.may_administer and any(role in self.policy.options.get(party, ()) for party in self.parties)

    def may_use(self, location: Location) -> bool:
        """Whether a rule gives the caller the location, whatever lies there."""
        return any(pattern.covers(location) for rule, _ in self._rules for pattern in rule.locations)

    def visible(self, database: str) -> Visible:
        """Which tables of a database the caller sees."""
        if self.admin_because is not None or self._on_database(database, _TABLE_NEEDS[Action.SEE]) is not None:
            return Visible(True)
        names = {
            name for name in self._tables_of.get(database, ()) if self._of_table(Action.SEE, Securable(database, name))
        }
        names |= self._owned_in(database)
        matchers = []
        for rule, _ in self._rules:
            if rule.actions.isdisjoint(OF_TABLES):
                continue
            for db_pattern, tbl_pattern in rule.objects:
                if db_pattern.matcher()(database):
                    if tbl_pattern is None or tbl_pattern.matches_everything:
                        return Visible(True)
                    matchers.append(tbl_pattern.matcher())
        return Visible(False, frozenset(names), tuple(matchers))

    def _decided(self, action: Action, thing: Securable) -> Decision:
        why: str | None
        through = None
        if action is Action.ADMIN:
            why = None
        elif thing.table:
            why = self._of_table(action, thing)
        elif thing.database:
            why = self._of_database(action, thing)
            if why is None and action is Action.SEE:
                why, through = self._through_table(thing.database)
        else:
            why = self._on(thing, _DATABASE_NEEDS[action])
        if why is None:
            return Decision(False, f"no grant, rule or ownership gives {self.user} {action} on {thing}")
        return Decision(True, why, through)

    def _of_table(self, action: Action, thing: Securable) -> str | None:
        why = self._on_database(thing.database, _TABLE_NEEDS[action])
        if why is None:
            why = self._on(thing, _TABLE_NEEDS[action], partial_too=action is Action.SEE)
        if why is None:
            why = self._owner_of(thing)
        if why is None:
            why = self._by_rule(_TABLE_NEEDS[action], thing)
        return why

    def _on_database(self, database: str, needed: frozenset[str]) -> str | None:
        """Because of what holds for all tables of a database, but for rules."""
        why = self._on(Securable(), needed)
        if why is None:
            why = self._on(Securable(database), needed)
        if why is None:
            owner = self.policy.databases.get(database)
            if owner is not None and owner != _PUBLIC and owner in self.parties:
                why = f"{_of(owner, self)} owns database {database}"
        return why

    def _of_database(self, action: Action, thing: Securable) -> str | None:
        needed = _DATABASE_NEEDS[action]
        why = self._on_database(thing.database, needed)
        if why is None and action in _OF_PUBLIC_OWNER and self.policy.databases.get(thing.database) == _PUBLIC:
            why = f"role {PUBLIC_ROLE}, which everybody has, owns {thing}"
        if why is None:
            why = self._by_rule(needed, thing)
        return why

    def _through_table(self, database: str) -> tuple[str | None, Securable | None]:
        for name in self._tables_of.get(database, ()):
            table = Securable(database, name)
            why = self._of_table(Action.SEE, table)
            if why is not None:
                return f"{table} is in it: {why}", table
        owned = self._owned_in(database)
        if owned:
            table = Securable(database, min(owned))
            return f"{table} is in it: {self._owner_of(table)}", table
        for rule, party in self._rules:
            if not rule.actions.isdisjoint(OF_TABLES):
                for db_pattern, tbl_pattern in rule.objects:
                    if tbl_pattern is not None and db_pattern.matcher()(database):
                        return f"{_rule_text(rule, party)} is about tables in it", None
        return None, None

    def _on(self, on: Securable, needed: frozenset[str], *, partial_too: bool = False) -> str | None:
        for held, party in self._held.get(on, ()):
            if held.is_partial:
                if partial_too:
                    return f"{_of(party, self)} has {held.privilege} on a part of {on}"
            elif held.privilege in needed:
                return f"{_of(party, self)} has {held.privilege} on {on}"
        return None

    def _owner_of(self, thing: Securable) -> str | None:
        for party in self.parties:
            if party != _PUBLIC and thing.table in self.owners.get(party, {}).get(thing.database, ()):
                return f"{_of(party, self)} owns {thing}"
        return None

    def _owned_in(self, database: str) -> set[str]:
        owned: set[str] = set()
        for party in self.parties:
            if party != _PUBLIC:
                owned |= self.owners.get(party, {}).get(database, frozenset())
        return owned

    def _by_rule(self, needed: frozenset[str], thing: Securable) -> str | None:
        for rule, party in self._rules:
            if rule.actions.isdisjoint(needed):
                continue
            for db_pattern, tbl_pattern in rule.objects:
                if not db_pattern.matcher()(thing.database):
                    continue
                if tbl_pattern is None or (thing.table and tbl_pattern.matcher()(thing.table)):
                    return _rule_text(rule, party)
        return None

    def _admin(self) -> str | None:
        if self.user in self.policy.administrators:
            return f"user {self.user} is in the setting administrators"
        role = Principal(ROLE, ADMIN_ROLE)
        if role in self.parties:
            return f"{_of(role, self)} is an administrator"
        for rule, party in self._rules if self.may_administer else ():
            if Action.ADMIN.value in rule.actions:
                return _rule_text(rule, party)
        return None

    @cached_property
    def roles(self) -> frozenset[str]:
        """All that the caller has, `public` too."""
        return frozenset(party.name for party in self.parties if party.kind == ROLE)


def _parties(user: str, groups: frozenset[str], policy: Policy, without: Set[str]) -> dict[Principal, Principal | None]:
    """Each party that the caller is, with the one that brought it; the nearest first, circles ended, bounded. Roles of
    `without` do not count.
    """
    found: dict[Principal, Principal | None] = {Principal(USER, user): None}
    found.update((Principal(GROUP, group), None) for group in sorted(groups))
    waiting = list(found)
    found[_PUBLIC] = None
    waiting.append(_PUBLIC)
    for member in waiting:
        for role in sorted(policy.members.get(member, frozenset()) - without):
            party = Principal(ROLE, role)
            if party not in found and len(found) < ROLES_MAX + len(groups):
                found[party] = member
                waiting.append(party)
    return found


def _of(party: Principal, permissions: Permissions) -> str:
    """A party with the way by which the caller came to be it."""
    text, member = str(party), permissions.parties.get(party)
    while member is not None:
        text += f" (granted to {member})"
        member = permissions.parties.get(member)
    return text


def _rule_party(rule: Rule, parties: Mapping[Principal, Principal | None]) -> Principal | None:
    for party in parties:
        named = {USER: rule.users, GROUP: rule.groups, ROLE: rule.roles}.get(party.kind, frozenset())
        if party.name in named or "*" in named:
            return party
    return None


def _rule_text(rule: Rule, party: Principal) -> str:
    return f"rule {rule.name!r} for {party}"


def _by_thing(
    parties: Mapping[Principal, Principal | None], policy: Policy
) -> dict[Securable, list[tuple[GrantedPrivilege, Principal]]]:
    found: dict[Securable, list[tuple[GrantedPrivilege, Principal]]] = {}
    for party in parties:
        for held in policy.held.get(party, ()):
            found.setdefault(held.on, []).append((held, party))
    return found


def _containers(thing: Securable) -> Iterator[Securable]:
    yield thing
    if thing.table:
        yield Securable(thing.database)
    if thing.database:
        yield Securable()
