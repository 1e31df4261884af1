"""A page of another origin in a real browser: Apache's browser library, npm thrift's browser build, plain fetch.

The preflight, the self-signed certificate and the CORS rules are the browser's own. Without a Chromium the same page
runs in jsdom.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.page_server import PageServer, find_chromium, opened_in_chromium, opened_in_jsdom
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer

BROWSER_FOLDER = Path(__file__).parent / "browser"
SCRIPT = (BROWSER_FOLDER / "scenarios.js").read_text()
SCENARIOS = re.findall(r"^  (?:async )?(\w+)\(\) \{$", SCRIPT, re.MULTILINE)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def outcomes(
    server: GatewayServer,
    generate: Callable[[str], Path],
    node_modules: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str | None]:
    """What each scenario said: None, or its complaint."""
    folder = tmp_path_factory.mktemp("browser")
    with PageServer(_documents(server, generate, node_modules, folder)) as page:
        url = f"{page.url}/page.html"
        chromium = find_chromium()
        if chromium is not None:
            opened = opened_in_chromium(chromium, url, folder)
        else:
            opened = opened_in_jsdom(BROWSER_FOLDER / "jsdom_page.js", url, folder, _with_node_path(node_modules))
        with opened as browser:
            return page.outcomes(browser, PATIENCE_SECONDS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_page(scenario: str, outcomes: dict[str, str | None], server: GatewayServer) -> None:
    complaint = outcomes[scenario]
    if complaint is not None and complaint.startswith("skip: "):
        pytest.skip(complaint.removeprefix("skip: "))
    assert complaint is None, complaint


def _documents(
    server: GatewayServer, generate: Callable[[str], Path], node_modules: Path, folder: Path
) -> dict[str, bytes]:
    settings = {
        "url": server.url,
        "port": server.port,
        "path": API_PATH,
        "user": server.user,
        "password": server.password,
        "prefix": "browser",
    }
    documents = {
        f"/{file.name}": file.read_bytes() for file in (BROWSER_FOLDER / "page.html", BROWSER_FOLDER / "scenarios.js")
    }
    documents |= {f"/generated/{file.name}": file.read_bytes() for file in generate("js").glob("*.js")}
    documents["/thrift.js"] = (node_modules / "thrift.js" / "src" / "thrift.js").read_bytes()
    documents["/npm_thrift.js"] = _bundled_npm_thrift(generate("js:node"), node_modules, folder)
    documents["/settings.js"] = f"const settings = {json.dumps(settings)};".encode()
    return documents


def _bundled_npm_thrift(generated: Path, node_modules: Path, folder: Path) -> bytes:
    """npm thrift's browser build and the generated client in one script, as a web project would ship them."""
    bundle = folder / "npm_thrift.js"
    command = ["node", node_modules / "esbuild" / "bin" / "esbuild", BROWSER_FOLDER / "npm_thrift_entry.js"]
    command += ["--bundle", "--platform=browser", "--log-level=error", "--define:global=globalThis"]
    command += [
        f"--alias:generated={generated}",
        f"--inject:{BROWSER_FOLDER / 'node_globals.js'}",
        f"--outfile={bundle}",
    ]
    finished = subprocess.run(
        command,
        env=_with_node_path(node_modules),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert finished.returncode == 0, finished.stderr
    return bundle.read_bytes()


def _with_node_path(node_modules: Path) -> dict[str, str]:
    # The scripts and the generated files lie elsewhere and ask for the packages by name.
    return {**os.environ, "NODE_PATH": str(node_modules)}
