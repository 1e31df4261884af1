"""`hms-gateway may` asks the gateway."""

import pytest

from tests.cli.conftest import OTHER_USER, Run


def test_no_is_an_exit_status_and_a_reason(run: Run) -> None:
    result = run("may", "alice", "SELECT", "nowhere.orders")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "no: no grant, rule or ownership gives alice select on table nowhere.orders",
        'note: authorization is not "grants": every user may do everything, whatever is said here',
        "note: table nowhere.orders does not exist",
        "note: user alice is not in the password file; a directory or an issuer may know the name",
    ]


def test_yes_names_what_gives_it(run: Run) -> None:
    result = run("may", "admin", "drop", "*", "--group", "stuff")
    assert result.exit_code == 0
    assert result.stdout.startswith("yes: user admin is in the setting administrators\n")
    assert "note: no grant, role or rule names the group stuff" in result.stdout


@pytest.mark.slow
def test_what_cannot_be_asked_is_an_error(run: Run) -> None:
    assert "'a.b.c.d' is not a name" in run("may", "alice", "see", "a.b.c.d").stderr
    assert "the user is empty" in run("may", "", "see", "*").stderr
    assert "the action look is not known" in run("may", "alice", "look", "*").stderr
    assert "is not an administrator" in run("may", "alice", "see", "*", user=OTHER_USER).stderr
