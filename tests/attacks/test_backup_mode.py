"""The low finding on backups: a copy that everybody can read of a catalog that only its owner can."""

import os
from pathlib import Path

import pytest

from hms_gateway.storage.backup.archive import BackupFolder, Point
from hms_gateway.storage.backup.copying import back_up, restore
from tests.support.catalog import place_empty_database


@pytest.fixture
def database(tmp_path: Path) -> Path:
    place_empty_database(tmp_path / "metastore.db")
    return tmp_path / "metastore.db"


def backup(database: Path, files: dict[str, bytes] | None = None) -> os.stat_result:
    folder = database.parent / "backups"
    made = back_up(f"sqlite:///{database}", folder, lambda: 1_000, files or {}, str)
    assert [path.name for path in folder.iterdir()] == [made.backup.name]
    with BackupFolder(folder) as backups:
        assert {name: backups.file(made.backup, name) for name in made.backup.inventory.files} == (files or {})
    assert folder.stat().st_mode & 0o077 == 0
    return (folder / made.backup.name).stat()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_others_read_no_more_of_a_backup_than_the_group_of_the_database(database: Path, mode: int) -> None:
    database.chmod(mode)
    before = os.umask(0)
    try:
        assert backup(database).st_mode & 0o777 == mode & 0o660
    finally:
        os.umask(before)


def test_users_and_keys_are_for_the_owner_alone(database: Path) -> None:
    database.chmod(0o660)
    assert backup(database, {"users": b"secret"}).st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_backup_that_root_makes_belongs_to_the_owner_of_the_database(database: Path) -> None:
    os.chown(database, 12345, 54321)
    status = backup(database, {"users": b"secret"})
    assert (status.st_uid, status.st_gid) == (12345, 54321)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_first_database_that_root_makes_belongs_to_the_owner_of_the_folder(database: Path, tmp_path: Path) -> None:
    backup(database)
    place = tmp_path / "restored"
    place.mkdir()
    os.chown(place, 12345, 54321)
    with BackupFolder(database.parent / "backups") as folder:
        restore(f"sqlite:///{place / 'metastore.db'}", folder, folder.choose(Point()), 2_000, str, replaces=False)
    status = (place / "metastore.db").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (12345, 54321, 0o600)
