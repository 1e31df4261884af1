"""No root opens the data folder, a file that settings name, or the program."""

import sys
import sysconfig
from pathlib import Path

import pytest

import app
from app.files import Protected, RootRefused, check_roots, program_folders
from app.main import directories
from app.settings import Settings, SettingsError


@pytest.mark.parametrize(
    "root",
    [
        "file:/",
        "local:/",
        "file:{data_dir}",
        "file:{data_dir}/../data",
        "file:{above}",
        "file:{link}",
        f"file:{Path(app.__file__).parent}",
        f"file:{Path(app.__file__).parent}/idl",
        f"file:{Path(app.__file__).parent.parent}",
        f"file:{sys.prefix}",
        f"file:{sysconfig.get_paths()['purelib']}/somewhere",
        f"file:{sysconfig.get_paths()['stdlib']}",
        "file:{keys}",
        "file:{users}",
        "file:{database}",
        "file://elsewhere/tables",
        "tables",
    ],
)
def test_a_root_that_would_open_them_is_refused_by_name(root: str, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    for name in ("data", "keys", "users", "database", "tables"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(data_dir)
    settings = Settings(
        data_dir=data_dir,
        users_file=tmp_path / "users" / "users",
        tls_certificate=tmp_path / "tables" / "certificate",
        tls_key=tmp_path / "keys" / "key",
        database_url=f"sqlite:///{tmp_path}/database/file.db",
        file_roots=[
            root.format(
                data_dir=data_dir,
                above=tmp_path,
                link=tmp_path / "link",
                keys=tmp_path / "keys",
                users=tmp_path / "users",
                database=tmp_path / "database",
            )
        ],
    )
    with pytest.raises(SettingsError, match=r"^file_roots: .*; (name|write) "):
        directories(settings)


def test_the_warehouse_follows_the_same_rule(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^warehouse_dir: file:.* holds data_dir "):
        directories(Settings(data_dir=tmp_path / "data", warehouse_dir=f"file:{tmp_path}"))
    assert directories(Settings(data_dir=tmp_path)).manages(f"file:{tmp_path}/warehouse/t")


def test_a_link_to_a_key_counts_where_it_is_and_where_it_leads(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "there" / "key").write_text("key")
    (tmp_path / "here" / "key").symlink_to(tmp_path / "there" / "key")
    for name in ("here", "there"):
        with pytest.raises(RootRefused, match="holds tls_key"):
            check_roots([f"file:{tmp_path}/{name}"], [Protected(tmp_path / "here" / "key", "tls_key")])


def test_a_folder_for_tables_is_fine_beside_the_program(tmp_path: Path) -> None:
    check_roots([f"file:{tmp_path}/tables", "s3a://bucket/tables"], program_folders())
