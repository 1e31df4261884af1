"""Completion of the command line as docs/shell.md sets it up: in the real shells, and what these ask the program."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

DOCUMENT = Path(__file__).parents[2] / "docs" / "shell.md"
# What is typed up to the cursor; what is offered among others, and what is not.
WORDS = [
    ("loc", {"locks"}, {"leases", "serve"}),
    ("locks force", {"force-release"}, {"acquire"}),
    ("sql --form", {"--format"}, {"--file"}),
    ("sql --format js", {"json"}, {"csv"}),
    ("nothing-like-this", set(), {"locks"}),
]


def set_up(shell: str) -> str:
    """The documented line for the shell, without its comment."""
    (line,) = re.findall(rf"^    (.*{shell}_source.*?) +# in ", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    return str(line)


def run(command: list[str], **variables: str) -> str:
    folder = str(Path(sys.executable).parent)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
    environment = {**inherited, "PATH": f"{folder}:{os.environ['PATH']}", **variables}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def words_of(typed: str) -> list[str]:
    return ["hms-gateway", *typed.split(" ")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash() -> None:
    """All in one bash, as in a session."""
    script = [set_up("bash"), "complete -p hms-gateway"]
    for typed, _, _ in WORDS:
        words = words_of(typed)
        script += [
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()",
            "_hms_gateway_completion hms-gateway",
            'echo "offered ${COMPREPLY[*]}"',
        ]
    registered, *offered = run(["bash", "--norc", "-c", "\n".join(script)]).splitlines()
    assert registered.endswith("_hms_gateway_completion hms-gateway")
    assert len(offered) == len(WORDS)
    for line, (typed, expected, absent) in zip(offered, WORDS, strict=True):
        found = set(line.split()[1:])
        assert expected <= found, typed
        assert not absent & found, typed


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish() -> None:
    script = [set_up("fish")]
    for typed, _, _ in WORDS[:4]:
        script += [f"echo == {typed}", f'complete -C"hms-gateway {typed}"']
    _, *answers = run(["fish", "--no-config", "-c", "\n".join(script)]).split("== ")
    assert len(answers) == len(WORDS[:4])
    for answer, (typed, expected, absent) in zip(answers, WORDS, strict=False):
        found = {line.split("\t")[0] for line in answer.splitlines()[1:]}
        assert expected <= found, typed
        assert not absent & found, typed


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_the_line_for_zsh_is_a_program_that_registers_the_completion() -> None:
    script = f"autoload -U compinit && compinit -D\n{set_up('zsh')}\necho $_comps[hms-gateway]"
    assert run(["zsh", "-f", "-c", script]).strip() == "_hms_gateway_completion"


@pytest.mark.slow
def test_what_zsh_is_told() -> None:
    """It sends the number of the word at the cursor."""
    for typed, expected, absent in WORDS[1:4:2]:
        words = words_of(typed)
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        found = set(run(["hms-gateway"], _HMS_GATEWAY_COMPLETE="zsh_complete", **asked).splitlines())
        assert expected <= found, typed
        assert not absent & found, typed
