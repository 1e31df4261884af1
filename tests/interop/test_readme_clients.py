"""Programs of docs/calling.md for Node, browsers, Python and Java, and the bridge of docs/engines.md, as printed."""

import json
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bridge.bridge_process import BridgeProcess, connected
from tests.interop.page_server import PageServer, find_chromium, opened_in_chromium
from tests.oracle.peer import SHORT_LIVES
from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import ENGINES, PORT, block, commands, prepare, run
from tests.support.server import GatewayServer, free_port

DEMO = "hmshttptestdatabase"
# Tells the page's own server what it shows.
REPORT = """<script>
  const shown = document.querySelector("pre");
  const report = () => fetch("/outcomes", { method: "POST", body: JSON.stringify({ shown: shown.textContent }) });
  new MutationObserver(report).observe(shown, { childList: true, characterData: true, subtree: true });
</script>
"""
# What the browser would only log is what the page shows.
COMPLAIN = """window.addEventListener("error", (event) => {
  const complaint = `script error: ${event.message}`;
  addEventListener("load", () => (document.querySelector("pre").textContent = complaint));
});"""


@pytest.fixture
def folder(server: GatewayServer, tmp_path: Path) -> Path:
    """Looks like the checkout of somebody who has started the server."""
    return prepare(tmp_path, server)


def generated(generator: str, folder: Path, server: GatewayServer) -> None:
    """Run the page's line with the Thrift compiler."""
    if shutil.which("thrift") is None:
        pytest.skip("no Thrift compiler (command `thrift`, package thrift-compiler)")
    (command,) = [command for command, _ in commands() if f"--gen {generator} " in command]
    run(shlex.split(command), folder, server)


@pytest.mark.node
def test_node(server: GatewayServer, folder: Path, node_modules: Path) -> None:
    generated("js:node", folder, server)
    (folder / "node_modules").symlink_to(node_modules)
    (folder / "databases.js").write_text(block("node").replace(PORT, str(server.port)))
    assert f"'{DEMO}'" in run(["node", "databases.js"], folder, server)


@pytest.mark.parametrize("name", ["apache thrift", "own client"])
def test_python(name: str, server: GatewayServer, folder: Path) -> None:
    if name == "apache thrift":
        generated("py", folder, server)
    printed = run([sys.executable, "-c", block(name).replace(PORT, str(server.port))], folder, server)
    assert printed.splitlines() == ["root"] + ["no database nowhere"] * (name == "own client")


@pytest.mark.browser
def test_page(server: GatewayServer, tmp_path: Path) -> None:
    fill = f"""<script>
      document.querySelector("[name=password]").value = {json.dumps(server.password)};
      document.querySelector("form").requestSubmit();
    </script>"""
    page = block("page").replace(PORT, str(server.port)) + REPORT + fill
    assert DEMO in shown({"/page.html": page.encode()}, tmp_path).splitlines()


@pytest.mark.browser
def test_page_says_what_the_server_refuses(server: GatewayServer, tmp_path: Path) -> None:
    submit = """<script>document.querySelector("form").requestSubmit();</script>"""
    page = block("page").replace(PORT, str(server.port)) + REPORT + submit
    assert shown({"/page.html": page.encode()}, tmp_path) == "User name or password is wrong"


@pytest.mark.browser
def test_page_says_that_there_is_no_answer(tmp_path: Path) -> None:
    submit = """<script>document.querySelector("form").requestSubmit();</script>"""
    page = block("page").replace(PORT, str(free_port())) + REPORT + submit
    assert shown({"/page.html": page.encode()}, tmp_path).startswith(
        "No answer: is the certificate accepted, and http://"
    )


@pytest.mark.browser
@pytest.mark.parametrize(
    ("password", "said"),
    [
        (None, "root"),
        pytest.param("wrong", "User name or password is wrong", marks=pytest.mark.whole),
        pytest.param("closed", "No answer: ", marks=pytest.mark.whole),
    ],
)
def test_page_with_the_library(
    server: GatewayServer, folder: Path, node_modules: Path, password: str | None, said: str
) -> None:
    generated("js", folder, server)
    (folder / "node_modules").symlink_to(node_modules)
    login = f"{server.user}:{password or server.password}"
    port = free_port() if password == "closed" else server.port
    answer = f"<script>window.prompt = () => {json.dumps(login)};{COMPLAIN}</script>"
    page = block("library page").replace(PORT, str(port)).replace("<meta", f"{answer}<meta", 1)
    page = page.replace("<pre></pre>", f"<pre></pre>{REPORT}")
    documents = {f"/{file}": (folder / file).read_bytes() for file in re.findall(r'<script src="(.*?)">', page)}
    assert shown({**documents, "/page.html": page.encode()}, folder).startswith(said)


def shown(documents: dict[str, bytes], folder: Path) -> str:
    """What the page shows when the server has answered."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("no Chromium")
    with PageServer(documents) as page, opened_in_chromium(chromium, f"{page.url}/page.html", folder) as browser:
        return page.outcomes(browser, PATIENCE_SECONDS)["shown"] or ""


@pytest.mark.java
def test_java(server: GatewayServer, folder: Path) -> None:
    if shutil.which("keytool") is None or find_spec("pyspark") is None:
        pytest.skip("no JDK (command keytool), or no PySpark (requirements/spark.txt)")
    (folder / "Databases.java").write_text(block("java").replace(PORT, str(server.port)))
    lines = [command for command, _ in commands() if re.match(r"JARS=|STORE=|keytool|java", command)]
    printed = run(["sh", "-e", "-c", "\n".join(lines)], folder, server, **SHORT_LIVES)
    first, second = printed.splitlines()
    assert DEMO in first
    assert second == "no database nowhere"


def test_bridge(server: GatewayServer) -> None:
    (line,) = re.findall(r"^    \.venv/bin/hms-gateway bridge (.*)$", ENGINES.read_text(encoding="utf-8"), re.MULTILINE)
    options = shlex.split(line.replace("var/", f"{server.data_dir}/"))
    with BridgeProcess(server, *options) as bridge, connected(bridge) as client:
        assert DEMO in client.get_all_databases()
