"""The low findings on starts: too few open files, a damaged database, folders that cannot be written."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from hms_gateway.cli.operations.start_checks import start_problems
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.storage.dialects.integrity import CHECKED_AT_START_BYTES
from hms_gateway.storage.files.remote import missing_extra
from hms_gateway.storage.migrations.revisions import migrate
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import GatewayServer
from tests.support.warm_program import COMMAND, run_program

FEW_FILES = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh")


def ended(*words: str, before: tuple[str, ...] = (), **variables: str) -> list[str]:
    """The output of a start that must fail; `before` is a command that starts it."""
    serve = ("serve", "--port", "0", *words)
    if before:
        process = subprocess.run(
            [*before, COMMAND, *serve], capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=variables
        )
    else:
        process = run_program(serve, variables, seconds_max=PATIENCE_SECONDS)
    assert process.returncode == 2, process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    assert "made the user" not in process.stdout
    return process.stderr.splitlines()


@pytest.fixture
def folder(tmp_path):
    """Of a gateway that has run."""
    with GatewayServer(tmp_path):
        pass
    return tmp_path


def damage(database: Path, page: int, pages: int = 3) -> None:
    with database.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096 * pages)


def test_too_few_open_files_are_named_with_the_number_needed(tmp_path):
    [said] = ended("--data-dir", str(tmp_path), before=FEW_FILES)
    assert said.startswith("error: the limit of open files is 64; a gateway needs 216")
    assert "connections_max" in said
    assert not list(tmp_path.iterdir())


def test_a_damaged_database_is_named(folder):
    damage(folder / "metastore.db", 20)
    [said] = ended("--data-dir", str(folder))
    assert said.startswith(f"error: database {folder / 'metastore.db'} is damaged (")
    assert "restore a backup" in said


def test_what_is_no_database_is_named(folder):
    (folder / "metastore.db").write_bytes(b"something else" * 1000)
    [said] = ended("--data-dir", str(folder))
    assert "is damaged (file is not a database)" in said


def test_damage_of_a_large_database_is_found_after_the_start(folder):
    database = folder / "metastore.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE filling (content TEXT)")
        rows = ((f"{number:05}" * 200,) for number in range(CHECKED_AT_START_BYTES // 900))
        connection.executemany("INSERT INTO filling VALUES (?)", rows)
    connection.close()
    damage(database, database.stat().st_size // 4096 - 40)
    with GatewayServer(folder) as gateway:
        until(lambda: f"the database {database} is damaged" in gateway.log_text())
        until(lambda: metric(gateway, "hms_gateway_database_damaged") == 1)


def test_a_sound_database_says_so(folder):
    with GatewayServer(folder) as gateway:
        assert metric(gateway, "hms_gateway_database_damaged") == 0


def metric(gateway: GatewayServer, name: str) -> float | None:
    with gateway.connection() as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)


def test_all_problems_are_named_at_once_and_nothing_is_made(tmp_path):
    (tmp_path / "users").write_text("garbage\n")
    said = ended(
        *("--data-dir", "/proc/nowhere/var", "--tls-certificate", "/none.pem", "--tls-key", "/none-key.pem"),
        before=FEW_FILES,
        HMS_GATEWAY_USERS_FILE=str(tmp_path / "users"),
        HMS_GATEWAY_WAREHOUSE_DIR="file:/sys/warehouse",
    )
    assert all(line.startswith("error: ") for line in said)
    for text in ("open files", "/proc: it cannot be written", "/sys: it cannot be written", "/none.pem", "line 1"):
        assert [text in line for line in said].count(True) == 1, (text, said)
    assert len(said) == 5


@pytest.mark.parametrize(
    ("user", "shared", "said"),
    [
        (" spark", [], "network_user ' spark' is not a readable name"),
        ("a\tb", [], "network_user 'a\\tb' is not a readable name"),
        (
            "bob",
            ["eve"],
            "network_user bob has a password here; name another user, or list it in users_by_other_logins",
        ),
        ("bob", ["bob"], ""),
        ("spark", [], ""),
    ],
)
def test_one_user_of_all_whom_no_call_would_be_let_in_as_is_refused(tmp_path, user, shared, said):
    add_user(tmp_path / "users", "bob", "a long password")
    settings = load_settings(
        data_dir=tmp_path, http_networks=["127.0.0.1"], network_user=user, users_by_other_logins=shared
    )
    problems = start_problems(settings)
    assert problems == [] if not said else problems[0].startswith(said)


def test_folders_that_are_not_written_need_not_be_writable(tmp_path, server_database):
    """Everything lies elsewhere: such a gateway has started before and still does."""
    with GatewayServer(tmp_path / "first"):
        pass
    migrate(server_database)
    first = tmp_path / "first"
    settings = {
        "users_file": str(first / "users"),
        "tls_certificate": str(first / "certificate.pem"),
        "tls_key": str(first / "key.pem"),
        "warehouse_dir": f"file:{tmp_path}/warehouse",
    }
    assert start_problems(load_settings(data_dir=Path("/proc"), database_url=server_database, **settings)) == []


@pytest.mark.skipif(missing_extra("gs") is None, reason="gcsfs is installed")
def test_a_file_system_without_its_library_is_named_also_where_no_root_lies_in_it(tmp_path):
    (said,) = ended("--data-dir", str(tmp_path / "var"), HMS_GATEWAY_FILE_SYSTEMS='{"gs": "manage", "s3a": "ignore"}')
    assert said == "error: directories of gs: (file_systems) need a library: pip install 'hms-gateway[gs]'"
    assert not (tmp_path / "var").exists()


def test_a_thrift_port_that_others_reach_needs_networks_or_logins(tmp_path):
    options = ("--data-dir", str(tmp_path / "var"), "--thrift-port", "9083", "--thrift-host", "0.0.0.0")
    said, *_ = ended(*options)
    assert "name the networks of your clients in thrift_networks" in said
    said, *_ = ended(*options, "--thrift-networks", "10.0.0.0/8", "--thrift-networks", "10.0.0.1/8")
    assert said == "error: thrift_networks: 10.0.0.1/8 has host bits set"
    assert not (tmp_path / "var").exists()
