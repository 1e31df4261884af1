"""grant, revoke and grants against a real gateway."""

import pytest
from click.testing import Result

from tests.cli.conftest import Run


@pytest.fixture
def stall(run: Run) -> None:
    if run("ls", "stall").exit_code:
        assert (
            run(
                "sql", "-k", "-e", "create database stall; create table stall.items (id int); create role clerk"
            ).exit_code
            == 0
        )


@pytest.fixture
def grants(run: Run) -> "Grants":
    return Grants(run)


class Grants:
    def __init__(self, run: Run) -> None:
        self._run = run

    def of(self, party: str) -> list[str]:
        return self.call("grants", party).stdout.expandtabs(1).splitlines()

    def call(self, command: str, *words: str) -> Result:
        return self._run(command, words[0], *words[1:])


@pytest.mark.usefixtures("stall")
@pytest.mark.parametrize("thing", ["stall.items", "stall", "*"])
def test_what_is_granted_is_shown_until_it_is_revoked(grants: Grants, thing: str) -> None:
    for party in ("zoe", "group:staff", "role:clerk"):
        assert grants.call("grant", "Select", thing, party).exit_code == 0
        shown = party if ":" in party else f"user:{party}"
        assert f"{shown} select {thing} false admin" in [" ".join(line.split()) for line in grants.of(party)]
        assert grants.call("revoke", "select", thing, party).exit_code == 0
        assert not any("select" in line for line in grants.of(party))


@pytest.mark.usefixtures("stall")
def test_a_refused_revoke_leads_to_what_the_party_has(grants: Grants) -> None:
    refused = grants.call("revoke", "select", "stall.items", "role:nobody")
    assert refused.exit_code == 1
    assert "hms-gateway grants role:nobody lists what it has" in refused.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("stall")
def test_a_group_that_has_nothing_yet_is_noted(grants: Grants) -> None:
    off = 'note: authorization is not "grants": every user may do everything, whatever is said here\n'
    note = f"{off}note: it is the first grant to group salse-team; is that its name?\n"
    assert grants.call("grant", "select", "stall.items", "group:salse-team").stderr == note
    assert grants.call("grant", "insert", "stall.items", "group:salse-team").stderr == off
    for privilege in ("select", "insert"):
        assert grants.call("revoke", privilege, "stall.items", "group:salse-team").exit_code == 0
    assert grants.call("grant", "role", "clerk", "group:salse-team").stderr == note
    assert "user salse is not in the password file" in grants.call("grant", "select", "stall.items", "salse").stderr


@pytest.mark.usefixtures("stall")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("selct", "stall.items", "zoe"), "the privilege selct is not known"),
        (("select", "stall.nothing", "zoe"), "NoSuchObjectException"),
        (("select", "nowhere", "zoe"), "NoSuchObjectException"),
        (("select", "stall.items.id", "zoe"), "catalog stall does not exist"),
        (("select", "stall.", "zoe"), "'stall.' is not a name"),
        (("select", "", "zoe"), "'' is not a name"),
        (("select", "stall.items", ""), "'' is not a party"),
        (("select", "stall.items", "group:"), "'group:' is not a party"),
        (("select", "stall.items", "team:a"), "'team:a' is not a party"),
    ],
)
def test_a_grant_that_would_do_nothing_is_refused(grants: Grants, words: tuple[str, str, str], expected: str) -> None:
    result = grants.call("grant", *words)
    assert result.exit_code in (1, 2)
    assert expected in result.stderr
