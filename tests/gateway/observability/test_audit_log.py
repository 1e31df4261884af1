"""The audit log: one line per call, names only, across rotations; and who changed what, kept with the change."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.gateway.observability import call_logs
from hms_gateway.gateway.observability.call_logs import AuditLog, open_audit_log
from hms_gateway.rpc.structs import METHODS, Struct
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import record
from tests.handlers.bad_values import template
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import PASSWORD, USER, GatewayServer, basic

SECRETS = ("planted-password", "planted-parameter", "planted-token", "planted-key", "planted-header", PASSWORD)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    with GatewayServer(folder, settings={"audit_log": str(folder / "audit.log"), "log_level": "warning"}) as it:
        yield it


def call(server, method: str, arguments: dict, *, password: str = PASSWORD, status: int = 200) -> list:
    body = json.dumps([1, method, 1, 1, arguments]).encode()
    headers = {**basic(USER, password), "X-Request-Id": f"r-{method}", "X-Other": "planted-header"}
    found, answer = server.post(body, path="/metastore", headers=headers)
    assert found == status, answer
    return json.loads(answer)


def lines(server, method: str, count: int = 1) -> list[dict]:
    """The lines about the method, when so many are there."""
    path = server.data_dir / "audit.log"

    def found() -> list[dict]:
        every = map(json.loads, path.read_text().splitlines())
        return [line for line in every if line.get("method") == method]

    until(lambda: len(found()) >= count)
    return found()


def table(name: str) -> dict:
    columns = {"lst": ["rec", 1, {"1": {"str": "id"}, "2": {"str": "bigint"}}]}
    descriptor = {"1": columns, "7": {"rec": {"2": {"str": "serde"}}}}
    parameters = {"map": ["str", "str", 1, {"fs.s3a.secret.key": "planted-parameter"}]}
    names = {"1": {"str": name}, "2": {"str": "default"}, "3": {"str": "ann"}}
    return {**names, "7": {"rec": descriptor}, "9": parameters}


def made_table(server, name: str) -> None:
    answer = call(server, "create_table", {"1": {"rec": table(name)}})
    assert answer[4] == {}, answer


def test_each_call_is_a_line_with_who_what_and_which_objects(server):
    made_table(server, "Orders")
    for _ in range(3):
        call(server, "get_table", {"1": {"str": "default"}, "2": {"str": "orders"}})
    call(server, "get_table", {"1": {"str": "default"}, "2": {"str": "nothing"}})
    (made,) = lines(server, "create_table")
    assert {key: made[key] for key in made if key != "time"} == {
        "event": "audit", "request_id": "r-create_table", "user": USER, "address": "127.0.0.1", "outcome": "ok",
        "method": "create_table", "objects": ["default.orders"], "status": 200,
    }  # fmt: skip
    read = lines(server, "get_table", 4)
    assert [line["objects"] for line in read] == [["default.orders"]] * 3 + [["default.nothing"]]
    assert (read[0].get("cached", False), read[2].get("cached", False)) == (False, True)
    assert read[-1]["outcome"] == "NoSuchObjectException"


def test_denied_calls_are_lines_too(server):
    call(server, "get_all_databases", {}, password="planted-password", status=401)
    (denied,) = lines(server, "get_all_databases")
    assert (denied["status"], denied["user"], denied["address"]) == (401, "", "127.0.0.1")


def test_a_login_that_was_refused_is_a_line_with_the_name_that_was_tried(server):
    body = json.dumps([1, "get_all_token_identifiers", 1, 1, {}]).encode()
    names = ("planted", 'a"b\\c', "é<" + "x" * 1_000)
    for name in names:
        assert server.post(body, headers=basic(name, "planted-password"))[0] == 401
    found = lines(server, "get_all_token_identifiers", 3)
    assert [line["user"] for line in found] == [""] * 3
    assert [line["tried_user"] for line in found] == [name[:256] for name in names]
    call(server, "get_all_token_identifiers", {})
    assert "tried_user" not in lines(server, "get_all_token_identifiers", 4)[-1]


def test_values_and_secrets_never_appear(server):
    call(server, "add_token", {"1": {"str": "id"}, "2": {"str": "planted-token"}})
    call(server, "add_master_key", {"1": {"str": "planted-key"}})
    made_table(server, "secrets")
    assert lines(server, "add_master_key")
    assert lines(server, "create_table", 2)
    text = (server.data_dir / "audit.log").read_text()
    assert not [secret for secret in SECRETS if secret in text]
    found = call(server, "list_changes", {"1": {"rec": {}}})
    assert not [secret for secret in SECRETS if secret in json.dumps(found)]


def test_a_file_that_was_moved_away_is_opened_again_at_sighup_and_one_that_was_cut_goes_on(server):
    path = server.data_dir / "audit.log"
    call(server, "get_all_tables", {"1": {"str": "default"}})
    assert lines(server, "get_all_tables")
    path.rename(path.with_suffix(".1"))
    os.kill(server.pid, signal.SIGHUP)
    until(path.exists)
    call(server, "get_all_functions", {})
    assert lines(server, "get_all_functions")
    assert path.stat().st_mode & 0o777 == 0o600
    os.truncate(path, 0)
    call(server, "get_catalogs", {})
    assert lines(server, "get_catalogs")
    assert path.read_bytes().startswith(b"{")


def test_who_dropped_a_table_is_known(server):
    made_table(server, "gone")
    call(server, "drop_table", {"1": {"str": "default"}, "2": {"str": "gone"}, "3": {"tf": 0}})
    command = [Path(sys.executable).with_name("hms-gateway"), "audit", "--object", "default.gone", "--json"]
    environment = {**os.environ, "HMS_GATEWAY_PASSWORD": PASSWORD}
    environment["HMS_GATEWAY_URL"], environment["HMS_GATEWAY_USER"] = server.url, USER
    environment["HMS_GATEWAY_CACERT"] = str(server.data_dir / "certificate.pem")
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    dropped, made = json.loads(done.stdout)
    assert (dropped["event_type"], dropped["user"], dropped["method"]) == ("DROP_TABLE", USER, "drop_table")
    assert (dropped["request_id"], dropped["address"]) == ("r-drop_table", "127.0.0.1")
    assert made["event_type"] == "CREATE_TABLE"


def test_lines_that_cannot_be_written_are_counted(tmp_path):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        def flush(self): ...

        def open_again(self): ...

        def close(self): ...

    log = AuditLog(Full())
    log.write(record())
    log.close()
    assert log.lost == 1


def test_a_client_behind_a_proxy_and_the_login_of_another_user_are_named(tmp_path):
    log = open_audit_log(str(tmp_path / "audit.log"))
    objects = (("table", "a", "b" * 1_000),)
    log.write(
        record(user="ann", real_user="spark", address="10.0.0.1", peer="127.0.0.1", method="x" * 1_000, objects=objects)
    )
    log.close()
    (line,) = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert (line["user"], line["real_user"], line["address"], line["proxy"]) == (
        "ann",
        "spark",
        "10.0.0.1",
        "127.0.0.1",
    )
    assert (len(line["method"]), len(line["objects"][0])) == (256, 256)


class Syslog:
    """A daemon at a socket of its own."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(60)
        self.socket.bind(str(path))

    def line(self) -> tuple[str, dict]:
        tag, _, text = self.socket.recv(65_536).decode().partition(": ")
        return tag, json.loads(text)


def written(log: AuditLog, request_id: str) -> None:
    log.write(record(request_id=request_id, objects=(("table", "sales", "orders"),)))


def test_syslog_gets_a_datagram_for_each_line_also_after_it_was_started_again(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setattr(call_logs, "SYSLOG_SOCKETS", (str(tmp_path / "none"), str(path)))
    daemon = Syslog(path)
    log = open_audit_log("syslog")
    written(log, "r-1")
    written(log, "r-2")
    assert daemon.line()[0] == f"<86>hms-gateway[{os.getpid()}]"
    assert daemon.line()[1]["request_id"] == "r-2"
    daemon.socket.close()
    daemon = Syslog(path)
    written(log, "r-3")
    assert daemon.line()[1]["objects"] == ["sales.orders"]
    daemon.socket.close()
    written(log, "r-4")
    log.close()
    assert log.lost == 1


def test_without_a_syslog_a_start_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(call_logs, "SYSLOG_SOCKETS", (str(tmp_path / "none"),))
    with pytest.raises(OSError, match="no syslog at"):
        open_audit_log("syslog")


def test_standard_output_gets_lines(capsys):
    log = open_audit_log("stdout")
    written(log, "r-1")
    log.open_again()
    log.close()
    assert [json.loads(line)["request_id"] for line in capsys.readouterr().out.splitlines()] == ["r-1"]


# Where names of objects are; every other text of a call's arguments is planted.
OF_NAMES = re.compile(r"(?i)^cat|db|database|tbl|^tb|table|^name|func|namespace|^objectName|^writeIds")


def planted(value: Any, field: str) -> Any:
    if isinstance(value, Struct):
        for each in value.definition.fields:
            setattr(value, each.name, planted(getattr(value, each.name), each.name))
        return value
    if isinstance(value, list):
        return [planted(each, field) for each in value]
    if isinstance(value, dict):
        keeps = OF_NAMES.search(field)
        return {key if keeps else planted(key, "key"): planted(each, "value") for key, each in value.items()}
    if isinstance(value, bytes):
        return b"planted-bytes"
    return f"planted-{field}" if isinstance(value, str) and not OF_NAMES.search(field) else value


def test_no_argument_of_any_method_and_no_header_appears(server):
    codec = make_codecs(Limits()).tjson
    headers = {**basic(USER, PASSWORD), "Idempotency-Key": "planted-idempotency", "x-hms-lease": "planted-lease"}
    with server.connection() as connection:
        for name, method in METHODS.items():
            values = [planted(template(field), field.name) for field in method.definition.arguments]
            before, after = codec.envelope(name, MessageType.CALL, 1)
            request = {**headers, "X-Request-Id": f"all-{name}", "Idempotency-Key": f"planted-{name}"}
            connection.request("POST", "/metastore", before + codec.encode(method.arguments(*values)) + after, request)
            connection.getresponse().read()
        connection.request("POST", "/metastore", b'[1,"getStatus",1,1,{}]', {"Authorization": "Bearer planted-bearer"})
        assert connection.getresponse().status == 401
    path = server.data_dir / "audit.log"
    until(
        lambda: (
            {f"all-{name}" for name in METHODS}
            <= {json.loads(line)["request_id"] for line in path.read_text().splitlines()}
        )
    )
    assert "planted-" not in path.read_text()


class FullDisk:
    """Takes so many bytes of a file, then no more until `is_full` is unset."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._write = os.write
        self.is_full = True

    def write(self, file: int, data: bytes) -> int:
        if not self.is_full:
            return self._write(file, data)
        if not self._left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(file, data[: self._left])
        self._left -= written
        return written


@pytest.mark.parametrize("left", [0, 1, 9, 10, 11, 19, 20, 25])
def test_a_disk_that_is_full_leaves_no_half_line(tmp_path, monkeypatch, left):
    file, disk = call_logs._AppendedFile(tmp_path / "audit.log"), FullDisk(left)
    monkeypatch.setattr(call_logs.os, "write", disk.write)
    with pytest.raises(OSError, match="No space left"):
        file.write('{"a": 11}\n{"b": 22}\n{"c": 33}\n')
    disk.is_full = False
    file.write('{"d": 4}\n')
    file.close()
    *found, last = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert last == {"d": 4}
    assert found == [{"a": 11}, {"b": 22}, {"c": 33}][: left // 10]


def test_a_half_line_that_another_process_wrote_behind_ends_before_the_next(tmp_path, monkeypatch):
    path = tmp_path / "audit.log"
    file, disk = call_logs._AppendedFile(path), FullDisk(5)

    def written_behind(size: int) -> bool:
        with path.open("a") as other:
            other.write("\n{}\n{")
        return False

    monkeypatch.setattr(call_logs.os, "write", disk.write)
    monkeypatch.setattr(file, "_cut", written_behind)
    with pytest.raises(OSError, match="No space left"):
        file.write('{"a": 11}\n')
    disk.is_full = False
    file.write('{"b": 22}\n')
    file.close()
    assert path.read_text().splitlines()[-1] == '{"b": 22}'
