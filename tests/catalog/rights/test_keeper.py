"""What the keeper of the policy remembers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.rights import keeper as keepers
from hms_gateway.catalog.rights.keeper import PolicyKeeper
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.catalog import NOW, place_empty_database
from tests.support.manual_clock import ManualClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    place_empty_database(tmp_path / "metastore.db")
    store = open_store(f"sqlite:///{tmp_path / 'metastore.db'}", ManualClock(NOW), Limits())
    yield store
    store.close()


def test_what_users_of_long_ago_own_is_forgotten(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "PERMISSIONS_MAX", 5)
    monkeypatch.setattr(keepers, "PARTIES_MAX", 30)
    keeper = PolicyKeeper(store, frozenset({"admin"}))
    for number in range(100):
        permissions = keeper.permissions(f"user{number}", frozenset({f"group{number}"}))
        assert keeper.parties <= 30 + len(permissions.parties)
