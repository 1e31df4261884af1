"""npm thrift on Node.js, JavaScript generated from our schema: scenarios.js with callbacks and with promises."""

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.long_table import LongTable
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import API_PATH, GatewayServer

NODE_FOLDER = Path(__file__).parent / "node"
SCENARIOS = re.findall(r"^async function (\w+)\(settings", (NODE_FOLDER / "scenarios.js").read_text(), re.MULTILINE)
GENERATORS = {"callbacks": "js:node", "promises": "js:node,es6"}

pytestmark = pytest.mark.node


@pytest.fixture(scope="module", params=GENERATORS)
def outcomes(
    request: pytest.FixtureRequest,
    server: GatewayServer,
    long_table: LongTable,
    generate: Callable[[str], Path],
    node_modules: Path,
) -> dict[str, str | None]:
    """What each scenario said: None, or its complaint."""
    settings = {
        "port": server.port,
        "path": API_PATH,
        "user": server.user,
        "password": server.password,
        "generated": str(generate(GENERATORS[request.param])),
        "promises": request.param == "promises",
        "long": dataclasses.asdict(long_table),
        "prefix": f"node_{request.param}",
    }
    finished = subprocess.run(
        ["node", NODE_FOLDER / "run.js", json.dumps(settings)],
        # The generated files lie elsewhere and ask for the packages by name.
        env={**os.environ, "NODE_PATH": str(node_modules)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert finished.returncode == 0, finished.stderr
    answer: dict[str, str | None] = json.loads(finished.stdout)
    return answer


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_node_client(scenario: str, outcomes: dict[str, str | None], server: GatewayServer) -> None:
    assert outcomes[scenario] is None, outcomes[scenario]
