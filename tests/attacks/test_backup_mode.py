"""The low finding on backups: a copy that everybody can read of a catalog that only its owner can."""

import os
import sqlite3
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.serving import CALL
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer
from tests.support.warm_program import run_program


def backup(folder: Path, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_program(["backup", "--data-dir", str(folder), *words, str(file)], {}, seconds_max=PATIENCE_SECONDS)


def create(gateway: GatewayServer, name: str) -> None:
    body = f'[1,"create_database",1,1,{{"1":{{"rec":{{"1":{{"str":"{name}"}}}}}}}}]'.encode()
    assert gateway.post(body)[0] == 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a gateway that has run, and has a database `sales`."""
    folder = tmp_path_factory.mktemp("backup")
    with GatewayServer(folder) as gateway:
        create(gateway, "sales")
    return folder


def test_a_copy_of_a_running_gateway_has_its_mode_and_can_be_restored(tmp_path):
    file = tmp_path / "copy.db"
    with GatewayServer(tmp_path / "var") as gateway:
        create(gateway, "sales")
        with ExitStack() as afterwards:
            afterwards.callback(os.umask, os.umask(0))
            done = backup(tmp_path / "var", file)
        assert (done.returncode, done.stdout) == (0, f"the database is in {file}\n")
        create(gateway, "later")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name != "var"] == ["copy.db"]
    # As docs/operations.md says.
    database = tmp_path / "var" / "metastore.db"
    os.replace(file, database)
    for name in ("metastore.db-wal", "metastore.db-shm"):
        (tmp_path / "var" / name).unlink(missing_ok=True)
    with GatewayServer(tmp_path / "var") as gateway:
        names = gateway.post(CALL)[1]
        assert b'"sales"' in names
        assert b'"later"' not in names
        create(gateway, "after")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_others_read_no_more_of_the_copy_than_its_group(folder, tmp_path, mode):
    database = folder / "metastore.db"
    database.chmod(mode)
    assert backup(folder, tmp_path / "copy.db").returncode == 0
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == mode & 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_copy_that_root_makes_belongs_to_the_owner_of_the_database(folder, tmp_path):
    os.chown(folder / "metastore.db", 12345, 54321)
    try:
        assert backup(folder, tmp_path / "copy.db").returncode == 0
    finally:
        os.chown(folder / "metastore.db", 0, 0)
    status = (tmp_path / "copy.db").stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)


def test_nothing_is_overwritten(folder, tmp_path):
    file, link = tmp_path / "copy.db", tmp_path / "link.db"
    file.write_text("precious")
    link.symlink_to(tmp_path / "nowhere")
    for target in (file, link, tmp_path):
        refused = backup(folder, target)
        assert refused.returncode == 2
        assert "exists already" in refused.stderr
    assert file.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "link.db"]


def test_a_damaged_database_gives_no_copy(folder, tmp_path):
    damaged = tmp_path / "var" / "metastore.db"
    damaged.parent.mkdir()
    content = bytearray((folder / "metastore.db").read_bytes())
    content[20 * 4096 : 40 * 4096] = b"\xa5" * 20 * 4096
    damaged.write_bytes(content)
    refused = backup(damaged.parent, tmp_path / "copy.db")
    assert refused.returncode == 2
    assert "is damaged" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["var"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("--database", "postgresql://u:hidden@h:7/cat"),
            "; pg_dump --host=h --port=7 --username=u --format=custom --file=/tmp/none/copy.db cat",
        ),
        (("--database", "postgresql:///cat"), "; pg_dump --format=custom"),
        (("--database", "mariadb://u:hidden@h/cat"), "; mariadb-dump --host=h --user=u --single-transaction --result-"),
        (("--database", "sqlite:////tmp/none/none.db"), "/tmp/none/none.db not found"),
        ((), "/tmp/none/copy.db cannot be written: make the folder /tmp/none first"),
    ],
)  # fmt: skip
def test_what_cannot_be_copied_is_one_line(folder, words, text):
    refused = backup(folder, Path("/tmp/none/copy.db"), *words)
    assert refused.returncode == 2
    assert text in refused.stderr
    assert "hidden" not in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_copy_holds_nothing_that_was_deleted(folder, tmp_path):
    var = tmp_path / "var"
    var.mkdir()
    (var / "metastore.db").write_bytes((folder / "metastore.db").read_bytes())
    with sqlite3.connect(var / "metastore.db") as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE notes (note TEXT)")
        connection.execute("INSERT INTO notes VALUES (?)", ["a secret of yesterday" * 10])
        connection.commit()
        connection.execute("DELETE FROM notes")
    connection.close()
    assert b"a secret of yesterday" in (var / "metastore.db").read_bytes()
    assert backup(var, tmp_path / "copy.db").returncode == 0
    assert b"a secret of yesterday" not in (tmp_path / "copy.db").read_bytes()
