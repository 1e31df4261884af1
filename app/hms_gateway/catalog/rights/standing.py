"""The parties that may do everything by what is stored, in lines that an operator reads at the start of a gateway."""

from collections.abc import Iterable, Iterator
from typing import Final

from hms_gateway.catalog.rights.decisions import GROUP, ROLE, USER
from hms_gateway.catalog.rights.policy import ADMIN_ROLE, EVERYTHING, Action, Party, Policy, Rule

# Of more parties the number is said, and of longer names the beginning.
PARTIES_MAX: Final = 20
NAME_CHARACTERS_MAX: Final = 64


def standing_lines(policy: Policy) -> list[str]:
    """A line about administrators, and one about others who have rights on everything, if there are any."""
    lines = [f"administrators: {_joined(_administrators(policy))}"]
    others = list(_with_everything(policy))
    return [*lines, f"rights on everything: {_joined(others)}"] if others else lines


def _administrators(policy: Policy) -> Iterator[str]:
    yield from (f"{_text(Party(USER, name))} (setting)" for name in sorted(policy.administrators))
    yield from (f"{_text(party)} (role {ADMIN_ROLE})" for party in _members(policy, Party(ROLE, ADMIN_ROLE)))
    for rule in policy.rules:
        if Action.ADMIN.value in rule.actions:
            yield _of_rule(rule)


def _with_everything(policy: Policy) -> Iterator[str]:
    """Rights of the role admin are those of administrators."""
    for party, held in sorted(policy.held.items()):
        privileges = sorted({one.privilege for one in held if one.on == EVERYTHING and not one.is_partial})
        if privileges and party != Party(ROLE, ADMIN_ROLE):
            members = [_text(member) for member in _members(policy, party)]
            holders = f" (granted to {_joined(members)})" if members else ""
            yield f"{_text(party)}{holders} has {_joined(privileges)}"
    for rule in policy.rules:
        if any(database.matches_everything and table is None for database, table in rule.objects):
            yield f"{_of_rule(rule)} has {_joined(sorted(rule.actions))}"


def _members(policy: Policy, role: Party) -> list[Party]:
    """All that have a role, also by another one, the nearest first."""
    found: dict[Party, None] = {}
    waiting = [role]
    for having in waiting:
        if having.kind == ROLE:
            new = [one for one, roles in sorted(policy.members.items()) if having.name in roles and one not in found]
            found.update(dict.fromkeys(new))
            waiting += new
    return [one for one in found if one != role]


def _of_rule(rule: Rule) -> str:
    named = ((USER, rule.users), (GROUP, rule.groups), (ROLE, rule.roles))
    parties = [_text(Party(kind, name)) for kind, names in named for name in sorted(names)]
    return f"{_joined(parties)} (rule {rule.name[:NAME_CHARACTERS_MAX]!r})"


def _text(party: Party) -> str:
    return str(party)[:NAME_CHARACTERS_MAX]


def _joined(texts: Iterable[str]) -> str:
    every = list(texts)
    more = [f"{len(every) - PARTIES_MAX} more"] if len(every) > PARTIES_MAX else []
    return ", ".join(every[:PARTIES_MAX] + more) or "none"
