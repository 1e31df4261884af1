"""The real `hms-gateway serve` as a child process: what it says, what it makes, how it fails."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import GatewayServer
from tests.support.warm_program import COMMAND, run_program


class WithoutPassword(GatewayServer):
    """Started the way a newcomer does, by the command itself, with no password in the environment."""

    def _command(self):
        return [sys.executable, *super()._command()]

    def _environment(self):
        environment = super()._environment()
        del environment["HMS_GATEWAY_ADMIN_PASSWORD"]
        return environment


def hms_gateway(*words, stdin="", **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    return run_program(words, environment | variables, stdin, PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with GatewayServer(tmp_path_factory.mktemp("serving"), demo=True) as running:
        yield running


def call(server, *words):
    certificate = str(server.data_dir / "certificate.pem")
    options = ("--url", server.url, "--cacert", certificate)
    return hms_gateway("call", *options, *words, HMS_GATEWAY_PASSWORD=server.password)


@pytest.mark.curl
def test_the_first_start_shows_a_password_once_and_a_line_to_paste(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    gateway = WithoutPassword(tmp_path)
    with gateway:
        said = gateway.log_text()
        line = re.search(r"^try: (.*)$", said, re.MULTILINE).group(1)
        answer = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    password = re.search(r"with the password (\S+) \(shown only this once\)", said).group(1)
    assert answer.stdout == '[1,"get_all_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'
    assert password not in (tmp_path / "users").read_text()
    gateway.log.unlink()
    with gateway:
        said_again = gateway.log_text()
    assert password not in said_again
    assert "shown only this once" not in said_again
    assert f"hms-gateway user add admin --data-dir {tmp_path}" in said_again


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_serve_one_database_and_log_start_and_stop_as_json(tmp_path, workers):
    gateway = GatewayServer(tmp_path, settings={"workers": workers})
    added = ("user", "add", gateway.user, "--data-dir", str(tmp_path), "--password-stdin")
    assert hms_gateway(*added, stdin=gateway.password).returncode == 0
    with gateway:
        # A restart of the parent says it after the workers listen.
        until(lambda: "listening on" in gateway.log_text())
        for number in range(2 * workers):
            assert call(gateway, "create_database", f'{{"name": "sales_{number}"}}').returncode == 0
            assert f"sales_{number}" in call(gateway, "get_all_databases").stdout
    lines = [json.loads(line) for line in gateway.log_text().splitlines()]
    assert all(line["timestamp"] for line in lines)
    events = [line["event"] for line in lines]
    assert f"listening on https://localhost:{gateway.port}/gateway/default/hmshttpthrift/api/hms" in events
    stopping = [line for line in lines if line["event"].startswith("stopping")]
    assert [line["cause"] for line in stopping] == ["SIGTERM"] * workers
    assert events[-1] == "stopped"


@pytest.mark.postgres
def test_a_start_compares_connections_with_what_the_database_allows(tmp_path, migrated_postgres_database):
    settings = {"database_connections_max": 300}
    with GatewayServer(tmp_path, database=migrated_postgres_database, settings=settings) as gateway:
        until(lambda: "connections, and its gateways (processes: 1) may take 304" in gateway.log_text())


def test_a_given_password_is_not_shown(server):
    said = server.log_text()
    assert "made the user admin with the password given in the settings" in said
    assert server.password not in said


def test_a_user_added_to_a_running_server_may_call(tmp_path):
    with GatewayServer(tmp_path) as gateway:
        added = hms_gateway("user", "add", "bob", "--data-dir", str(tmp_path), "--password-stdin", stdin="a new one\n")
        assert added.returncode == 0
        words = ("call", "--url", gateway.url, "--insecure", "--user", "bob", "getName")
        # The server looks at the file once a second.
        for _ in range(100):
            answer = hms_gateway(*words, HMS_GATEWAY_PASSWORD="a new one")
            if answer.returncode == 0:
                break
        assert answer.returncode == 0, answer.stderr


def test_call_prints_json(server):
    answer = call(server, "get_all_databases")
    assert answer.stdout == '[\n  "default",\n  "hmshttptestdatabase"\n]\n'


def test_call_writes_and_reads_back(server):
    created = call(server, "create_database", '{"name": "written", "description": "größe"}')
    assert (created.returncode, created.stderr) == (0, "")
    assert '"description": "größe"' in call(server, "get_database", "name=written").stdout
    assert call(server, "drop_database", "written", "true", "false").returncode == 0


def test_call_names_the_declared_exception(server):
    answer = call(server, "get_database", "nowhere")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("error: NoSuchObjectException: ")


def test_a_table_written_by_call_is_what_call_shows(server, tmp_path):
    shown = call(server, "get_table", "hmshttptestdatabase", "test_table").stdout
    file = tmp_path / "table.json"
    file.write_text(shown.replace('"test_table"', '"copied"').replace("/test_table", "/copied"))
    assert call(server, "create_table", f"@{file}").returncode == 0
    assert '"serialization.format": "1"' in call(server, "get_table", "hmshttptestdatabase", "copied").stdout


def test_both_paths_are_served(server):
    answer = call(server, "--url", f"https://127.0.0.1:{server.port}/metastore", "get_all_databases")
    assert "hmshttptestdatabase" in answer.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--database", "nonsense"), "error: the database URL cannot be read"),
        (("--database", "oracle://x"), "error: databases of kind oracle are not supported"),
        (("--database", "postgresql://x@127.0.0.1:1/x"), "error: the database cannot be reached"),
        (("--database", "postgresql://x@127.0.0.1:1/x", "--workers", "2"), "error: the database cannot be reached"),
        (("--database", "mariadb://x@127.0.0.1:1/x"), "error: the database cannot be reached"),
        (("--database", "mysql+pymysql://x@127.0.0.1:1/x", "--workers", "2"), "error: the database cannot be reached"),
        (("--database", "mariadb://x@127.0.0.1:1"), "error: the database URL names no database"),
        (("--database", "postgres://x@h/x"), "use sqlite:///folder/metastore.db or postgresql+psycopg://"),
        (("--port", "99999"), "Error: Invalid value for '--port': 99999 is not in the range "),
        (("--config", "/nonexistent.toml"), "error: settings file /nonexistent.toml not found"),
        (("--tls-key", "/nonexistent.pem"), "tls_certificate and tls_key belong together"),
        (("--tls-key", "/nonexistent.pem", "--tls-certificate", "/nonexistent.pem"), "/nonexistent.pem"),
        (("--log-level", "loud"), "Error: Invalid value for '--log-level': 'loud' is not one of "),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(tmp_path, words, text):
    ended = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", "0", *words)
    assert ended.returncode == 2
    assert text in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len([line for line in ended.stderr.splitlines() if line.lower().startswith("error: ")]) == 1


def test_a_port_in_use_is_named_and_no_user_is_made(tmp_path):
    """The start that follows would say nothing of a password, and not take the one that it is given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", str(port))
    assert ended.returncode == 2
    assert f"error: 127.0.0.1:{port} is in use" in ended.stderr
    assert ended.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_database_without_a_schema_is_named_and_no_user_is_made(tmp_path, fresh_postgres_database):
    ended = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", "0", "--database", fresh_postgres_database)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "error: the database has no schema yet: run `hms-gateway migrate` first\n"
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_first_password_that_cannot_be_printed_is_made_anew(tmp_path):
    """Nobody has seen it, and the next start would not show it again."""
    words = [COMMAND, "serve", "--data-dir", str(tmp_path), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, env=environment
        )
    assert ended.returncode == 2
    assert "error: the password of the user admin cannot be printed: No space left on device" in ended.stderr
    assert not (tmp_path / "users").exists()


def test_a_password_file_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "users").write_text("garbage\n")
    ended = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", "0")
    assert (ended.returncode, ended.stderr) == (2, f"error: {tmp_path / 'users'} line 1 is not name:hash\n")


@pytest.mark.parametrize("password", ["the first", "second"])
def test_a_first_password_that_comes_too_late_is_told(tmp_path, password):
    hms_gateway("user", "add", "admin", "--data-dir", str(tmp_path), "--password-stdin", stdin="the first\n")
    gateway = GatewayServer(tmp_path)
    gateway.password = password
    with gateway:
        assert ("has another password" in gateway.log_text()) == (password == "second")


def test_a_thrift_port_in_use_is_one_line_and_no_user_is_made(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", "0", "--thrift-port", str(port))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: cannot listen on thrift://127.0.0.1:{port}: ")
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_audit_log_that_cannot_be_written_is_one_line_and_no_user_is_made(tmp_path):
    place = tmp_path / "none" / "audit.log"
    words = ("serve", "--data-dir", str(tmp_path), "--port", "0")
    ended = hms_gateway(*words, HMS_GATEWAY_AUDIT_LOG=str(place))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"error: audit_log {place} cannot be written: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("groups_file", "/nonexistent"), ("client_certificates", '{"authority": "/nonexistent"}')],
)
def test_a_file_of_logins_that_cannot_be_read_is_one_line_and_no_user_is_made(tmp_path, name, value, workers):
    words = ("serve", "--data-dir", str(tmp_path), "--port", "0", "--workers", workers)
    ended = hms_gateway(*words, **{f"HMS_GATEWAY_{name.upper()}": value})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {name}")
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "users").exists()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_why_a_database_cannot_be_reached_is_told_to_the_operator(tmp_path, kind):
    ended = hms_gateway("migrate", "--data-dir", str(tmp_path), "--database", f"{kind}://x:geheim@127.0.0.1:1/x")
    assert ended.returncode == 2
    assert "Connection refused" in ended.stderr
    assert "geheim" not in ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is warned")
def test_a_start_as_root_is_one_warning_that_says_what_to_do(tmp_path):
    with GatewayServer(tmp_path) as gateway:
        (line,) = [line for line in gateway.log_text().splitlines() if "runs as root" in line]
    assert "run it under an account of its own" in line


@pytest.mark.parametrize("workers", ["1", "2"])
def test_roots_that_would_open_the_data_folder_are_one_line(tmp_path, workers):
    ended = hms_gateway(
        *("serve", "--data-dir", str(tmp_path), "--port", "0", "--workers", workers),
        HMS_GATEWAY_FILE_ROOTS='["file:/"]',
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: file_roots: file:/ holds data_dir {tmp_path}; ")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_warehouse_that_cannot_be_is_one_line(tmp_path, workers):
    ended = hms_gateway(
        *("serve", "--data-dir", str(tmp_path), "--port", "0", "--workers", workers),
        HMS_GATEWAY_WAREHOUSE_DIR="file:/proc/nowhere",
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    said = [line for line in ended.stderr.splitlines() if not line.startswith("{")]  # the log says why
    unwritable = "error: /proc: it cannot be written"
    assert said[0].startswith(("error: the database default cannot be made: ", unwritable))
    assert "warehouse_dir" in ended.stderr


def test_a_data_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        ended = hms_gateway("serve", "--data-dir", str(folder), "--port", "0")
        assert ended.returncode == 2
        assert f"error: {tmp_path / 'file'}" in ended.stderr


def test_a_misspelt_variable_is_named(tmp_path):
    ended = hms_gateway("serve", "--data-dir", str(tmp_path), HMS_GATEWAY_PORTT="1")
    assert ended.returncode == 2
    assert "HMS_GATEWAY_PORTT" in ended.stderr


def test_migrate_says_from_where_to_where(tmp_path):
    first = hms_gateway("migrate", "--data-dir", str(tmp_path))
    assert first.returncode == 0
    assert first.stdout.startswith("from an empty database to revision ")
    assert "already" in hms_gateway("migrate", "--data-dir", str(tmp_path)).stdout


def test_migrate_of_a_server_database(tmp_path, server_database):
    refused = hms_gateway("serve", "--data-dir", str(tmp_path), "--port", "0", "--database", server_database)
    assert refused.returncode == 2
    assert "hms-gateway migrate" in refused.stderr
    first = hms_gateway("migrate", "--database", server_database)
    assert (first.returncode, first.stdout[:26]) == (0, "from an empty database to ")


@pytest.mark.whole
def test_several_processes_serve_a_server_database(tmp_path, server_database):
    assert hms_gateway("migrate", "--database", server_database).returncode == 0
    with GatewayServer(tmp_path, demo=True, database=server_database, settings={"workers": 2}) as server:
        for number in range(4):
            assert call(server, "create_database", f'{{"name": "sales_{number}"}}').returncode == 0
            assert f"sales_{number}" in call(server, "get_all_databases").stdout


def test_the_first_password_may_come_from_a_file(tmp_path):
    secret = tmp_path / "password"
    secret.write_text("from a file\nnot this\n")
    gateway = WithoutPassword(tmp_path / "var", settings={"admin_password_file": str(secret)})
    gateway.password = "from a file"
    with gateway:
        assert "with the password given in the settings" in gateway.log_text()
        assert call(gateway, "getName").returncode == 0
        environment = Path(f"/proc/{gateway.pid}/environ").read_bytes()
    assert b"from a file" not in environment


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\n"])
def test_a_password_file_of_admin_that_cannot_be_used_is_one_line(tmp_path, content):
    secret = tmp_path / "password"
    if content is not None:
        secret.write_bytes(content)
    ended = hms_gateway(
        *("serve", "--port", "0", "--data-dir", str(tmp_path / "var")), HMS_GATEWAY_ADMIN_PASSWORD_FILE=str(secret)
    )
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert "password" in ended.stderr
    assert not (tmp_path / "var" / "users").exists()


def test_two_first_passwords_are_one_too_many(tmp_path):
    both = {"HMS_GATEWAY_ADMIN_PASSWORD": "a", "HMS_GATEWAY_ADMIN_PASSWORD_FILE": "/dev/null"}
    assert "set one of them" in hms_gateway("serve", "--data-dir", str(tmp_path), **both).stderr
