"""curl as a child process: the documented command over TLS, and what curl does on its own with other options."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

DOCUMENTED_HEADER = "Content-Type: application/vnd.apache.thrift.json"
ASK_DATABASES = '[1,"get_databases",1,1,{"1":{"str":"default*"}}]'
DATABASES = '[1,"get_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'
SAMPLES = Path(__file__).parents[1] / "conformance" / "samples"
METHODS = sorted(file.name.removesuffix(".request.tjson") for file in SAMPLES.glob("*.request.tjson"))

pytestmark = [
    pytest.mark.curl,
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl (command `curl`)"),
]


def curl(server: GatewayServer, *options: str, password: str | None = None, url: str | None = None) -> str:
    """What `curl -k -u admin:<password> OPTIONS URL` prints."""
    user = f"{server.user}:{server.password if password is None else password}"
    # A user's own settings file must not change what is tested.
    command = ["curl", "--disable", "--silent", "--show-error", "-k", "-u", user, *options, url or server.url]
    finished = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS)
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout.decode()


def test_documented_command(server: GatewayServer) -> None:
    assert curl(server, "--data", ASK_DATABASES, "-H", DOCUMENTED_HEADER) == DATABASES


@pytest.mark.parametrize("method", METHODS)
def test_documented_requests_get_the_documented_answers(server: GatewayServer, method: str) -> None:
    request = (SAMPLES / f"{method}.request.tjson").read_text()
    documented = json.loads((SAMPLES / f"{method}.reply.tjson").read_text())
    answer = curl(server, "--data", request, "-H", DOCUMENTED_HEADER)
    if method == "get_all_databases":
        # Other tests make databases on this server, and drop them; the demo's two are always there.
        assert json.loads(answer)[:4] == documented[:4]
        assert set(documented[4]["0"]["lst"][2:]) <= set(json.loads(answer)[4]["0"]["lst"][2:])
    else:
        assert json.loads(answer) == documented
    assert answer == json.dumps(json.loads(answer), separators=(",", ":"), ensure_ascii=False), "compact"


def test_request_that_lacks_its_last_bracket(server: GatewayServer) -> None:
    assert curl(server, "--data", ASK_DATABASES[:-1], "-H", DOCUMENTED_HEADER) == DATABASES


@pytest.mark.parametrize(
    "options",
    [
        ["-X", "POST", "--data", ASK_DATABASES, "-H", DOCUMENTED_HEADER],
        ["--data", ASK_DATABASES],  # curl then says application/x-www-form-urlencoded
        ["--data", ASK_DATABASES, "-H", "Content-Type:"],
        ["--data", ASK_DATABASES, "-H", "Content-Type: application/x-thrift", "-H", "Accept: application/x-thrift"],
        ["--data", f"  {ASK_DATABASES} "],
        ["--data", ASK_DATABASES, "--http1.0"],
        ["--data", ASK_DATABASES, "-H", "Transfer-Encoding: chunked"],
        ["--data", ASK_DATABASES, "-H", "Expect: 100-continue"],
        ["--data", ASK_DATABASES, "--compressed"],
        ["--data", ASK_DATABASES, "-H", "Connection: close"],
    ],
    ids=[
        "-X POST",
        "form content type",
        "no content type",
        "x-thrift",
        "spaces around",
        "HTTP 1.0",
        "chunked",
        "Expect",
        "--compressed",
        "Connection close",
    ],
)
def test_ways_to_send_the_same(server: GatewayServer, options: Sequence[str]) -> None:
    assert curl(server, *options) == DATABASES


def test_form_encoding_is_refused_with_what_to_do(server: GatewayServer) -> None:
    assert "is form-encoded" in curl(server, "--data-urlencode", ASK_DATABASES)


def test_file_with_a_newline_at_its_end(server: GatewayServer, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text('[1, "get_databases", 1, 1,\n  {"1": {"str": "default*"}}]\n')
    assert curl(server, "--data-binary", f"@{request}", "-H", DOCUMENTED_HEADER) == DATABASES


@pytest.mark.parametrize("chunked", [False, True], ids=["Content-Length", "chunked"])
def test_body_above_a_mebibyte(server: GatewayServer, tmp_path: Path, chunked: bool) -> None:
    # curl then waits for 100 Continue before it sends the body.
    names = json.dumps([f"table_{number:06}" for number in range(150_000)], separators=(",", ":"))[1:-1]
    request = tmp_path / "request.json"
    request.write_text(
        f'[1,"get_table_objects_by_name",1,1,{{"1":{{"str":"hmshttptestdatabase"}},"2":{{"lst":["str",150000,{names}]}}}}]'
    )
    assert request.stat().st_size > 2 * 1024 * 1024
    options = ["-H", "Transfer-Encoding: chunked"] if chunked else []
    answer = curl(
        server, "--data-binary", f"@{request}", "-H", DOCUMENTED_HEADER, *options, "--expect100-timeout", "20"
    )
    assert answer == '[1,"get_table_objects_by_name",2,1,{"0":{"lst":["rec",0]}}]'


def test_wrong_password(server: GatewayServer) -> None:
    printed = curl(server, "--data", ASK_DATABASES, "-H", DOCUMENTED_HEADER, "--include", password="wrong")
    head, body = printed.split("\r\n\r\n", 1)
    assert head.startswith("HTTP/1.1 401 Unauthorized")
    assert "www-authenticate: basic realm=" in head.lower()
    _assert_application_exception(json.loads(body), "get_databases", seqid=1)


def test_no_password(server: GatewayServer) -> None:
    command = ["curl", "--disable", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "--data", ASK_DATABASES, server.url]
    finished = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS)
    assert finished.stdout == b"401"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--get"], "405"),
        (["--head"], "405"),
        (["-X", "PUT", "--data", ASK_DATABASES], "405"),
        (["-X", "DELETE"], "405"),
        (["-X", "OPTIONS"], "204"),
    ],
    ids=["GET", "HEAD", "PUT", "DELETE", "OPTIONS"],
)
def test_other_http_methods(server: GatewayServer, options: list[str], status: str) -> None:
    assert curl(server, *options, "-o", "/dev/null", "-w", "%{http_code}") == status


def test_unknown_path(server: GatewayServer) -> None:
    url = f"https://127.0.0.1:{server.port}/elsewhere"
    assert curl(server, "--data", ASK_DATABASES, "-o", "/dev/null", "-w", "%{http_code}", url=url) == "404"


def test_two_calls_over_one_connection(server: GatewayServer) -> None:
    options = ["--data", ASK_DATABASES, "-H", DOCUMENTED_HEADER, "-w", "|%{num_connects}|"]
    assert curl(server, *options, server.url) == f"{DATABASES}|1|{DATABASES}|0|"


def _assert_application_exception(message: list[Any], method: str, seqid: int) -> None:
    version, name, kind, number, payload = message
    assert (version, name, kind, number) == (1, method, 3, seqid)
    assert payload["1"]["str"]
    assert payload["2"]["i32"] in range(11)
