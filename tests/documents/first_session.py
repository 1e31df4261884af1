"""README's first session, a statement of the shell and the bridge of docs/bridge.md, with the program of another
environment: `python -m tests.documents.first_session FOLDER`.

scripts/wheel runs it on an environment that has the built wheel, what the runtime lock pins, and nothing else.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, Final

from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import PORT, ROOT, commands, curl_session
from tests.support.server import free_port

SECONDS_MAX: Final = 120
_SERVE: Final = "make serve ARGS="
_SHELL: Final = ".venv/bin/hms-gateway sql"
# A call of `get_all_databases` in Thrift's binary encoding.
_CALL: Final = b"\x80\x01\x00\x01\x00\x00\x00\x11get_all_databases\x00\x00\x00\x01\x00"


class NotAsShown(Exception):
    """Something else was printed than README shows."""


def main() -> int:
    environment = Path(sys.argv[1]).resolve()
    (serve, shown), *rest = commands()
    calls, answers = curl_session()
    statement = next((command, printed) for command, printed in rest if _SHELL in command)
    port = str(free_port())
    try:
        with tempfile.TemporaryDirectory() as folder, _serving(serve, shown, port, environment, Path(folder)):
            if shutil.which("curl") is None:
                print("first session: no curl, so it called nothing")
            else:
                _check(answers, _printed(["sh", "-c", calls.replace(PORT, port)]))
            url = f"https://localhost:{port}/gateway/default/hmshttpthrift/api/hms"
            variables = {**_variables(environment, Path(folder)), "HMS_GATEWAY_URL": url}
            command = statement[0].replace(_SHELL, "hms-gateway sql")
            _check(statement[1], _printed(["sh", "-c", command], cwd=folder, env=variables))
            _call_by_bridge(url, Path(folder), variables)
    except NotAsShown as problem:
        print(f"first session: {problem}", file=sys.stderr)
        return 1
    return 0


def _variables(environment: Path, folder: Path) -> dict[str, str]:
    return {"PATH": f"{environment / 'bin'}{os.pathsep}{os.defpath}", "HOME": str(folder), "PYTHONUNBUFFERED": "1"}


def _call_by_bridge(url: str, folder: Path, variables: dict[str, str]) -> None:
    """Run the first block of docs/bridge.md with another address and user, and send the bridge a call over TCP."""
    text = (ROOT / "docs" / "bridge.md").read_text(encoding="utf-8")
    block = "\n".join(re.findall(r"^    (.*)", text.partition("Clients then use")[0], re.MULTILINE))
    block = re.sub(r"--url \S+ --user \S+", f"--url {url} --user admin -k --port 0 --no-health", block)
    with _running(block.replace("hms-gateway bridge", "exec hms-gateway bridge"), folder, variables) as bridge:
        ready = _lines_until(bridge, "thrift://")
        address = re.search(r"thrift://127\.0\.0\.1:(\d+) is ready", ready)
        if address is None:
            raise NotAsShown(f"the bridge printed\n{ready}")
        with socket.create_connection(("127.0.0.1", int(address[1])), PATIENCE_SECONDS) as connection:
            connection.sendall(_CALL)
            answer = connection.recv(1000)
    if b"hmshttptestdatabase" not in answer:
        raise NotAsShown(f"the bridge answered {answer!r}")


@contextmanager
def _serving(command: str, shown: str, port: str, environment: Path, folder: Path) -> Iterator[None]:
    """While the server runs, in an empty folder and without the checkout's variables."""
    assert _SERVE in command, command
    command = f"{command.replace(_SERVE, 'exec hms-gateway serve ')} --port {port}"
    with _running(command, folder, _variables(environment, folder)) as process:
        _check(shown, _lines_until(process, "listening on").replace(f":{port}", f":{PORT}"))
        yield


@contextmanager
def _running(script: str, folder: Path, variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["sh", "-c", script],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    bound = Timer(SECONDS_MAX, process.kill)
    bound.start()
    try:
        yield process
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


def _printed(words: list[str], **options: Any) -> str:
    ran = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS_MAX, **options
    )
    return ran.stdout + ran.stderr


def _check(shown: str, printed: str) -> None:
    if printed.strip() != shown.strip():
        raise NotAsShown(f"README shows\n{shown}\nprinted was\n{printed}")


if __name__ == "__main__":
    sys.exit(main())
