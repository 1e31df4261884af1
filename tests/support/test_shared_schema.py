"""A copied schema is the migrated one."""

import sqlite3
from pathlib import Path

from hms_gateway.storage.migrations import revisions
from hms_gateway.storage.migrations.revisions import migrate
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
