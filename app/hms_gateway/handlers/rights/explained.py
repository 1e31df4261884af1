"""Decisions of the gateway about a user with their reasons, for administrators who ask."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from hms_gateway.catalog.arguments import database_name
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.call import Call
from hms_gateway.structs import MetaException, RightAnswer

if TYPE_CHECKING:
    from hms_gateway.catalog.rights.keeper import PolicyKeeper
    from hms_gateway.catalog.rights.policy import Policy, Securable

_OFF = 'authorization is not "grants": every user may do everything, whatever is said here'


class ExplainedRights:
    """By the policy that calls are decided by, or would be where rights are not enforced (`is_enforced`).

    `keeper` raises MetaException for rules that cannot be read, `groups_of` gives the groups of the groups file,
    `users` those of the password file, None where it cannot be read.
    """

    def __init__(
        self,
        store: Store,
        administrators: Collection[str],
        keeper: "Callable[[], PolicyKeeper]",
        groups_of: Callable[[str], frozenset[str]],
        users: Callable[[], Collection[str] | None],
        *,
        is_enforced: bool,
    ) -> None:
        self._store = store
        self._administrators = administrators
        self._keeper = keeper
        self._groups_of = groups_of
        self._users = users
        self._is_enforced = is_enforced

    def explain_right(
        self,
        call: Call,
        user: str,
        groups: Sequence[str] | None,
        action: str,
        db_name: str | None,
        tbl_name: str | None,
    ) -> RightAnswer:
        # Only here, since a gateway of one user needs none of it.
        from hms_gateway.catalog.rights.policy import Action, Securable

        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; what others may do is for the users that the setting "
                "administrators names"
            )
        if not user:
            raise MetaException("the user is empty; write the name that the user logs in with")
        actions = [each.value for each in Action]
        if action not in actions:
            raise MetaException(f"the action {action} is not known; the actions are {', '.join(actions)}")
        thing = Securable(normalize(database_name(db_name) or ""), normalize(tbl_name or ""))
        keeper, proved = self._keeper(), groups or ()
        decision = keeper.permissions(user, self._groups_of(user).union(proved)).decide(Action(action), thing)
        notes = [] if self._is_enforced else [_OFF]
        if not self._store.read(lambda snapshot: _exists(snapshot, thing)):
            notes.append(f"{thing} does not exist")
        policy = keeper.policy()
        notes += [f"no grant, role or rule names the group {one}" for one in proved if not _is_named(one, policy)]
        users = self._users()
        if users is not None and user not in users:
            notes.append(f"user {user} is not in the password file; a directory or an issuer may know the name")
        return RightAnswer(decision.allowed, decision.why, notes)


def _exists(snapshot: Snapshot, thing: "Securable") -> bool:
    if thing.table:
        return snapshot.table(thing.database, thing.table) is not None
    return not thing.database or snapshot.database(thing.database) is not None


def _is_named(group: str, policy: "Policy") -> bool:
    """True if any grant, role, owner or rule is about the group."""
    from hms_gateway.catalog.rights.decisions import GROUP

    parties = {*policy.held, *policy.members, *(owner for owner in policy.databases.values() if owner is not None)}
    return any(party.kind == GROUP and party.name == group for party in parties) or any(
        group in rule.groups for rule in policy.rules
    )
