"""The function that decides: what follows from grants, roles, owners and rules, and why."""

import pytest

from hms_gateway.catalog.rights.decisions import GROUP, NO_OWNERS, ROLE, USER, Decision, Owners, Permissions
from hms_gateway.catalog.rights.policy import Action, GrantedPrivilege, Policy, Principal, Securable
from hms_gateway.catalog.rights.rules_file import parse_rules
from hms_gateway.metastore.ports.store import EventId

NOBODY: frozenset[str] = frozenset()
ALICE, STAFF = Principal(USER, "alice"), Principal(GROUP, "staff")
ORDERS, SALES, EVERYTHING = Securable("sales", "orders"), Securable("sales"), Securable()
OBJECT_ACTIONS = [action for action in Action if action is not Action.ADMIN]


def decide(
    user: str, groups: frozenset[str], action: Action, thing: Securable, policy: Policy, owners: Owners = NO_OWNERS
) -> Decision:
    return Permissions(user, groups, policy, owners).decide(action, thing)


def allowed(policy: Policy, thing: Securable, groups: frozenset[str] = NOBODY, owners: Owners = NO_OWNERS) -> set[str]:
    return {action.value for action in Action if decide("alice", groups, action, thing, policy, owners).allowed}


def held(privilege: str, on: Securable, *, is_partial: bool = False, party: Principal = ALICE) -> Policy:
    return Policy(EventId(1), held={party: (GrantedPrivilege(privilege, on, is_partial),)})


@pytest.mark.parametrize(
    ("privilege", "on", "of_table", "of_database", "of_everything"),
    [
        ("select", ORDERS, {"see", "select"}, {"see"}, set()),
        ("select", SALES, {"see", "select"}, {"see", "select"}, set()),
        ("select", EVERYTHING, {"see", "select"}, {"see", "select"}, {"see", "select"}),
        ("drop", ORDERS, {"see", "drop", "lock"}, {"see"}, set()),
        ("create", SALES, set(), {"see", "create", "register"}, set()),
        ("show_database", SALES, set(), {"see"}, set()),
        ("nonsense", ORDERS, set(), set(), set()),
    ],
)
def test_what_a_grant_gives(
    privilege: str, on: Securable, of_table: set[str], of_database: set[str], of_everything: set[str]
) -> None:
    policy = held(privilege, on)
    assert allowed(policy, ORDERS) == of_table
    assert allowed(policy, SALES) == of_database
    assert allowed(policy, EVERYTHING) == of_everything
    assert allowed(policy, Securable("sales", "other")) == (set() if on == ORDERS else of_table)


def test_all_is_every_action_but_ownership_and_administration() -> None:
    assert allowed(held("all", ORDERS), ORDERS) == {action.value for action in OBJECT_ACTIONS} - {"own"}


def test_administration_of_an_unproven_name_does_not_count() -> None:
    rules = parse_rules('[[rule]]\nname = "all"\nusers = ["alice"]\nactions = ["admin"]\n')
    role, ops = Principal(ROLE, "admin"), Principal(ROLE, "ops")
    given = {role: (GrantedPrivilege("select", ORDERS),)}
    members = {ALICE: frozenset({"ops"}), ops: frozenset({"admin"})}
    options = {ALICE: frozenset({"ops", "admin"})}
    for policy in (Policy(rules=rules), Policy(members=members, options=options, held=given)):
        proven, unproven = (Permissions("alice", NOBODY, policy, may_administer=may) for may in (True, False))
        assert proven.admin_because
        assert unproven.admin_because is None
        assert not unproven.decide(Action.SELECT, ORDERS).allowed
        assert not unproven.may_grant_role("ops")
        assert "admin" not in unproven.roles
    by_setting = Policy(administrators=frozenset({"alice"}))
    assert Permissions("alice", NOBODY, by_setting, may_administer=False).admin_because


def test_a_grant_on_a_column_only_shows_the_table() -> None:
    assert allowed(held("select", ORDERS, is_partial=True), ORDERS) == {"see"}


def test_owners_may_do_everything_with_what_is_theirs() -> None:
    everything = {action.value for action in OBJECT_ACTIONS}
    assert allowed(Policy(databases={"sales": ALICE}), ORDERS) == everything
    assert allowed(Policy(databases={"sales": ALICE}), SALES) == everything
    owners = {ALICE: {"sales": frozenset({"orders"})}}
    assert allowed(Policy(), ORDERS, owners=owners) == everything
    assert allowed(Policy(), SALES, owners=owners) == {"see"}
    assert allowed(Policy(), Securable("sales", "other"), owners=owners) == set()


def test_what_public_owns_everybody_sees_and_creates_in() -> None:
    policy = Policy(databases={"sales": Principal(ROLE, "public")})
    assert allowed(policy, SALES) == {"see", "create"}
    assert allowed(policy, ORDERS) == set()


def test_roles_in_roles_and_circles_end() -> None:
    chain = {Principal(ROLE, f"r{n}"): frozenset({f"r{n + 1}"}) for n in range(100)}
    members = {STAFF: frozenset({"r0"}), **chain, Principal(ROLE, "r100"): frozenset({"r0"})}
    policy = Policy(members=members, held={Principal(ROLE, "r100"): (GrantedPrivilege("select", ORDERS),)})
    assert allowed(policy, ORDERS) == set()
    decision = decide("alice", frozenset({"staff"}), Action.SELECT, ORDERS, policy)
    assert decision.allowed
    assert decision.why.startswith("role r100 (granted to role r99) (granted to role r98)")
    assert decision.why.endswith("(granted to group staff) has select on table sales.orders")


def test_too_many_roles_are_bounded() -> None:
    members = {ALICE: frozenset(f"r{n}" for n in range(5_000))}
    assert len(Permissions("alice", NOBODY, Policy(members=members)).parties) < 1_010


def test_administrators() -> None:
    for policy in (
        Policy(administrators=frozenset({"alice"})),
        Policy(members={ALICE: frozenset({"admin"})}),
        Policy(rules=parse_rules('[[rule]]\nusers = ["alice"]\nactions = ["admin"]\n')),
    ):
        assert allowed(policy, EVERYTHING) == {action.value for action in Action}
    assert "admin" not in allowed(held("all", EVERYTHING), EVERYTHING)


def test_rules_name_databases_or_tables() -> None:
    rules = parse_rules(
        '[[rule]]\nname="team"\ngroups=["staff"]\nactions=["select","create"]\nobjects=["sales*","hr.public_*"]\n'
    )
    policy, groups = Policy(rules=rules), frozenset({"staff"})
    assert allowed(policy, ORDERS, groups) == {"see", "select"}
    assert allowed(policy, SALES, groups) == {"see", "select", "create", "register"}
    assert allowed(policy, Securable("hr", "public_holidays"), groups) == {"see", "select"}
    assert allowed(policy, Securable("hr", "people"), groups) == set()
    assert allowed(policy, Securable("hr"), groups) == {"see"}
    assert allowed(policy, ORDERS) == set()
    assert decide("alice", groups, Action.SELECT, ORDERS, policy).why == "rule 'team' for group staff"


def test_lists_show_what_decisions_allow() -> None:
    rules = parse_rules('[[rule]]\nusers=["alice"]\nactions=["select"]\nobjects=["sales.a_*"]\n')
    policy = Policy(rules=rules, held={ALICE: (GrantedPrivilege("drop", ORDERS),)})
    owners = {ALICE: {"sales": frozenset({"mine"})}}
    permissions = Permissions("alice", NOBODY, policy, owners)
    names = ["a_1", "b", "mine", "orders", "zzz"]
    assert permissions.visible("sales").select(names) == ["a_1", "mine", "orders"]
    assert permissions.visible("sales").select(names) == [
        name for name in names if permissions.decide(Action.SEE, Securable("sales", name)).allowed
    ]


def test_the_grant_option_is_of_one_privilege() -> None:
    policy = Policy(
        held={ALICE: (GrantedPrivilege("select", SALES, with_grant_option=True), GrantedPrivilege("drop", SALES))}
    )
    permissions = Permissions("alice", NOBODY, policy)
    assert permissions.may_grant("select", ORDERS).allowed
    assert not permissions.may_grant("drop", ORDERS).allowed
    assert not permissions.may_grant("select", Securable("hr", "people")).allowed
