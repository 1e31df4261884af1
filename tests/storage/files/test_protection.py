"""No root opens the data folder, a file that settings name, or the program."""

import sys
import sysconfig
from pathlib import Path

import pytest

import hms_gateway
from hms_gateway.composition.places import directories
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.settings import Settings, SettingsError, TrustedProxy
from hms_gateway.storage.files.places import Protected, RootRefused, check_roots, program_folders


@pytest.mark.parametrize(
    "root",
    [
        "file:/",
        "local:/",
        "file:/proc/self/root",
        "file:/proc/1/root",  # which an account may follow or not
        "file:{data_dir}",
        "file:{data_dir}/../data",
        "file:{above}",
        "file:{link}",
        f"file:{Path(hms_gateway.__file__).parent}",
        f"file:{Path(hms_gateway.__file__).parent}/rpc",
        f"file:{Path(hms_gateway.__file__).parent.parent}",
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("users", "users_file"),
        ("secrets.key", "secrets_key_file"),
        ("certificate.pem", "tls_certificate"),
        ("key.pem", "tls_key"),
        ("metastore.db", "the database"),
        ("metastore.db-wal", "the database's wal file"),
    ],
)
def test_the_files_of_the_data_folder_count_before_they_are_made(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"^warehouse_dir: .* holds {said} "):
        directories(Settings(data_dir=tmp_path, warehouse_dir=f"file:{tmp_path}/{name}"))


def test_a_database_named_by_a_uri_is_refused_since_its_file_would_not_count(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path / "data",
        database_url=f"sqlite:///file:{tmp_path}/database/file.db?uri=true",
        file_roots=[f"file:{tmp_path}/database"],
    )
    with pytest.raises(StoreError, match="has uri=true; write the path itself"):
        directories(settings)


def test_the_authority_of_trusted_proxies_counts(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path / "data",
        file_roots=[f"file:{tmp_path}/keys"],
        trusted_proxy=TrustedProxy(
            addresses=["127.0.0.1"], user_header="SM_USER", authority=tmp_path / "keys" / "authority.pem"
        ),
    )
    with pytest.raises(SettingsError, match=r"holds trusted_proxy\.authority"):
        directories(settings)


def test_a_data_folder_above_the_working_folder_has_a_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert directories(Settings(data_dir=Path("../data"))).manages(f"file:{tmp_path}/data/warehouse/t")


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
