"""A web server for one page on loopback, and the browser that opens it; the page posts what its scenarios found."""

import contextlib
import http.server
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS

CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--ignore-certificate-errors",
)
CONTENT_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
ERRORS_SHOWN = 3_000
POLL_SECONDS = 0.2


class PageServer:
    """Serves `documents` (path -> bytes) on `url`; what the page posts to `outcomes` comes out of `outcomes()`."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        posted: queue.Queue[bytes] = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = documents.get(self.path)
                self.send_response(404 if document is None else 200)
                self.send_header("Content-Type", CONTENT_TYPES.get(Path(self.path).suffix, "text/plain"))
                self.end_headers()
                self.wfile.write(document or b"")

            def do_POST(self) -> None:
                posted.put(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._posted = posted
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "PageServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def outcomes(self, browser: "Browser", seconds_max: float) -> dict[str, str | None]:
        """What the page posted. Raises PageSilent when the browser ends before, or nothing comes in time."""
        for _ in range(int(seconds_max / POLL_SECONDS)):
            with contextlib.suppress(queue.Empty):
                outcomes: dict[str, str | None] = json.loads(self._posted.get(timeout=POLL_SECONDS))
                return outcomes
            if browser.process.poll() is not None:
                break
        raise PageSilent(f"the page reported nothing\n{browser.errors.read_text(errors='replace')[-ERRORS_SHOWN:]}")


class PageSilent(Exception):
    """No outcomes came; the text ends with what the browser printed."""


@dataclass(frozen=True)
class Browser:
    """A running browser and the file with what it prints."""

    process: subprocess.Popen[bytes]
    errors: Path


def find_chromium() -> str | None:
    """The command of an installed Chromium or Chrome."""
    return next((found for command in CHROMIUM_COMMANDS if (found := shutil.which(command))), None)


def opened_in_chromium(chromium: str, url: str, profile: Path) -> AbstractContextManager[Browser]:
    """Chromium showing the page, without a window."""
    return _running([chromium, *CHROMIUM_OPTIONS, f"--user-data-dir={profile}", url], profile)


def opened_in_jsdom(
    script: Path, url: str, folder: Path, environment: Mapping[str, str]
) -> AbstractContextManager[Browser]:
    return _running(["node", str(script), url], folder, environment)


@contextlib.contextmanager
def _running(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Browser]:
    errors = folder / "errors.txt"
    with errors.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
    try:
        yield Browser(process, errors)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
