"""`hms-gateway may`: what a gateway with these settings decides about a user, and why."""

from typing import Final

import click

from hms_gateway.cli.catalog.grant_commands import check_object
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, fail_for_store, out
from hms_gateway.composition.main import database_url
from hms_gateway.metastore.ports.store import Snapshot, StoreError
from hms_gateway.metastore.rights.decisions import GROUP, Decision
from hms_gateway.metastore.rights.keeper import PolicyKeeper
from hms_gateway.metastore.rights.policy import EVERYTHING, Action, Policy, Thing
from hms_gateway.metastore.rights.rules_file import RulesError, RulesFile
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage import open_store

_ACTIONS: Final = tuple(action.value for action in Action)


def run_may(settings: Settings, user: str, action: str, text: str, groups: tuple[str, ...]) -> None:
    """Print yes or no and the reason. The exit status is 1 for no."""
    if action.lower() not in _ACTIONS:
        fail(f"the action {action} is not known", f"the actions are {', '.join(_ACTIONS)}")
    if not user:
        fail("the user is empty", "write the name that the user logs in with")
    check_object(text)
    thing = thing_named(text)
    try:
        store = open_store(database_url(settings), SystemClock(), settings.limits, 2)
        try:
            keeper = _keeper(settings, store)
            decision = keeper.sight(user, frozenset(groups)).decide(Action(action.lower()), thing)
            is_there = store.read(lambda snapshot: _exists(snapshot, thing))
            unknown = [group for group in groups if not _is_named(group, keeper.policy())]
        finally:
            store.close()
    except StoreError as error:
        fail_for_store(error)
    _print(settings, decision, [f"{thing} does not exist"] * (not is_there) + _notes(unknown))


def thing_named(text: str) -> Thing:
    """`*`, a database, or `database.table`."""
    database, _, table = text.partition(".")
    return EVERYTHING if text == "*" else Thing(normalize(database), normalize(table))


def _keeper(settings: Settings, store: object) -> PolicyKeeper:
    file = settings.authorization_rules_file
    try:
        rules = None if file is None else RulesFile(file)
    except RulesError as error:
        fail(str(error))
    return PolicyKeeper(store, frozenset(settings.administrators), rules)  # type: ignore[arg-type]


def _exists(snapshot: Snapshot, thing: Thing) -> bool:
    if thing.table:
        return snapshot.table(thing.database, thing.table) is not None
    return not thing.database or snapshot.database(thing.database) is not None


def _is_named(group: str, policy: Policy) -> bool:
    """Whether any grant, role, owner or rule is about the group."""
    parties = {*policy.held, *policy.members, *(owner for owner in policy.databases.values() if owner is not None)}
    return any(party.kind == GROUP and party.name == group for party in parties) or any(
        group in rule.groups for rule in policy.rules
    )


def _notes(unknown: list[str]) -> list[str]:
    return [f"no grant, role or rule names the group {group}" for group in unknown]


def _print(settings: Settings, decision: Decision, notes: list[str]) -> None:
    if settings.authorization != "grants":
        notes = ['authorization is not "grants": every user may do everything, whatever is said here', *notes]
    out.print(f"{'yes' if decision.allowed else 'no'}: {decision.why}", highlight=False, markup=False, soft_wrap=True)
    for note in notes:
        out.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    if not decision.allowed:
        raise click.exceptions.Exit(EXIT_REFUSED)
