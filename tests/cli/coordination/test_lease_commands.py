"""`hms-gateway leases` against a real gateway."""

import json
import re
import threading

import pytest

from hms_gateway.cli.coordination import leases
from tests.cli.conftest import OTHER_USER


@pytest.fixture(autouse=True)
def no_leases(client):
    """What another test left would be in the way."""
    yield
    client.call("force_drop_lease", [])


def shown(run, *words):
    """Database, table, partition and type of each lease."""
    return [line.split("\t")[2:6] for line in run("leases", "show", *words).stdout.splitlines()[1:]]


def grabbed(run, *words, user="admin"):
    result = run("leases", "grab", *words, user=user)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_grab_show_extend_drop(run):
    words = ("-x", "sales.orders/ds=1", "--shared", "hr.*", "-s", "t", "--database", "sales", "--seconds", "60")
    lease_id = grabbed(run, *words)
    assert shown(run) == [
        ["hr", "\\N", "\\N", "SHARED"],
        ["sales", "orders", "ds=1", "EXCLUSIVE"],
        ["sales", "t", "\\N", "SHARED"],
    ]
    assert shown(run, "*") == shown(run)
    assert shown(run, "sales.*") == shown(run)[1:]
    first, *_ = json.loads(run("leases", "show", "--json").stdout)
    assert (first["lease_id"], first["user"]) == (int(lease_id), "admin")
    until = run("leases", "extend", lease_id, "hr.*", "--seconds", "600").stdout
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", until)
    first, second, _ = json.loads(run("leases", "show", "--json").stdout)
    assert first["end_utc"] > second["end_utc"]
    assert run("leases", "extend", lease_id, "--exclusive", "hr.*").exit_code == 0
    assert run("leases", "drop", lease_id, "sales.orders/ds=1").exit_code == 0
    assert shown(run) == [["hr", "\\N", "\\N", "EXCLUSIVE"], ["sales", "t", "\\N", "SHARED"]]
    assert run("leases", "drop", lease_id).exit_code == 0
    assert run("leases", "drop", lease_id).exit_code == 0
    assert shown(run) == []


def test_who_is_in_the_way_is_told(run):
    grabbed(run, "-x", "sales.orders")
    refused = run("leases", "grab", "-s", "sales.*", "--wait", "0")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert re.search(r"sales conflicts with exclusive lease \d+ of admin on sales.orders", refused.stderr)


@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (("grab",), 2, "the lease has no object"),
        (("grab", "-x", "a.b.c.d"), 2, "'a.b.c.d' is not an object"),
        (("grab", "-x", "t", "--seconds", "0"), 1, "must be above zero"),
        (("grab", "-x", "t", "--seconds", "315360000"), 1, "ExceedsMaxLeaseTimeException"),
        (("grab", "-x", "t", "--wait", "-1"), 1, "lease_wait_duration_sec must be in 0 to 300"),
        (("extend", "9999"), 1, "lease 9999 is not held any more"),
        (("force-drop",), 2, ""),
    ],
)
def test_mistakes_and_refusals(run, words, exit_code, text):
    result = run("leases", *words)
    assert result.exit_code == exit_code
    assert text in result.stderr


@pytest.mark.slow
def test_a_lease_belongs_to_its_user_until_an_administrator_takes_it(run):
    lease_id = grabbed(run, "-x", "sales.orders", user=OTHER_USER)
    for words in (("extend", lease_id), ("drop", lease_id)):
        refused = run("leases", *words)
        assert refused.exit_code == 1
        assert f"lease {lease_id} belongs to ann" in refused.stderr
    refused = run("leases", "force-drop", "*", user=OTHER_USER)
    assert refused.exit_code == 1
    assert "user ann is not an administrator" in refused.stderr
    grabbed(run, "-x", "hr.people")
    nothing = run("leases", "force-drop", "sales.nothing")
    assert (nothing.exit_code, nothing.stderr) == (1, "error: no lease has sales.nothing\n")
    dropped = run("leases", "force-drop", "sales.*")
    assert (dropped.exit_code, dropped.stderr) == (0, f"dropped from the leases {lease_id}\n")
    assert shown(run) == [["hr", "people", "\\N", "EXCLUSIVE"]]
    found = run("leases", "show", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["table"] for line in found] == ["people"]
    assert run("leases", "force-drop", "*").exit_code == 0
    assert shown(run) == []


def test_a_command_runs_under_the_lease(run, tmp_path):
    result = run("leases", "grab", "-x", "t", "--", "sh", "-c", f"echo $HMS_LEASE_ID > {tmp_path}/id; exit 4")
    assert result.exit_code == 4
    assert int((tmp_path / "id").read_text()) > 0
    assert shown(run) == []


def test_a_lease_is_extended_as_long_as_its_command_runs(run, client, tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "_EXTENSIONS_PER_LEASE", 36_000)
    is_extended = threading.Event()

    def watch():
        while not is_extended.wait(0.02):
            for lease in client.call("list_lease", []):
                if lease.end_utc > lease.start_utc + 3600:
                    is_extended.set()
        (tmp_path / "go on").touch()

    thread = threading.Thread(target=watch)
    thread.start()
    script = f"until [ -e '{tmp_path}/go on' ]; do sleep 0.02; done"
    result = run("leases", "grab", "-x", "t", "--", "sh", "-c", script)
    thread.join()
    assert result.exit_code == 0, result.output


def test_a_command_is_told_to_stop_when_its_lease_is_taken_away(run, client, monkeypatch, tmp_path):
    monkeypatch.setattr(leases, "_EXTENSIONS_PER_LEASE", 36_000)
    is_gone = threading.Event()

    def take_away():
        while not client.call("list_lease", []):
            is_gone.wait(0.02)
        client.call("force_drop_lease", [])

    thread = threading.Thread(target=take_away)
    thread.start()
    result = run("leases", "grab", "-x", "t", "--", "sleep", "60")
    thread.join()
    assert result.exit_code == 1
    assert re.search(r"the lease was lost and sleep was stopped: lease \d+ is not held any more", result.stderr)
