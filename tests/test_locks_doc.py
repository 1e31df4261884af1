"""docs/locks.md, run as printed against the real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import USER, GatewayServer

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "locks.md"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

pytestmark = pytest.mark.slow



def steps() -> list[tuple[str, str, str]]:
    """Every command with what it prints, and Python where it stands."""
    found = re.findall(r"```(console|python)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    listed = []
    for language, text in found:
        if language == "python":
            listed.append((language, text, ""))
        else:
            parts = (step.partition("\n") for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])
            listed += [(language, command, printed) for command, _, printed in parts]
    return listed


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with GatewayServer(tmp_path_factory.mktemp("locks-doc")) as server:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
        yield {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}",
            "HMS_GATEWAY_URL": server.url,
            "HMS_GATEWAY_USER": USER,
            "HMS_GATEWAY_PASSWORD": server.password,
        }


def test_every_answer_is_what_the_server_says(environment):
    assert len(steps()) > 25
    for language, command, printed in steps():
        words = [sys.executable, "-c", command] if language == "python" else ["sh", "-c", f"exec 2>&1\n{command}"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
        assert not ran.stderr, ran.stderr
        assert TIME.sub("TIME", ran.stdout) == TIME.sub("TIME", printed), command
