"""grant, revoke, grants and may together: what is granted holds, through roles, chains of them and groups."""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import Database, PrincipalType, Role
from tests.support.readme import ROOT
from tests.support.server import PASSWORD, GatewayServer

GRANTOR = ("admin", PrincipalType.USER, False)
# Without grant option, by whom.
PLAIN = "false\tadmin"
CHAIN = [f"chain_{number}" for number in range(101)]


@pytest.fixture(scope="module")
def made(gateway: GatewayServer) -> Iterator[GatewayServer]:
    with MetastoreClient(gateway.url, (gateway.user, PASSWORD), verify=False) as client:
        client.call("create_database", Database("granted", ownerName="somebody"))
        for name in ("reader", *CHAIN):
            client.call("create_role", Role(name, 0, "admin"))
        client.call("grant_role", CHAIN[0], "eve", PrincipalType.USER, *GRANTOR)
        for member, role in pairwise(CHAIN):
            client.call("grant_role", role, member, PrincipalType.ROLE, *GRANTOR)
        yield gateway
        client.call("drop_database", "granted", False, True)
        for name in ("reader", *CHAIN):
            client.call("drop_role", name)


def hms(gateway: GatewayServer, command: str, *words: str) -> Result:
    where = ["-k", "--url", gateway.url]
    return CliRunner().invoke(application, [command, *words, *where], env={"HMS_GATEWAY_PASSWORD": PASSWORD})


@pytest.mark.parametrize(
    ("words", "party", "shown", "may"),
    [
        (("select", "granted", "ann"), "ann", f"user:ann\tselect\tgranted\t{PLAIN}", ("ann", "select", "granted.t")),
        (("ALL", "Granted", "user:ann"), "user:ann", f"user:ann\tall\tgranted\t{PLAIN}", ("ann", "drop", "granted")),
        (("insert", "*", "group:g"), "group:g", f"group:g\tinsert\t*\t{PLAIN}", ("ann", "insert", "x", "--group", "g")),
        (("drop", "granted", "role:reader"), "role:reader", f"role:reader\tdrop\tgranted\t{PLAIN}", None),
        (("select", "granted", "ann", "--grant-option"), "ann", "user:ann\tselect\tgranted\ttrue\tadmin", None),
        (("role", "reader", "ann"), "ann", "user:ann\trole\treader\t\\N\t\\N", None),
        (("role", "reader", "group:staff"), "group:staff", "group:staff\trole\treader\t\\N\t\\N", None),
    ],
)  # fmt: skip
def test_what_is_granted_is_shown_holds_and_is_revoked(made, words, party, shown, may):
    assert hms(made, "grant", *words).exit_code == 0
    assert shown in hms(made, "grants", party).stdout.splitlines()
    if may is not None:
        assert hms(made, "may", *may).exit_code == 0
    assert hms(made, "revoke", *words[:3]).exit_code == 0
    assert shown not in hms(made, "grants", party).stdout.splitlines()
    if may is not None:
        assert hms(made, "may", *may).exit_code == 1


def test_grants_of_everybody_are_shown(made):
    for party in ("ann", "group:staff"):
        assert hms(made, "grant", "select", "granted", party).exit_code == 0
    lines = hms(made, "grants").stdout.splitlines()
    assert {f"{party}\tselect\tgranted\tfalse\tadmin" for party in ("user:ann", "group:staff")} <= set(lines)
    for party in ("ann", "group:staff"):
        assert hms(made, "revoke", "select", "granted", party).exit_code == 0


@pytest.mark.parametrize("words", [(CHAIN[0], f"role:{CHAIN[-1]}"), ("reader", "role:reader")])
def test_a_circle_of_roles_is_refused(made, words):
    result = hms(made, "grant", "role", *words)
    assert result.exit_code == 1
    assert "no cycles allowed" in result.stderr


def test_a_chain_of_a_hundred_roles_is_followed_and_shown(made):
    assert hms(made, "may", "eve", "select", "granted").exit_code == 1
    assert hms(made, "grant", "select", "granted", f"role:{CHAIN[-1]}").exit_code == 0
    result = hms(made, "may", "eve", "select", "granted")
    assert result.stdout.startswith("yes: role chain_100 (granted to role chain_99)")
    assert "(granted to role chain_0) (granted to user eve) has select on database granted" in result.stdout
    assert hms(made, "revoke", "select", "granted", f"role:{CHAIN[-1]}").exit_code == 0


def test_a_group_that_nothing_names_is_noted(made):
    result = hms(made, "may", "ann", "select", "granted", "--group", "nowhere-named")
    assert result.exit_code == 1
    assert "note: no grant, role or rule names the group nowhere-named" in result.stdout


def test_roles_are_made_listed_and_dropped_by_commands(made):
    assert hms(made, "role", "create", "analyst").exit_code == 0
    again = hms(made, "role", "create", "analyst")
    assert (again.exit_code, "Role analyst already exists." in again.stderr) == (1, True)
    assert hms(made, "grant", "role", "analyst", "group:staff").exit_code == 0
    assert "analyst" in hms(made, "role", "list").stdout.splitlines()
    members = hms(made, "role", "list", "--format", "json", "analyst").stdout.splitlines()
    assert [(each["principal_name"], each["principal_type"]) for each in map(json.loads, members)] == [
        ("staff", "GROUP")
    ]
    assert hms(made, "role", "drop", "analyst").exit_code == 0
    assert "analyst" not in hms(made, "role", "list").stdout.splitlines()


def test_who_has_rights_on_an_object_is_shown(made):
    grants = [("select", "granted", "ann"), ("insert", "*", "bob"), ("select", "default", "eve")]
    for words in grants:
        assert hms(made, "grant", *words).exit_code == 0
    found = [line.split("\t")[:3] for line in hms(made, "grants", "--on", "granted").stdout.splitlines()]
    assert found[:2] == [["party", "right", "object"], ["user:somebody", "own", "granted"]]
    assert ["user:ann", "select", "granted"] in found
    assert ["user:bob", "insert", "*"] in found
    assert not any(each[2] == "default" for each in found)
    nobody = hms(made, "grants", "granted.orders")
    assert (nobody.exit_code, nobody.stdout.count("\n")) == (0, 2)
    assert "hms-gateway grants --on granted.orders" in nobody.stderr
    for words in grants:
        assert hms(made, "revoke", *words).exit_code == 0


def test_a_grant_says_what_may_be_a_slip(made):
    off = 'note: authorization is not "grants": every user may do everything'
    assert hms(made, "grant", "select", "granted", "ann").stderr.startswith(off)
    again = hms(made, "grant", "--grant-option", "select", "granted", "ann")
    assert again.exit_code == 1
    assert "to change its grant option, REVOKE it first" in again.stderr
    assert hms(made, "revoke", "select", "granted", "ann").stderr == ""


def test_the_blocks_of_the_document_run_in_order(made):
    """`may` answers no by its exit status."""
    text = (ROOT / "docs" / "rights.md").read_text("utf-8")
    lines = re.findall(r"^hms-gateway (.*)$", text, re.MULTILINE)
    assert any(line.startswith("role create") for line in lines)
    assert hms(made, "sql", "-e", "create database sales; create table sales.orders (id int)").exit_code == 0
    for line in lines:
        result = hms(made, *shlex.split(line, comments=True))
        assert result.exit_code in ((0, 1) if line.startswith("may ") else (0,)), (line, result.stderr)
    assert hms(made, "sql", "-e", "drop database sales cascade; drop role analyst").exit_code == 0
