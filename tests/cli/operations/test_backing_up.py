"""`hms-gateway backup` and `restore`: the drill of docs/operations.md beside a gateway, users and keys, refusals."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.cli.operations import backing_up
from tests.support.catalog import place_empty_database
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer
from tests.support.warm_program import run_program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def run(*words: object) -> Result:
    return CliRunner().invoke(application, [str(word) for word in words])


def drill() -> list[str]:
    """The commands of the drill, as docs/operations.md shows them."""
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    _, _, behind = text.partition("**The drill.**")
    block = behind.partition("\n\n    ")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


def call(gateway: GatewayServer, method: str, arguments: str = "{}") -> dict:
    status, body = gateway.post(f'[1,"{method}",1,1,{arguments}]'.encode())
    assert status == 200, body
    return json.loads(body)[4]


def create(gateway: GatewayServer, name: str) -> None:
    assert call(gateway, "create_database", f'{{"1":{{"rec":{{"1":{{"str":"{name}"}}}}}}}}') == {}


def databases(gateway: GatewayServer) -> list[str]:
    return call(gateway, "get_all_databases")["0"]["lst"][2:]


LOCK = (
    '{"1":{"rec":{"1":{"lst":["rec",1,{"1":{"i32":3},"2":{"i32":1},"3":{"str":"sales"}}]},'
    '"3":{"str":"ann"},"4":{"str":"host"}}}}'
)


def lock(gateway: GatewayServer) -> int:
    answer = call(gateway, "lock", LOCK)["0"]["rec"]
    assert answer["2"]["i32"] == 1
    return answer["1"]["i64"]


def event_id(gateway: GatewayServer) -> int:
    return call(gateway, "get_current_notificationEventId")["0"]["rec"]["1"]["i64"]


@pytest.mark.parametrize(
    "kind",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.whole])],
)
def test_the_drill_of_the_document_beside_a_running_gateway(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = None if kind == "sqlite" else request.getfixturevalue("migrated_postgres_database")
    first, second, listed, back = drill()
    environment = {**os.environ, "HMS_GATEWAY_DATA_DIR": str(tmp_path / "var")}
    if database is not None:
        environment["HMS_GATEWAY_DATABASE_URL"] = database

    def command(line: str) -> subprocess.CompletedProcess[str]:
        words = line.replace("/backup/hms", str(tmp_path / "backups")).replace("EVENT", str(point)).split()
        assert words[0] == "hms-gateway"
        return run_program(words[1:], environment, seconds_max=PATIENCE_SECONDS)

    with GatewayServer(tmp_path / "var", database=database) as gateway:
        create(gateway, "sales")
        point = event_id(gateway)
        assert "everything is in" in command(first).stdout
        create(gateway, "lost")
        held = lock(gateway)
        assert "what changed is in" in command(second).stdout
        create(gateway, "later")
        newest = event_id(gateway)
        assert sorted(databases(gateway)) == ["default", "later", "lost", "sales"]
        assert [line.split("\t")[1] for line in command(listed).stdout.splitlines()[1:]] == [str(point), str(point + 1)]
        done = command(back)
        assert done.returncode == 0, done.stderr
        assert f"restored event {point} of" in done.stdout
        # The clients of before go on.
        assert sorted(databases(gateway)) == ["default", "sales"]
        assert "No such lock" in str(call(gateway, "check_lock", f'{{"1":{{"rec":{{"1":{{"i64":{held}}}}}}}}}'))
        assert lock(gateway) > held + 1_000_000
        create(gateway, "lost")
        assert event_id(gateway) > newest + 1_000_000
        events = call(gateway, "get_next_notification", '{"1":{"rec":{"1":{"i64":0}}}}')["0"]["rec"]["1"]["lst"][2:]
        kinds = [event["3"]["str"] for event in events]
        assert kinds == ["CREATE_DATABASE", "CREATE_DATABASE", "RESTORE_CATALOG", "CREATE_DATABASE"]


def test_users_and_keys_are_saved_and_restored_on_request_only(tmp_path: Path) -> None:
    data_dir, folder = tmp_path / "var", tmp_path / "backups"
    data_dir.mkdir()
    place_empty_database(data_dir / "metastore.db")
    (data_dir / "users").write_text("ann:hash\n")
    (data_dir / "secrets.key").write_text("a key")
    assert run("backup", "--data-dir", data_dir, folder).exit_code == 0
    refused = run("restore", "--data-dir", tmp_path / "new", folder, "--with-secrets")
    assert refused.exit_code == 2
    assert "has no users and keys; make backups --with-secrets" in refused.stderr
    assert run("backup", "--data-dir", data_dir, folder, "--with-secrets").exit_code == 0
    assert run("restore", "--data-dir", tmp_path / "new", folder).exit_code == 0
    assert not (tmp_path / "new" / "users").exists()
    (data_dir / "users").write_text("bob:hash\n")
    refused = run("restore", "--data-dir", data_dir, folder, "--with-secrets")
    assert refused.exit_code == 2
    assert f"{data_dir / 'users'}, {data_dir / 'secrets.key'} exists already" in refused.stderr
    assert (data_dir / "users").read_text() == "bob:hash\n"
    done = run("restore", "--data-dir", data_dir, folder, "--with-secrets", "--replace")
    assert done.exit_code == 0, done.output
    assert [(data_dir / name).read_text() for name in ("users", "secrets.key")] == ["ann:hash\n", "a key"]
    fresh = run("restore", "--data-dir", tmp_path / "fresh", folder, "--with-secrets")
    assert fresh.exit_code == 0, fresh.output
    assert (tmp_path / "fresh" / "users").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def with_secrets(tmp_path: Path) -> tuple[Path, Path]:
    """A data folder with users, whose certificate is a link, and a backup of it."""
    data_dir = tmp_path / "var"
    data_dir.mkdir()
    place_empty_database(data_dir / "metastore.db")
    (data_dir / "users").write_text("ann:hash\n")
    (tmp_path / "mine.pem").write_text("mine")
    (data_dir / "certificate.pem").symlink_to(tmp_path / "mine.pem")
    assert run("backup", "--data-dir", data_dir, tmp_path / "backups", "--with-secrets").exit_code == 0
    (data_dir / "users").write_text("bob:hash\n")
    (tmp_path / "mine.pem").write_text("another")
    return data_dir, tmp_path / "backups"


def test_a_restored_file_stays_where_a_link_points(with_secrets: tuple[Path, Path]) -> None:
    data_dir, folder = with_secrets
    assert run("restore", "--data-dir", data_dir, folder, "--with-secrets", "--replace").exit_code == 0
    assert (data_dir / "users").read_text() == "ann:hash\n"
    assert (data_dir / "certificate.pem").is_symlink()
    assert (data_dir.parent / "mine.pem").read_text() == "mine"


def test_a_signal_in_the_middle_of_a_restore_leaves_no_copies_of_users_and_keys(
    with_secrets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, folder = with_secrets
    names = sorted(path.name for path in data_dir.iterdir())

    def stopped(*_: object, **__: object) -> None:
        assert len(list(data_dir.iterdir())) > len(names)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(backing_up, "restore", stopped)
    done = run("restore", "--data-dir", data_dir, folder, "--with-secrets", "--replace")
    assert done.exit_code == 128 + signal.SIGTERM
    assert sorted(path.name for path in data_dir.iterdir()) == names
    assert (data_dir / "users").read_text() == "bob:hash\n"


def test_nothing_is_restored_where_users_and_keys_cannot_be(with_secrets: tuple[Path, Path]) -> None:
    data_dir, folder = with_secrets
    (data_dir / "certificate.pem").unlink()
    (data_dir / "certificate.pem").symlink_to("/dev/null/none")
    before = (data_dir / "metastore.db").read_bytes()
    refused = run("restore", "--data-dir", data_dir, folder, "--with-secrets", "--replace")
    assert refused.exit_code == 2
    assert f"{data_dir}/certificate.pem cannot be written: File exists; nothing is restored" in refused.stderr
    assert (data_dir / "users").read_text() == "bob:hash\n"
    assert (data_dir / "metastore.db").read_bytes() == before
    assert sorted(path.name for path in data_dir.iterdir()) == ["certificate.pem", "metastore.db", "users"]


def test_a_reader_that_has_enough_of_the_list_gets_no_text(with_secrets: tuple[Path, Path]) -> None:
    data_dir, folder = with_secrets
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "hms_gateway", "restore", "--list", str(folder), "--data-dir", str(data_dir)]
    with open(writing, "w") as stream:
        done = subprocess.run(program, stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == ""


def test_a_damaged_backup_is_passed_over_in_words(with_secrets: tuple[Path, Path]) -> None:
    data_dir, folder = with_secrets
    (folder / "hms-2.zip").touch()
    listed = run("restore", "--list", folder, "--data-dir", data_dir)
    assert (listed.exit_code, len(listed.stdout.splitlines())) == (0, 2)
    assert f"passed over: {folder}/hms-2.zip is damaged or cut off" in listed.stderr
    done = run("restore", folder, "--data-dir", data_dir.parent / "new", "--event", "0")
    assert done.exit_code == 0, done.output
    assert f"passed over: {folder}/hms-2.zip is damaged or cut off" in done.stderr


def test_directories_that_the_restored_catalog_misses_are_named(tmp_path: Path) -> None:
    data_dir, folder = tmp_path / "var", tmp_path / "backups"
    with GatewayServer(data_dir) as gateway:
        columns = '{"1":{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]},"7":{"rec":{}}}'
        table = f'{{"1":{{"str":"orders"}},"2":{{"str":"default"}},"7":{{"rec":{columns}}}}}'
        assert call(gateway, "create_table", f'{{"1":{{"rec":{table}}}}}') == {}
    assert run("backup", "--data-dir", data_dir, folder).exit_code == 0
    (data_dir / "warehouse" / "orders").rmdir()
    done = run("restore", "--data-dir", data_dir, folder, "--replace")
    assert done.exit_code == 1, done.output
    assert f"missing directory file:{data_dir}/warehouse/orders (table default.orders)\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("backup", "{}/file"), "/file cannot be written: "),
        (("backup", "{}/none/folder"), "/none/folder cannot be written: No such file or directory"),
        (("restore", "{}/none"), "folder {}/none not found; name the folder that hms-gateway backup wrote to"),
        (("restore", "{}"), "folder {} has no backup at all"),
        (("restore", "{}", "--time", "yesterday"), "--time 'yesterday' is not a time"),
        (("restore", "{}", "--time", "99999999999d"), "folder {} has no backup at that time or before"),
        (("restore", "{}", "--event", "-1"), "-1 is not in the range x>=0"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    place_empty_database(tmp_path / "metastore.db")
    (tmp_path / "file").touch()
    refused = run(*(word.format(tmp_path) for word in words), "--data-dir", tmp_path)
    assert refused.exit_code == 2
    assert text.format(tmp_path) in refused.stderr
    assert "Traceback" not in refused.output
