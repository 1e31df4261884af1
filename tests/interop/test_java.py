"""Java's THttpClient over HttpURLConnection and over Apache's HttpClient, with Hive's own generated client: java/."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.faults.dropping_proxy import DroppingProxy, Loss
from tests.oracle.peer import SHORT_LIVES, PeerUnavailable, prepared_folder
from tests.support.java_classes import class_path
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

JAVA_FOLDER = Path(__file__).parent / "java"
SOURCES = ("CountingSockets.java", "HttpScenarios.java")
SCENARIOS = re.findall(r"^    public void (\w+)\(\)", (JAVA_FOLDER / "HttpScenarios.java").read_text(), re.MULTILINE)
TRANSPORTS = ("url_connection", "http_client")
TRUST_STORE_PASSWORD = "changeit"

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """A gateway whose certificate a private authority signed, which believes no proxy. Changes respect locks."""
    folder = tmp_path_factory.mktemp("java")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    authority.cert_pem.write_to_path(folder / "authority.pem")
    settings = {"tls_certificate": str(certificate), "tls_key": str(key), "locks_implicit": "deny"}
    with GatewayServer(folder, demo=True, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def trusting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """A gateway with the certificate it made itself, which believes clients of this machine that they are ann."""
    settings = {"http_networks": ["127.0.0.1"], "network_users": ["ann"]}
    with GatewayServer(tmp_path_factory.mktemp("trusting"), settings=settings) as running:
        yield running


class LosingProxy(DroppingProxy):
    """Loses the first reply to each body that has a name with `reply_lost` in it."""

    def __init__(self, gateway: GatewayServer) -> None:
        super().__init__(gateway)
        self._lost: set[bytes] = set()

    def next_loss(self, body: bytes) -> Loss | None:
        names = set(re.findall(rb"\w*reply_lost\w*", body)) if b"create_database" in body else set()
        if names <= self._lost:
            return None
        self._lost |= names
        return Loss.REPLY


@pytest.fixture(scope="module")
def losing_proxy(server: GatewayServer) -> Iterator[DroppingProxy]:
    with LosingProxy(server) as running:
        yield running


@pytest.fixture(scope="module")
def jars() -> Path:
    """The folder of Hive's and Thrift's jars. Skips where they or a JDK are missing."""
    for command in ("javac", "keytool"):
        if shutil.which(command) is None:
            pytest.skip(f"no JDK (command {command})")
    try:
        return prepared_folder() / "jars"
    except PeerUnavailable as reason:
        pytest.skip(f"no jars of Hive: {reason}")


@pytest.fixture(scope="module")
def trust_store(jars: Path, server: GatewayServer, trusting_server: GatewayServer) -> Path:
    """Made as an operator makes it: keytool, the authority of one server and the certificate of the other."""
    store = server.data_dir / "trust.p12"
    certificates = {"authority": server.data_dir / "authority.pem", "own": trusting_server.data_dir / "certificate.pem"}
    for alias, file in certificates.items():
        options = ("-storetype", "PKCS12", "-storepass", TRUST_STORE_PASSWORD, "-noprompt")
        run("keytool", "-importcert", "-alias", alias, "-file", str(file), "-keystore", str(store), *options)
    return store


@pytest.fixture(scope="module")
def outcomes(
    jars: Path,
    trust_store: Path,
    server: GatewayServer,
    trusting_server: GatewayServer,
    losing_proxy: DroppingProxy,
) -> dict[str, str]:
    """What each scenario said: nothing, or its complaint."""
    printed = run(
        "java",
        f"-Djavax.net.ssl.trustStore={trust_store}",
        f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}",
        "-Xmx1g",
        *("-cp", class_path(jars, *map(JAVA_FOLDER.joinpath, SOURCES)), "HttpScenarios"),
        f"https://127.0.0.1:{server.port}",
        f"https://localhost:{trusting_server.port}",
        f"http://127.0.0.1:{losing_proxy.port}",
        server.user,
        str(usual_certificates()),
        environment={"PASSWORD": server.password},
    )
    return dict(line.split("\t", 1) for line in printed.splitlines() if "\t" in line)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_java_client(transport: str, scenario: str, outcomes: dict[str, str], server: GatewayServer) -> None:
    complaint = outcomes[f"{transport}.{scenario}"]
    assert not complaint, complaint


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_name_in_a_header_counts_from_a_named_network_only(
    transport: str, outcomes: dict[str, str], server: GatewayServer, trusting_server: GatewayServer
) -> None:
    assert user_of(server, f"{transport}-known") == server.user
    assert user_of(trusting_server, f"{transport}-trusted") == "ann"


def user_of(server: GatewayServer, request_id: str) -> str:
    """Who made the call, by the access log."""
    server.stop()
    records = [json.loads(line) for line in server.log_text().splitlines() if line.startswith("{")]
    (user,) = {record["user"] for record in records if record.get("request_id") == request_id}
    return str(user)


def usual_certificates() -> Path:
    """The authorities that a JVM trusts when it is told nothing."""
    return Path(shutil.which("javac") or "").resolve().parents[1] / "lib" / "security" / "cacerts"


def run(*command: str, environment: dict[str, str] | None = None) -> str:
    """What it prints. Its error output is shown when it fails."""
    finished = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, **SHORT_LIVES, **(environment or {})},
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
