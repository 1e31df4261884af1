"""The sessions in docs/, run as printed against the real server.

Starting hms-gateway a hundred times would take most of the time, so it runs in this process where nothing tells.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import USER, GatewayServer

DOCS = Path(__file__).resolve().parents[2] / "docs"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PROGRAM = "hms-gateway "

pytestmark = pytest.mark.slow


class Shell:
    """Runs commands one by one; variables that are set stay set."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._variables = ""

    def answer(self, command: str) -> str:
        """What the command writes, errors included."""
        first, pipe, rest = command.partition(" | ")
        if not command.startswith(PROGRAM):
            self._variables += f"{command}\n"
            return ""
        if " -- " in command:
            return self.run("sh", "-c", f"exec 2>&1\n{command}")
        words = self.run("sh", "-c", f"{self._variables}set -- {first}\nprintf '%s\\0' \"$@\"").split("\0")[1:-1]
        said = CliRunner().invoke(application, words, env=self._environment).output
        return self.run("sh", "-c", rest, stdin=said) if pipe else said

    def run(self, *words: str, stdin: str = "") -> str:
        ran = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=self._environment
        )
        assert not ran.stderr, ran.stderr
        return ran.stdout


def steps(document: str) -> Iterator[tuple[str, str, str]]:
    """Every command with what it prints, and Python where it stands."""
    text = (DOCS / document).read_text(encoding="utf-8")
    for language, block in re.findall(r"```(console|python)\n(.*?)```", text, re.DOTALL):
        if language == "python":
            yield language, block, ""
        else:
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, printed = step.partition("\n")
                yield language, command, printed


@pytest.mark.parametrize("document", ["locks.md", "transactions.md"])
def test_every_answer_is_what_the_server_says(document, tmp_path):
    assert len(list(steps(document))) > 10
    with GatewayServer(tmp_path, settings={"authorization": None}) as server:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
        shell = Shell(
            {
                **inherited,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}",
                "HMS_GATEWAY_URL": server.url,
                "HMS_GATEWAY_USER": USER,
                "HMS_GATEWAY_PASSWORD": server.password,
            }
        )
        for language, command, printed in steps(document):
            answer = shell.run(sys.executable, "-c", command) if language == "python" else shell.answer(command)
            assert TIME.sub("TIME", answer) == TIME.sub("TIME", printed), command
