"""Reasons for which a gateway is not ready, and files that cannot be used as they are now."""

from pathlib import Path

import pytest

from hms_gateway.composition.health import FREE_BYTES_MIN, Health, ReadFile, files_of, folders_of
from hms_gateway.gateway.application import NotReady
from hms_gateway.gateway.auth.users import read_groups
from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.runtime.settings import Settings


def away() -> None:
    raise StoreUnavailable("the database cannot be reached", "secret")


def test_all_reasons_are_in_one_line(tmp_path: Path) -> None:
    free = [FREE_BYTES_MIN]
    ready = Health([lambda: None], tmp_path, {}, {}, lambda folder: free[0])
    ready.ready()
    free[0] -= 1
    with pytest.raises(NotReady, match=r"^the disk of the database is full \(16\.8 MB are free\): make room$"):
        ready.ready()
    with pytest.raises(NotReady, match=r"^the database cannot be reached; the disk of the database is full [^\n]*$"):
        Health([away], tmp_path, {}, {}, lambda folder: free[0]).ready()


def test_a_full_disk_is_no_reason_where_the_database_is_elsewhere(tmp_path: Path) -> None:
    health = Health([lambda: None], None, {"data_dir": tmp_path, "gone": tmp_path / "gone"}, {})
    health.ready()
    assert list(health.figures()["disk_free_bytes"]) == ["data_dir"]


def test_a_file_that_breaks_is_seen_and_one_that_is_mended_too(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    file = ReadFile(groups, read_groups)
    assert file.look()
    for text, is_unusable in (("team: ann\n", False), ("no group here\n", True), ("team: ann bob\n", False)):
        groups.write_text(text)
        assert (file.look(), file.look()) == (is_unusable, is_unusable)


def test_the_files_and_folders_are_those_of_the_settings(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, groups_file=tmp_path / "groups", warehouse_dir=f"file:{tmp_path}/w")
    assert folders_of(settings) == {"data_dir": tmp_path, "warehouse_dir": tmp_path / "w"}
    assert {name: file.look() for name, file in files_of(settings).items()} == {
        "users_file": True,
        "tokens_file": False,
        "groups_file": True,
    }
    assert "warehouse_dir" not in folders_of(Settings(data_dir=tmp_path, warehouse_dir="s3a://bucket/w"))
