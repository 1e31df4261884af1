"""What a start says about administrators and rights on everything."""

from hms_gateway.catalog.rights.decisions import GROUP, ROLE, USER
from hms_gateway.catalog.rights.keeper import standing_lines
from hms_gateway.catalog.rights.policy import EVERYTHING, GrantedPrivilege, Policy, Principal, Securable
from hms_gateway.catalog.rights.rules_file import parse_rules

ADMIN, ETL = Principal(ROLE, "admin"), Principal(ROLE, "etl")
RULES = """
[[rule]]
name = "operators"
groups = ["platform"]
users = ["dana"]
actions = ["admin"]

[[rule]]
name = "readers"
users = ["*"]
actions = ["select"]
objects = ["*"]

[[rule]]
name = "some"
users = ["*"]
actions = ["select"]
objects = ["sales_*", "*.public"]
"""


def test_a_new_catalog_has_one_line() -> None:
    policy = Policy(held={ADMIN: (GrantedPrivilege("all", EVERYTHING),)}, administrators=frozenset({"admin"}))
    assert standing_lines(policy) == ["administrators: user admin (setting)"]
    assert standing_lines(Policy()) == ["administrators: none"]


def test_each_way_to_be_an_administrator_and_to_have_everything_is_told() -> None:
    policy = Policy(
        members={Principal(USER, "bob"): frozenset({"ops", "etl"}), Principal(ROLE, "ops"): frozenset({"admin"})},
        held={
            ADMIN: (GrantedPrivilege("all", EVERYTHING),),
            ETL: (GrantedPrivilege("select", EVERYTHING), GrantedPrivilege("drop", Securable("sales"))),
            Principal(GROUP, "staff"): (GrantedPrivilege("all", EVERYTHING),),
            Principal(USER, "eve"): (GrantedPrivilege("all", Securable("sales")),),
        },
        administrators=frozenset({"root", "admin"}),
        rules=parse_rules(RULES),
    )
    assert standing_lines(policy) == [
        "administrators: user admin (setting), user root (setting), role ops (role admin), user bob (role admin), "
        "user dana, group platform (rule 'operators')",
        "rights on everything: role etl (granted to user bob) has select, group staff has all, "
        "user * (rule 'readers') has select",
    ]


def test_roles_in_a_circle_end() -> None:
    members = {ETL: frozenset({"admin"}), Principal(ROLE, "admin"): frozenset({"etl"})}
    assert standing_lines(Policy(members=members)) == ["administrators: role etl (role admin)"]


def test_lines_are_bounded() -> None:
    names = [f"{number:04}{'x' * 300}" for number in range(1_000)]
    policy = Policy(
        administrators=frozenset(names),
        members={Principal(USER, name): frozenset({"etl"}) for name in names},
        held={
            party: (GrantedPrivilege("all", EVERYTHING),)
            for party in (ETL, *(Principal(GROUP, name) for name in names))
        },
    )
    first, second = standing_lines(policy)
    assert first.endswith(", 980 more")
    assert second.endswith(", 981 more")
    assert len(first) < 2_000
    assert len(second) < 4_000
