"""README's first session with the program of another environment: `python -m tests.documents.first_session FOLDER`.

scripts/wheel runs it on an environment that has the built wheel, what the runtime lock pins, and nothing else.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import PORT, commands
from tests.support.server import free_port

SECONDS_MAX: Final = 120
_SERVE: Final = "make serve ARGS="


class NotAsShown(Exception):
    """Something else was printed than README shows."""


def main() -> int:
    environment = Path(sys.argv[1]).resolve()
    (serve, shown), *rest = commands()
    calls = rest[: next(number for number, (command, _) in enumerate(rest, 1) if command.startswith("curl "))]
    port = str(free_port())
    try:
        with tempfile.TemporaryDirectory() as folder, _serving(serve, shown, port, environment, Path(folder)):
            if shutil.which("curl") is None:
                print("first session: no curl, so nothing was called")
            else:
                _check("".join(printed for _, printed in calls), _call([command for command, _ in calls], port))
    except NotAsShown as problem:
        print(f"first session: {problem}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _serving(command: str, shown: str, port: str, environment: Path, folder: Path) -> Iterator[None]:
    """While the server runs, in an empty folder and without the checkout's variables."""
    assert _SERVE in command, command
    process = subprocess.Popen(
        ["sh", "-c", f"{command.replace(_SERVE, 'exec hms-gateway serve ')} --port {port}"],
        cwd=folder,
        env={"PATH": f"{environment / 'bin'}{os.pathsep}{os.defpath}", "HOME": str(folder), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    bound = Timer(SECONDS_MAX, process.kill)
    bound.start()
    try:
        _check(shown, _lines_until(process, "listening on").replace(f":{port}", f":{PORT}"))
        yield
    finally:
        bound.cancel()
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


def _lines_until(process: subprocess.Popen[str], start: str) -> str:
    """The lines that a terminal shows up to the one that starts so, without the log; or all of it when it ends before.

    Without a terminal these lines are events of the log.
    """
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        record = json.loads(line) if line.startswith("{") else {}
        if record.get("logger") == "hms_gateway.cli" and record["level"] == "info":
            lines.append(f"{record['event']}\n")
        elif not record:
            lines.append(line)
        if lines and lines[-1].startswith(start):
            break
    return "".join(lines)


def _call(script: list[str], port: str) -> str:
    lines = "\n".join(script).replace(PORT, port)
    ran = subprocess.run(
        ["sh", "-c", f"exec 2>&1\nalias curl='curl -s'\n{lines}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    return ran.stdout


def _check(shown: str, printed: str) -> None:
    if printed.strip() != shown.strip():
        raise NotAsShown(f"README shows\n{shown}\nprinted was\n{printed}")


if __name__ == "__main__":
    sys.exit(main())
