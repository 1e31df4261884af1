"""The nginx files of deploy/ as they are, but for addresses and certificate: in front of a real gateway."""

import contextlib
import getpass
import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.interop.long_table import LongTable
from tests.server import API_PATH, GatewayServer, basic, free_port, trusting

DEMO = "hmshttptestdatabase"
DEPLOY = Path(__file__).parents[2] / "deploy" / "nginx"
STREAM_MODULES = ("/usr/lib/nginx/modules/ngx_stream_module.so", "/usr/lib64/nginx/modules/ngx_stream_module.so")
STOP_SECONDS_MAX = 20
START_ATTEMPTS_MAX = 500
POLL_SECONDS = 0.02
FRAME = """{modules}
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
"""
TEMPORARY = "".join(
    f"{name}_temp_path {{folder}}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


@pytest.fixture(scope="module", params=["proxy.conf", "passthrough.conf"])
def balanced(
    request: pytest.FixtureRequest, server: GatewayServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of an nginx that runs with this file."""
    if shutil.which("nginx") is None:
        pytest.skip("no nginx")
    folder = tmp_path_factory.mktemp("nginx")
    port = free_port()
    text = (DEPLOY / request.param).read_text()
    if request.param == "proxy.conf":
        configuration = proxying(text, server, port, folder)
    else:
        configuration = passing_through(text, server, port, folder)
    (folder / "nginx.conf").write_text(configuration)
    process = subprocess.Popen(["nginx", "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"])
    try:
        address = f"https://127.0.0.1:{port}"
        headers = basic(server.user, server.password)
        with httpx.Client(base_url=address, headers=headers, verify=trusting(), timeout=60) as client:
            wait_until_ready(client, process)
            yield client
    finally:
        process.terminate()
        process.wait(STOP_SECONDS_MAX)
        assert "[emerg]" not in (folder / "error.log").read_text()


def proxying(text: str, server: GatewayServer, port: int, folder: Path) -> str:
    changed = (
        text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        .replace("127.0.0.1:30443", f"127.0.0.1:{server.port}")
        .replace("/etc/nginx/metastore.crt", str(server.data_dir / "certificate.pem"))
        .replace("/etc/nginx/metastore.key", str(server.data_dir / "key.pem"))
    )
    http = f"events {{}}\nhttp {{\naccess_log off;\n{TEMPORARY.format(folder=folder)}{changed}}}\n"
    return frame(folder) + http


def passing_through(text: str, server: GatewayServer, port: int, folder: Path) -> str:
    module = next((path for path in STREAM_MODULES if Path(path).exists()), None)
    if module is None:
        pytest.skip("no stream module of nginx (package libnginx-mod-stream)")
    # Of the two replicas one is ours, the other is down.
    changed = (
        text.replace("gateway-1:30443", f"127.0.0.1:{server.port}")
        .replace("gateway-2:30443", f"127.0.0.1:{free_port()}")
        .replace("listen 30443", f"listen 127.0.0.1:{port}")
    )
    return frame(folder, f"load_module {module};") + changed


def frame(folder: Path, modules: str = "") -> str:
    """What nginx.conf says around our files. Workers of root become somebody who may not enter a test's folder."""
    user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""
    return FRAME.format(folder=folder, modules=modules) + user


def wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    for _ in range(START_ATTEMPTS_MAX):
        with contextlib.suppress(httpx.TransportError):
            if client.get("/readyz").status_code == 200:
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"nginx ended with status {process.wait(POLL_SECONDS)}")
    raise AssertionError("nginx answers nothing")


def test_calls_and_errors_pass(balanced: httpx.Client) -> None:
    for path in (API_PATH, "/metastore", "/metastore/*"):
        answer = balanced.post(path, content='[1,"get_databases",1,1,{"1":{"str":"default"}}]')
        assert answer.json() == [1, "get_databases", 2, 1, {"0": {"lst": ["str", 1, "default"]}}]
    wrong = balanced.post(API_PATH, content='[1,"get_all_databases",1,2,{}]', headers=basic("admin", "wrong"))
    assert (wrong.status_code, wrong.json()[1:4]) == (401, ["get_all_databases", 3, 2])
    assert balanced.get(API_PATH).status_code == 405


def test_many_calls_one_after_the_other(balanced: httpx.Client) -> None:
    for seqid in range(200):
        answer = balanced.post(API_PATH, content=f'[1,"get_all_tables",1,{seqid},{{"1":{{"str":"{DEMO}"}}}}]')
        assert answer.json()[3] == seqid


def test_a_large_body_and_one_that_asks_first(balanced: httpx.Client) -> None:
    names = json.dumps(["no_such_table_of_a_long_name"] * 100_000)[1:-1]
    body = f'[1,"get_table_objects_by_name",1,1,{{"1":{{"str":"{DEMO}"}},"2":{{"lst":["str",100000,{names}]}}}}]'
    for headers in ({}, {"Expect": "100-continue"}):
        answer = balanced.post(API_PATH, content=body, headers=headers)
        assert answer.json() == [1, "get_table_objects_by_name", 2, 1, {"0": {"lst": ["rec", 0]}}]


def test_a_long_answer_comes_whole(balanced: httpx.Client, long_table: LongTable) -> None:
    for encoding in ("identity", "gzip"):
        answer = balanced.post(API_PATH, content=long_table.request, headers={"Accept-Encoding": encoding})
        assert answer.headers.get("content-encoding", "identity") == encoding
        kind, count, *partitions = answer.json()[4]["0"]["lst"]
        assert (kind, count, len(partitions)) == ("rec", len(long_table.values), len(long_table.values))


def test_a_password_of_other_letters_passes(balanced: httpx.Client) -> None:
    login = "Basic " + b64encode("nobody:größe €".encode()).decode()
    answer = balanced.post(API_PATH, content='[1,"get_all_databases",1,1,{}]', headers={"Authorization": login})
    assert (answer.status_code, answer.json()[4]["1"]) == (401, {"str": "User name or password is wrong"})
