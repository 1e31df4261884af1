"""The image, built by `make image` and run by Podman with the options of docs/security.md."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy.test_least_rights import facts_of
from tests.support.ordinary_account import IS_ROOT
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.readme import curl_session
from tools.licences import problems

pytestmark = [pytest.mark.whole, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BASE, STAND_IN = "docker.io/library/python:3.13-slim", "localhost/python-stand-in:3.13"
BYTES_MAX = 150_000_000
# Podman's own may be above those of the tests.
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1000:1000")
# As docs/security.md says.
OPTIONS = [
    *("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *(*LIMITS, "--stop-timeout", "240", "--log-driver", "k8s-file"),
    *("--env", "HMS_GATEWAY_ADMIN_PASSWORD=secret"),
]
# As deploy/instead-of-hive.yml has it.
THRIFT = ("THRIFT_PORT=9083", "THRIFT_HOST=0.0.0.0", 'THRIFT_NETWORKS=["127.0.0.0/8"]', "AUTHORIZATION=off")
BRIDGE = [
    *("bridge", "--port", "9085", "--health-port", "9084", "--user", "spark", "--url"),
    *(
        "https://localhost:30443/gateway/default/hmshttpthrift/api/hms",
        "--cacert",
        "/login/ca.crt",
        "--token-file",
        "/login/token",
    ),
]
ENGINE = """
import sys
from hms_gateway.client.thrift_client import ThriftClient
with ThriftClient("127.0.0.1", int(sys.argv[1])) as client:
    print(client.call("get_all_databases"))
"""
# Calls once, and again when it is told to.
CLIENT = """
import http.client, ssl, sys
connection = http.client.HTTPSConnection("localhost", 30443, context=ssl._create_unverified_context())
for call in "first", "second":
    headers = {"authorization": "Basic YWRtaW46c2VjcmV0"}
    body = '[1,"get_all_databases",1,1,{}]'
    connection.request("POST", "/gateway/default/hmshttpthrift/api/hms", body=body, headers=headers)
    response = connection.getresponse()
    print(call, response.status if response.read() else None, flush=True)
    sys.stdin.readline()
"""


class Podman:
    """Images in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n'
        )
        runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
        (folder / "containers.conf").write_text(
            f'[engine]\n{runtime}events_logger = "file"\ntmp_dir = "{folder}/tmp"\n'
        )
        self.variables = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            # Programs of the build are ours; they need no namespaces.
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINER_TOOL": "podman",
        }

    def run(self, *words: str) -> str:
        ran = subprocess.run(["podman", *words], env=self.variables, capture_output=True, text=True)
        assert ran.returncode == 0, (words, ran.stdout[-2000:], ran.stderr[-2000:])
        return ran.stdout.strip()

    def build(self, base: str, *options: str) -> str:
        """The id of the image."""
        command = [str(ROOT / "scripts" / "image"), "--build-arg", f"BASE={base}", *options]
        ran = subprocess.run(command, env=self.variables, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        name = ran.stdout.strip().splitlines()[-1].partition(",")[0]
        return self.run("image", "inspect", "--format", "{{.Id}}", name)

    def content(self, image: str) -> str:
        """Digests of layers, settings and time. An id of Podman's is also about names of the build's containers."""
        parts = "{{json .RootFS}} {{json .Config}} {{json .HealthCheck}} {{.Architecture}} {{.Os}} {{.Created}}"
        return self.run("image", "inspect", "--format", parts, image)

    def bytes_of(self, image: str) -> int:
        return int(self.run("image", "inspect", "--format", "{{.Size}}", image))

    @contextmanager
    def running(self, image: str, *words: str, options: tuple[str, ...] = (), network: str = "none") -> Iterator[str]:
        """The id of a container of the image, once it is healthy."""
        container = self.run("run", "--detach", "--network", network, *OPTIONS, *options, image, *words)
        try:
            until(lambda: self.is_healthy(container), "unhealthy", pause_seconds=0.2)
            yield container
        finally:
            self.run("rm", "--force", "--time", "0", "--volumes", container)

    def is_healthy(self, container: str) -> bool:
        """What the health check of the image says."""
        assert self.run("inspect", "--format", "{{.State.Status}}", container) == "running", self.log(container)
        command = ["podman", "healthcheck", "run", container]
        return subprocess.run(command, env=self.variables, capture_output=True).returncode == 0

    def log(self, container: str) -> str:
        ran = subprocess.run(["podman", "logs", container], env=self.variables, capture_output=True, text=True)
        return ran.stdout + ran.stderr

    def in_network_of(self, container: str) -> list[str]:
        """What is put before a command that is to reach the container's loopback."""
        return ["nsenter", "--target", self.process(container), "--net", "--"]

    def process(self, container: str) -> str:
        return self.run("inspect", "--format", "{{.State.Pid}}", container)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    for program in ("podman", "nsenter", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    if not IS_ROOT:
        pytest.skip("needs root")
    # On a disk: it takes 2 GB.
    with tempfile.TemporaryDirectory(prefix="hms-podman-", dir="/var/tmp") as folder:
        made = Podman(Path(folder))
        yield made
        made.run("rm", "--all", "--force")
        made.run("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def base(podman: Podman) -> str:
    pulled = subprocess.run(["podman", "pull", "--quiet", BASE], env=podman.variables, capture_output=True, text=True)
    if pulled.returncode == 0:
        return BASE
    if shutil.which("mmdebstrap") is None:
        pytest.skip(f"no registry with {BASE}, and no mmdebstrap to make a stand-in")
    command = [str(ROOT / "tests" / "deploy" / "stand-in-base"), STAND_IN]
    made = subprocess.run(command, env=podman.variables, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no registry with {BASE}, and no stand-in: {made.stderr[-500:]}")
    return STAND_IN


@pytest.fixture(scope="module")
def image(podman: Podman, base: str) -> str:
    return podman.build(base)


def test_it_answers_the_readme_without_rights_on_a_read_only_root(podman: Podman, image: str) -> None:
    with podman.running(image, "serve", "--demo") as container:
        script, answers = curl_session()
        command = [*podman.in_network_of(container), "sh", "-c", script]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert ran.stdout.rstrip("\n") == answers.rstrip("\n")
        facts = facts_of(int(podman.process(container)))
        assert (facts["Uid"].split(), facts["Gid"].split()) == (["10001"] * 4, ["10001"] * 4)
        assert facts["NoNewPrivs"] == "1"
        assert {int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        places = "/data /tmp / /opt/hms-gateway /warehouse"
        touch = f'for place in {places}; do touch "$place/x" 2>/dev/null && echo "$place"; done; true'
        assert podman.run("exec", container, "sh", "-c", touch).split() == ["/data", "/tmp"]
        assert [line for line in podman.log(container).splitlines() if "error" in line or "Traceback" in line] == []


@pytest.mark.parametrize("settings", [("PORT=8443",), ("TLS=false", "HOST=::1")])
def test_the_health_check_knows_the_settings(podman: Podman, image: str, settings: tuple[str, ...]) -> None:
    options = tuple(f"--env=HMS_GATEWAY_{setting}" for setting in settings)
    with podman.running(image, options=options) as container:
        # It listens, and does not answer.
        os.kill(int(podman.process(container)), signal.SIGSTOP)
        assert not podman.is_healthy(container)


def test_engines_call_the_second_port_and_a_bridge_of_another_account(
    podman: Podman, image: str, tmp_path: Path
) -> None:
    exposed = podman.run("image", "inspect", "--format", "{{json .Config.ExposedPorts}}", image)
    assert set(json.loads(exposed)) == {"30443/tcp", "9083/tcp"}
    with podman.running(image, options=tuple(f"--env=HMS_GATEWAY_{setting}" for setting in THRIFT)) as gateway:
        assert podman.run("exec", gateway, "python", "-c", ENGINE, "9083") == "['default']"
        (tmp_path / "token").write_text(podman.run("exec", gateway, "hms-gateway", "token", "create", "spark"))
        (tmp_path / "ca.crt").write_text(podman.run("exec", gateway, "cat", "/data/certificate.pem"))
        tmp_path.chmod(0o755)
        for file in tmp_path.iterdir():
            os.chown(file, 185, 185)
        # As in deploy/kubernetes/spark/driver.yaml.
        beside = ("--user", "185:185", "--volume", f"{tmp_path}:/login:ro")
        check = ("--health-cmd", "hms-gateway healthy --port 9084 --no-tls")
        with podman.running(image, *BRIDGE, options=(*beside, *check), network=f"container:{gateway}") as bridge:
            assert podman.run("exec", bridge, "python", "-c", ENGINE, "9085") == "['default']"


def test_a_stop_waits_for_clients_and_ends_with_0(podman: Podman, image: str) -> None:
    with podman.running(image, options=("--env", "HMS_GATEWAY_DRAIN_IDLE_SECONDS=240")) as container:
        command = [*podman.in_network_of(container), sys.executable, "-c", CLIENT]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as client:
            assert client.stdout.readline() == "first 200\n"
            stop = subprocess.Popen(["podman", "stop", container], env=podman.variables, stdout=subprocess.DEVNULL)
            until(lambda: '"stopping when ' in podman.log(container), pause_seconds=0.2)
            client.stdin.write("\n")
            assert client.stdout.readline() == "second 200\n"
            client.stdin.write("\n")
        assert stop.wait(PATIENCE_SECONDS) == 0
        assert podman.run("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
        assert '"stopped"' in podman.log(container)


def test_it_is_small_and_lists_what_is_in_it(podman: Podman, image: str, base: str) -> None:
    assert podman.bytes_of(image) - podman.bytes_of(base) < BYTES_MAX
    modules = "fastavro, gssapi, s3fs, pymysql, psycopg, importlib.metadata as m"
    program = f"import {modules}; print(*{{d.name for d in m.distributions()}})"
    alone = ("run", "--rm", "--network", "none", *LIMITS, "--entrypoint")
    installed = set(podman.run(*alone, "python", image, "-c", program).split())
    bill = json.loads(podman.run(*alone, "cat", image, "/opt/hms-gateway/sbom.cdx.json"))
    listed = {component["name"] for component in [bill["metadata"]["component"], *bill["components"]]}
    assert listed == installed
    assert problems(bill) == []


def test_an_extra_of_the_build_is_in_it(podman: Podman, base: str) -> None:
    image = podman.build(base, "--build-arg", "EXTRAS=ldap,otel")
    alone = ("run", "--rm", "--network", "none", *LIMITS, "--entrypoint", "python")
    program = "import bonsai, opentelemetry.sdk; bonsai.LDAPClient('ldap://localhost')"
    assert podman.run(*alone, image, "-c", program) == ""


def test_the_same_sources_make_the_same_layers_and_settings(podman: Podman, image: str, base: str) -> None:
    assert podman.content(podman.build(base, "--no-cache")) == podman.content(image)
