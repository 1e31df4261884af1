"""The code blocks of README, docs/calling.md and docs/engines.md by name, and what runs them on another port."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CALLING = ROOT / "docs" / "calling.md"
ENGINES = ROOT / "docs" / "engines.md"
ICEBERG = ROOT / "docs" / "iceberg.md"
PORT, THRIFT_PORT = "30443", "9083"
# Language, and text that no other block of that language has.
BLOCKS = {
    "node": ("js", "createHttpConnection"),
    "page": ("html", "fetch("),
    "library page": ("html", "TXHRTransport"),
    "apache thrift": ("python", "THttpClient"),
    "own client": ("python", 'print("no database"'),
    "java": ("java", "THttpClient"),
    "duckdb": ("python", "import duckdb"),
    "pyspark": ("python", "spark.sql.catalogImplementation"),
    "pyiceberg": ("python", 'type="hive"'),
    "iceberg rest": ("python", 'type="rest"'),
    "snapshots": ("text", "SHOW SNAPSHOTS"),
    "duckdb rest": ("sql", "TYPE iceberg"),
    "trust store": ("sh", "keytool"),
    "spark rest": ("python", "rest.auth.basic"),
    "iceberg for java": ("java", "HiveCatalog"),
    "hive": ("sh", "hive --hiveconf"),
    "spark's hiveserver2": ("sh", "HiveThriftServer2"),
    "beeline": ("sh", "beeline -u"),
    "sail": ("python", "pysail"),
    "airflow": ("python", "airflow.providers"),
    "datahub": ("yaml", "hive-metastore"),
    "hive-metastore-client": ("python", "hive_metastore_client"),
    "pymetastore": ("python", "pymetastore"),
}


def blocks() -> list[tuple[str, str]]:
    """Language and text of every fenced block, README's first."""
    texts = (path.read_text(encoding="utf-8") for path in (README, CALLING, ENGINES, ICEBERG))
    return [found for text in texts for found in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def block(name: str) -> str:
    """The one of BLOCKS."""
    wanted, part = BLOCKS[name]
    (text,) = [text for language, text in blocks() if language == wanted and part in text]
    return text


def commands() -> list[tuple[str, str]]:
    """Every command of the console blocks, with what it prints."""
    sessions = [text for language, text in blocks() if language == "console"]
    steps = [step.partition("\n") for text in sessions for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    return [(command, printed) for command, _, printed in steps]


def curl_session() -> tuple[str, str]:
    """The commands of README up to its first curl, after the one that serves, and what they print."""
    _, *rest = commands()
    calls = rest[: next(number for number, (command, _) in enumerate(rest, 1) if command.startswith("curl "))]
    script = "".join(f"{command}\n" for command, _ in calls)
    return f"exec 2>&1\nalias curl='curl -s'\n{script}", "".join(printed for _, printed in calls)


def prepare(folder: Path, server: GatewayServer) -> Path:
    """A folder that looks like the checkout after `make serve`, as it does already where the server's is its `var`."""
    for name, target in (("var", server.data_dir), ("schema", ROOT / "schema"), (".venv", Path(sys.prefix))):
        if not (folder / name).exists():
            (folder / name).symlink_to(target)
    return folder


def run(command: list[str], folder: Path, server: GatewayServer, **variables: str) -> str:
    """What a command prints in such a folder, with the password set as the page says."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "HMS_GATEWAY_PASSWORD": server.password, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
