"""README's sessions, run as printed against the real server: each answer is the one README shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import GatewayServer

README = Path(__file__).resolve().parent.parent / "README.md"
ADDRESS = "https://localhost:30443"

pytestmark = pytest.mark.curl


def sessions() -> list[tuple[str, str]]:
    """Every command of README's console blocks that talks to a server, with what it prints."""
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    steps = [step.partition("\n") for block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, printed) for command, _, printed in steps if not re.search(r"make serve|^thrift ", command)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    server = GatewayServer(tmp_path_factory.mktemp("readme"), demo=True)
    server.password = "secret"
    with server:
        yield server


def test_every_answer_in_readme_is_what_the_server_says(server):
    address = f"https://localhost:{server.port}"
    marker = "--- next ---"
    script = "".join(f"{command}\necho '{marker}'\n" for command, _ in sessions())
    script = script.replace(ADDRESS, address).replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    ran = subprocess.run(
        ["sh", "-c", f"exec 2>&1\nalias curl='curl -s'\n{script}"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment | {"HMS_GATEWAY_URL": f"{address}/gateway/default/hmshttpthrift/api/hms"},
    )
    answers = ran.stdout.split(marker + "\n")[:-1]
    assert len(answers) == len(sessions()) > 10
    for (command, printed), answer in zip(sessions(), answers, strict=True):
        assert answer.rstrip("\n") == printed.rstrip("\n"), command


def test_what_start_prints_is_what_readme_shows(server):
    shown = re.search(r"ARGS=--demo\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL).group(1)
    said = server.log_text().replace(f":{server.port}/", ":30443/")
    assert all(line in said for line in shown.splitlines())


def test_files_named_in_readme_exist():
    named = re.findall(r"`((?:docs|deploy|schema|tests)/[\w./-]+)`", README.read_text(encoding="utf-8"))
    missing = [path for path in named if not (README.parent / path).exists()]
    assert not missing
