"""grant, revoke, grants and may together: what is granted holds, through roles, chains of them and groups."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.structs import Database, PrincipalType, Role
from tests.support.server import PASSWORD, GatewayServer

GRANTOR = ("admin", PrincipalType.USER, False)
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
    where = ["--data-dir", str(gateway.data_dir)] if command == "may" else ["-k", "--url", gateway.url]
    return CliRunner().invoke(application, [command, *where, *words], env={"HMS_GATEWAY_PASSWORD": PASSWORD})


@pytest.mark.parametrize(
    ("words", "party", "shown", "may"),
    [
        (("select", "granted", "ann"), "ann", "user:ann\tselect\tgranted", ("ann", "select", "granted.t")),
        (("ALL", "Granted", "user:ann"), "user:ann", "user:ann\tall\tgranted", ("ann", "drop", "granted")),
        (("insert", "*", "group:g"), "group:g", "group:g\tinsert\t*", ("ann", "insert", "x", "--group", "g")),
        (("drop", "granted", "role:reader"), "role:reader", "role:reader\tdrop\tgranted", None),
        (("select", "granted", "ann", "--grant-option"), "ann", "user:ann\tselect\tgranted with grant option", None),
        (("role", "reader", "ann"), "ann", "user:ann\trole\treader", None),
        (("role", "reader", "group:staff"), "group:staff", "group:staff\trole\treader", None),
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
    assert {"user:ann\tselect\tgranted", "group:staff\tselect\tgranted"} <= set(lines)
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
