"""Leases under 16 clients at once: each answer can be explained, and no two have what only one may have."""

from pathlib import Path

import pytest

from tests.linearizability.checks import check_lease_ids, check_leases, check_versions
from tests.linearizability.history import answered, by_world
from tests.linearizability.playing import OTHERS_OF_THE_WHOLE, SCALE, SPREAD, play
from tests.linearizability.tenures import check_tenures
from tests.linearizability.test_locks import on_servers, two_gateways

pytestmark = pytest.mark.slow


def test_on_the_database(database_url: str, tmp_path: Path) -> None:
    calls = play(tmp_path, "leases", [database_url], *SPREAD, "--worlds", SCALE)
    for world in by_world(calls).values():
        check_leases(world)
    check_lease_ids(calls)
    assert len(answered(calls, "grab")) > 35 * SCALE
    assert any(call.failure for call in calls if call.name == "write")


@pytest.mark.parametrize("database_url", OTHERS_OF_THE_WHOLE, indirect=True)
def test_leases_that_end_by_themselves(database_url: str, tmp_path: Path) -> None:
    calls = play(tmp_path, "tenures", [database_url], *SPREAD, "--worlds", SCALE, "--calls", 6)
    assert check_tenures(calls)
    assert any(call.failure for call in calls if call.name == "write")
    check_versions(calls)


@pytest.mark.whole
@on_servers
def test_leases_that_end_by_themselves_through_two_gateways(migrated_server_database: str, tmp_path: Path) -> None:
    with two_gateways(migrated_server_database, tmp_path) as addresses:
        calls = play(tmp_path, "tenures", addresses, "--worlds", SCALE, "--calls", 6)
    assert check_tenures(calls)
    assert any(call.failure for call in calls if call.name == "write")
