"""What people see of locks and leases: aligned, with dates."""

import pytest

from hms_gateway.rpc.structs import LeaseObject, LockComponent, LockLevel, LockRequest, LockType, UnlockRequest
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def shown(gateway):
    def run(*words):
        environment = {"HMS_GATEWAY_URL": gateway.url, "HMS_GATEWAY_PASSWORD": gateway.password}
        with on_terminal(*words, "-k", environment=environment) as terminal:
            assert terminal.wait() == 0
            return terminal.text.splitlines()

    return run


def test_locks_are_aligned_and_have_dates(shown, client):
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "default", "seen")
    lock_id = client.call("lock", LockRequest([component], 0, "ann", "host", "job")).lockid
    try:
        header, line, *rows = shown("locks", "show", "--table", "default.seen")
        assert header.index("database") == line.index("-", 8) == rows[0].index("default")
        assert "T" in rows[0].split()[8]
        assert rows[0].split()[8].endswith("Z")
        assert "\t" not in "".join([header, *rows])
    finally:
        client.call("unlock", UnlockRequest(lock_id))


def test_leases_are_aligned(shown, client):
    lease_id = client.call("grab_lease", [LeaseObject("default", "seen", None, "x")], 60, 0)
    try:
        header, _, *rows = shown("leases", "show", "default.seen")
        assert header.index("user") == rows[0].index("admin")
    finally:
        client.call("drop_lease", lease_id, [])
