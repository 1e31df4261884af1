"""The nginx files of deploy/ as they are, but for addresses and certificate: in front of real gateways."""

import contextlib
import getpass
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import free_port, trusting

DEPLOY = Path(__file__).parents[2] / "deploy" / "nginx"
POLL_SECONDS = 0.02
FRAME = """worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
"""
TEMPORARY = "".join(
    f"{name}_temp_path {{folder}}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
# Debian's packages put nginx there, which is not on the PATH of ordinary users.
PROGRAM_FOLDERS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


@contextlib.contextmanager
def nginx(name: str, gateways: Sequence[int], certificate_folder: Path, folder: Path) -> Iterator[int]:
    """Run nginx with the file `name` in front of gateways on these ports, two at most; the port it listens on.

    It takes a gateway's own certificate out of `certificate_folder`. Skips where nginx, or its stream module
    for passthrough.conf, is missing.
    """
    program = shutil.which("nginx", path=PROGRAM_FOLDERS)
    if program is None:
        pytest.skip("no nginx (package nginx)")
    port = free_port()
    text = (DEPLOY / name).read_text()
    make = _proxying if name == "proxy.conf" else _passing_through
    (folder / "nginx.conf").write_text(make(text, gateways, port, certificate_folder, folder))
    command = [program, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if 'unknown directive "stream"' in tried.stderr:
        pytest.skip("no stream module of nginx (package libnginx-mod-stream)")
    assert tried.returncode == 0, tried.stderr
    process = subprocess.Popen(command)
    try:
        _wait_until_listening(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _proxying(text: str, gateways: Sequence[int], port: int, certificate_folder: Path, folder: Path) -> str:
    changed = (
        text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        .replace("127.0.0.1:30443", f"127.0.0.1:{gateways[0]}")
        .replace("/etc/nginx/metastore.crt", str(certificate_folder / "certificate.pem"))
        .replace("/etc/nginx/metastore.key", str(certificate_folder / "key.pem"))
    )
    if len(gateways) > 1:
        # The line that the file shows as a comment.
        changed = changed.replace("# server gateway-2.example.org:30443", f"server 127.0.0.1:{gateways[1]}")
    temporary = TEMPORARY.format(folder=folder)
    return f"{_frame(folder)}events {{}}\nhttp {{\naccess_log off;\n{temporary}{changed}}}\n"


def _passing_through(text: str, gateways: Sequence[int], port: int, certificate_folder: Path, folder: Path) -> str:
    changed = (
        text.replace("gateway-1:30443", f"127.0.0.1:{gateways[0]}")
        .replace("gateway-2:30443", f"127.0.0.1:{gateways[-1]}")
        .replace("listen 30443", f"listen 127.0.0.1:{port}")
    )
    return _frame(folder) + changed


def _frame(folder: Path) -> str:
    """What nginx.conf says around our files. Workers of root become a user who may not enter a test's folder."""
    user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""
    return FRAME.format(folder=folder) + user


def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
        with (
            contextlib.suppress(OSError, ssl.SSLError),
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as plain,
            trusting().wrap_socket(plain),
        ):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"nginx ended with status {process.wait(POLL_SECONDS)}")
    raise AssertionError("nginx answers nothing")
