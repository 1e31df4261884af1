"""A copied schema is the migrated one."""

import sqlite3
from pathlib import Path

import pytest

from hms_gateway.storage.migrations import revisions
from hms_gateway.storage.migrations.revisions import migrate
from tests.support.private_mariadb import MariadbCopy, PrivateMariadb
from tests.support.shared_schema import upgrade


def content(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        return sorted(connection.iterdump())


def test_a_copy_is_what_the_revisions_make(tmp_path, monkeypatch):
    for name in ("first", "copy"):
        migrate(f"sqlite:///{tmp_path / name}")
    monkeypatch.setattr(revisions, "_upgrade", upgrade)
    migrate(f"sqlite:///{tmp_path / 'migrated'}")
    assert content(tmp_path / "copy") == content(tmp_path / "migrated")
    migrate(f"sqlite:///{tmp_path / 'copy'}")


@pytest.mark.mariadb
def test_a_copy_of_a_mariadb_is_what_it_is_of(
    mariadb_server: PrivateMariadb, mariadb_catalog: MariadbCopy, fresh_mariadb_database: str
) -> None:
    migrate(fresh_mariadb_database)
    migrated = mariadb_server.name_of(fresh_mariadb_database)
    mariadb_server.administer("CREATE DATABASE copied")
    mariadb_catalog.copy_to("copied")
    copied, wanted = (without_order(MariadbCopy(mariadb_server, database)) for database in ("copied", migrated))
    assert copied == wanted
    assert len(wanted) > 40


def without_order(copy: MariadbCopy) -> list[object]:
    """Indexes of a table are made in any order."""
    return [(sorted(made.replace(",", "").splitlines()), insert, rows) for made, insert, rows in copy.content]
