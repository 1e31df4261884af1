"""The sessions of README and docs/calling.md, run as printed against the real server: each answer is the one shown.

Their programs run where their peers are: tests/interop/test_readme_clients.py, tests/spark/test_readme_blocks.py.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import BLOCKS, README, blocks, commands
from tests.support.server import GatewayServer

ADDRESS = "https://localhost:30443"
# These prepare a program, and are run with it.
PREPARATIONS = re.compile(r"make serve|^(thrift|npm|keytool|java|JARS=|STORE=)")

pytestmark = pytest.mark.curl


def sessions() -> list[tuple[str, str]]:
    """Every command that talks to a server, with what it prints."""
    return [(command, printed) for command, printed in commands() if not PREPARATIONS.search(command)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    server = GatewayServer(tmp_path_factory.mktemp("readme"), demo=True, settings={"authorization": None})
    server.password = "secret"
    with server:
        yield server


def test_every_answer_that_is_shown_is_what_the_server_says(server):
    address = f"https://localhost:{server.port}"
    marker = "--- next ---"
    script = "".join(f"{command}\necho '{marker}'\n" for command, _ in sessions())
    script = script.replace(ADDRESS, address).replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    ran = subprocess.run(
        ["sh", "-c", f"exec 2>&1\nalias curl='curl -s'\n{script}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
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


def test_every_program_that_is_shown_has_a_name_by_which_a_test_runs_it():
    programs = [(language, text) for language, text in blocks() if language not in ("console", "mermaid")]
    assert len(programs) == len(BLOCKS)
    for language, text in programs:
        assert [part for known, part in BLOCKS.values() if known == language and part in text], text
