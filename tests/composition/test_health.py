"""Faults in which a gateway stays ready, and files that cannot be used as they are now."""

import resource
from pathlib import Path

import pytest

from hms_gateway.composition.health import Health, ReadFile, files_of, folders_of
from hms_gateway.gateway.auth.users import read_groups
from hms_gateway.runtime.settings import Settings
from tests.support.patience import until
from tests.support.server import GatewayServer


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_reads_go_on_with_a_broken_users_file_and_then_on_a_full_disk(tmp_path: Path) -> None:
    with GatewayServer(tmp_path) as server:

        def asked(method: str, arguments: str = "{}") -> tuple[int, bytes]:
            return server.post(f'[1,"{method}",1,1,{arguments}]'.encode())

        (tmp_path / "users").write_text("a typing error\n")
        until(lambda: asked("get_all_databases")[0] == 200 and "password file not read" in server.log_text())
        assert server.is_ready()
        # No file takes another byte.
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        status, text = asked("create_database", '{"1":{"rec":{"1":{"str":"new"}}}}')
        assert (status, b"the database file cannot be used" in text) == (503, True), text
        assert asked("get_databases", '{"1":{"str":"default"}}')[0] == 200
        assert server.is_ready()


def test_a_folder_that_is_not_there_has_no_free_bytes(tmp_path: Path) -> None:
    health = Health({"data_dir": tmp_path, "gone": tmp_path / "gone"}, {})
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
    elsewhere = Settings(data_dir=tmp_path, warehouse_dir="s3a://bucket/w", database_url=f"sqlite:///{tmp_path}/d/m.db")
    assert folders_of(elsewhere) == {"data_dir": tmp_path, "database_url": tmp_path / "d"}
