"""What the keeper of the policy remembers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.rights import keeper as keepers
from hms_gateway.catalog.rights.keeper import PolicyKeeper
from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import Database
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.backup.archive import BackupFolder, Point
from hms_gateway.storage.backup.copying import back_up, restore
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


@pytest.mark.slow
def test_rights_are_those_of_a_restored_catalog(store: SqlStore, tmp_path: Path) -> None:
    keeper = PolicyKeeper(store, frozenset())
    assert keeper.policy().databases == {}
    place_empty_database(tmp_path / "other.db")
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}", ManualClock(NOW), Limits())
    other.write(lambda tx: tx.insert_database(Database("d", None, "file:/d", {}, ownerName="ann")))
    # An event of the other catalog that would be the next one of this.
    other.write(lambda tx: tx.append_event(Event("CREATE_TABLE", "d", "t", "")))
    other.close()
    back_up(f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "backups", lambda: 1_000, {}, str)
    with BackupFolder(tmp_path / "backups") as folder:
        restore(f"sqlite:///{tmp_path / 'metastore.db'}", folder, folder.choose(Point()), 9_000, str, replaces=True)
    assert {name: owner and owner.name for name, owner in keeper.policy().databases.items()} == {"d": "ann"}
