"""Pods as processes: the containers of manifests, with what a kubelet gives them, on loopback.

A container's command runs as the pod's account without capabilities, under a root file system that is read-only but for
its mounts (bubblewrap). Secrets and ConfigMaps are mounted as the kubelet does: files are links into a folder behind
the link `..data`, which an update swaps. Each containerPort gets a free port of loopback in its place. Variables and
entry point are those of the Dockerfile; the command is that of this environment.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import free_port, trusting
from tests.support.warm_program import COMMAND
from tools.kubernetes import CHART, HELM, ROOT

# A probe costs more than a look at a file.
POLL_SECONDS = 0.05
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
Manifest = dict[str, Any]
needs_helm = pytest.mark.skipif(not HELM.exists(), reason="no helm (scripts/peers unpacks it)")


def manifests_of(path: Path) -> list[Manifest]:
    return list(yaml.load_all(path.read_text("utf-8"), yaml.SafeLoader))


def rendered(*values: str, release: str = "one") -> list[Manifest]:
    """What helm makes of the chart with values such as `replicas=2`, whose right sides are JSON."""
    options = (word for value in values for word in ("--set-json", value))
    made = ran(HELM, "template", release, str(CHART), *options)
    assert made.returncode == 0, made.stderr
    return [one for one in yaml.safe_load_all(made.stdout) if one]


def ran(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def only(kind: str, manifests: Sequence[Manifest], name: str = "hms-gateway") -> Manifest:
    [found] = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


class Mounted:
    """A Secret or ConfigMap as the kubelet mounts it."""

    def __init__(self, folder: Path, content: Mapping[str, bytes], mode: int, group: int) -> None:
        self.folder = folder
        self._mode, self._group = mode, group
        self._updates = 0
        folder.mkdir()
        folder.chmod(0o755)
        self.update(content)

    def update(self, content: Mapping[str, bytes]) -> None:
        """A new folder with all files, then one rename that every file follows."""
        self._updates += 1
        before = self.folder / f"..{self._updates - 1}"
        new = self.folder / f"..{self._updates}"
        new.mkdir()
        new.chmod(0o755)
        for name, data in content.items():
            (new / name).write_bytes(data)
            os.chown(new / name, 0, self._group)
            (new / name).chmod(self._mode)
        (self.folder / "..data_tmp").symlink_to(new.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        for name in content:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        if before.exists():
            shutil.rmtree(before)


class Cluster:
    """What pods are started from: objects of manifests, contents of Secrets and ConfigMaps, folders of claims."""

    def __init__(
        self,
        folder: Path,
        manifests: Sequence[Manifest],
        contents: Mapping[str, Mapping[str, bytes]],
        claims: Sequence[str] = (),
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        """`addresses` have what stands in commands for addresses that only a cluster has."""
        if os.geteuid() != 0:
            pytest.skip("needs root")
        if shutil.which("bwrap") is None:
            pytest.skip("no bwrap (package bubblewrap)")
        tried = subprocess.run([*_read_only_root(), "--remount-ro", "/", "true"], capture_output=True, text=True)
        if tried.returncode:
            pytest.skip(f"not possible here: {tried.stderr.strip()}")
        self.folder = folder
        self.manifests = manifests
        self.addresses = addresses or {}
        self.contents = {
            **{one["metadata"]["name"]: _encoded(one["data"]) for one in manifests if one["kind"] == "ConfigMap"},
            **contents,
        }
        self.claims = {name: folder / name for name in claims}
        for claim in self.claims.values():
            claim.mkdir()
        self._pods: list[Pod] = []

    def pod(self, name: str, template: Manifest) -> "Pod":
        """One that is not started yet."""
        made = Pod(self, self.folder / name, template)
        self._pods.append(made)
        return made

    def update(self, secret: str, content: Mapping[str, bytes]) -> None:
        """The Secret has another content; so have the pods that mount it."""
        self.contents[secret] = content
        for pod in self._pods:
            for mounted in pod.mounted.get(secret, []):
                mounted.update(content)

    def address_of(self, service: str, port: int) -> tuple[str, int]:
        """The address of a ready pod behind this port of a Service; kube-proxy would choose the same."""
        spec = only("Service", self.manifests, service)["spec"]
        [target] = [one["targetPort"] for one in spec["ports"] if one["port"] == port]
        for pod in self._pods:
            if spec["selector"].items() <= pod.labels.items() and pod.is_ready():
                return "127.0.0.1", pod.port(target)
        raise AssertionError(f"{service} has no ready pod")


class Pod:
    """The containers of one pod; usable as a context manager, which starts and ends them."""

    def __init__(self, cluster: Cluster, folder: Path, template: Manifest) -> None:
        self._cluster, self._folder = cluster, folder
        self._spec = template["spec"]
        self.labels: dict[str, str] = template["metadata"]["labels"]
        self.mounted: dict[str, list[Mounted]] = {}
        self._running: list[tuple[Manifest, subprocess.Popen[bytes]]] = []
        folder.mkdir()
        self._context = self._spec["securityContext"]
        assert self._context["runAsNonRoot"]
        assert self._context["runAsUser"] != 0
        self._volumes = {one["name"]: self._volume(one) for one in self._spec.get("volumes", [])}
        containers = [*self._spec.get("initContainers", []), *self._spec["containers"]]
        self._ports = {port["containerPort"]: free_port() for one in containers for port in one.get("ports", [])}
        self._names = {port["name"]: port["containerPort"] for one in containers for port in one.get("ports", [])}

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Run the init containers to their ends, or as sidecars until their startup probes; then the others."""
        for container in self._spec.get("initContainers", []):
            if container.get("restartPolicy") == "Always":
                self._launch(container)
            else:
                self.run(container)
        for container in self._spec["containers"]:
            self._launch(container)
        return self

    def run(self, container: Manifest) -> None:
        """Run a container that ends. Raises AssertionError with what it says when it fails."""
        with self.log(container).open("ab") as output:
            ended = subprocess.run(
                self._command(container),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(container),
                timeout=PATIENCE_SECONDS,
            )
        assert ended.returncode == 0, self.log(container).read_text("utf-8")

    def stop(self) -> list[int]:
        """SIGTERM for all, sidecars last, as the kubelet does after preStop; their exit statuses."""
        statuses = []
        while self._running:
            _, outer = self._running.pop()
            # bwrap waits for the command that it runs, and passes no signals on.
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                child = _child_of(outer)
                os.kill(child, signal.SIGTERM)
                try:
                    outer.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    os.kill(child, signal.SIGKILL)
            statuses.append(outer.wait(PATIENCE_SECONDS))
        return statuses

    def is_ready(self) -> bool:
        return bool(self._running) and all(
            self.succeeds(container, container["readinessProbe"])
            for container, _ in self._running
            if "readinessProbe" in container
        )

    def port(self, name: str | int) -> int:
        """The port on loopback for a containerPort, by its name or number."""
        return self._ports[self._names.get(str(name), name)]

    def log(self, container: Manifest) -> Path:
        return self._folder / f"{container['name']}.log"

    def pids(self) -> list[int]:
        """Of the containers' own processes."""
        return [_child_of(outer) for _, outer in self._running]

    def succeeds(self, container: Manifest, probe: Manifest) -> bool:
        """The probe once, as the kubelet asks: any certificate, and a status from 200 to 399, are right."""
        if "exec" in probe:
            command = self._command(container, probe["exec"]["command"])
            variables = self._environment(container)
            return subprocess.run(command, env=variables, capture_output=True, timeout=PATIENCE_SECONDS).returncode == 0
        get = probe["httpGet"]
        port = self.port(get["port"])
        with contextlib.closing(
            http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS, context=trusting())
            if get["scheme"] == "HTTPS"
            else http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        ) as connection:
            try:
                connection.request("GET", get["path"])
                return 200 <= connection.getresponse().status < 400
            except (OSError, http.client.HTTPException):
                return False

    def _launch(self, container: Manifest) -> None:
        with self.log(container).open("ab") as output:
            command, variables = self._command(container), self._environment(container)
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables)
        self._running.append((container, process))

        def has_started() -> bool:
            assert process.poll() is None, self.log(container).read_text("utf-8")
            return "startupProbe" not in container or self.succeeds(container, container["startupProbe"])

        until(has_started, f"{container['name']} did not start", POLL_SECONDS)

    def _volume(self, volume: Manifest) -> Path:
        place = self._folder / volume["name"]
        group = self._context["fsGroup"]
        if "persistentVolumeClaim" in volume:
            place = self._cluster.claims[volume["persistentVolumeClaim"]["claimName"]]
        elif "emptyDir" in volume:
            place.mkdir()
        else:
            kind = "secret" if "secret" in volume else "configMap"
            name = volume[kind]["secretName" if kind == "secret" else "name"]
            mode = volume[kind].get("defaultMode", 0o644)
            mounted = Mounted(place, self._cluster.contents[name], mode, group)
            self.mounted.setdefault(name, []).append(mounted)
            return place
        os.chown(place, 0, group)
        place.chmod(0o2775)
        return place

    def _command(self, container: Manifest, command: Sequence[str] | None = None) -> list[str]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        mounts = []
        for mount in container.get("volumeMounts", []):
            bind = "--ro-bind" if mount.get("readOnly") else "--bind"
            mounts += _mount(bind, self._volumes[mount["name"]], mount["mountPath"])
        # The source tree and .venv, also where a mount hides them (below /tmp).
        mounts += _mount("--ro-bind", ROOT, str(ROOT))
        account = self._context
        as_account = [
            *("setpriv", f"--reuid={account['runAsUser']}", f"--regid={account['runAsGroup']}"),
            *(f"--groups={account['fsGroup']}", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"),
        ]
        entry = command or container.get("command") or [*_entry_point(), *container.get("args", [])]
        words = [COMMAND if word == "hms-gateway" else self._local(word) for word in entry]
        return [*_read_only_root(), *mounts, "--remount-ro", "/", *as_account, *words]

    def _local(self, word: str) -> str:
        for name, address in self._cluster.addresses.items():
            word = word.replace(name, address)
        return word

    def _environment(self, container: Manifest) -> dict[str, str]:
        values = _variables_of_image()
        for source in container.get("envFrom", []):
            content = self._cluster.contents[source["configMapRef"]["name"]]
            values |= {name: value.decode() for name, value in content.items()}
        for variable in container.get("env", []):
            value = variable.get("value")
            if value is None:
                key = variable["valueFrom"]["secretKeyRef"]
                value = self._cluster.contents[key["name"]][key["key"]].decode()
            values[variable["name"]] = value
        for name in ("HMS_GATEWAY_PORT", "HMS_GATEWAY_THRIFT_PORT"):
            if int(values.get(name, 0)) in self._ports:
                values[name] = str(self._ports[int(values[name])])
        for name in ("HMS_GATEWAY_HOST", "HMS_GATEWAY_THRIFT_HOST"):
            if name in values:
                assert values[name] == "0.0.0.0"
                values[name] = "127.0.0.1"
        # The folder of this environment's programs in the place of the image's.
        values["PATH"] = os.pathsep.join([str(Path(COMMAND).parent), os.defpath])
        return values


def _encoded(data: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.encode() for name, value in data.items()}


def _entry_point() -> list[str]:
    [words] = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    entry: list[str] = json.loads(words)
    return entry


def _variables_of_image() -> dict[str, str]:
    lines = re.findall(r"^ENV (.*)$", DOCKERFILE.rpartition("\nFROM ")[2], re.MULTILINE)
    return dict(one.split("=", 1) for line in lines for one in line.split())


def _read_only_root() -> list[str]:
    """This machine's folders below an empty root, in which places for mounts can be made; /etc likewise."""
    words = ["bwrap", "--die-with-parent", "--tmpfs", "/", "--perms", "0755", "--dir", "/etc"]
    for place in sorted([*Path("/").iterdir(), *Path("/etc").iterdir()]):
        if place.is_symlink():
            words += ["--symlink", str(place.readlink()), str(place)]
        elif str(place) not in ("/etc", "/proc", "/dev", "/tmp", "/data"):
            words += ["--ro-bind", str(place), str(place)]
    return [*words, "--proc", "/proc", "--dev", "/dev"]


def _mount(bind: str, source: Path, place: str) -> list[str]:
    """bwrap makes folders above a place for its own account only, others for all."""
    above = [str(one) for one in reversed(Path(place).parents)][1:]
    return [*(word for one in above for word in ("--perms", "0755", "--dir", one)), bind, str(source), place]


def _child_of(outer: subprocess.Popen[bytes]) -> int:
    """The process of the command that bwrap runs. Raises FileNotFoundError when both have ended."""
    listed = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    until(lambda: outer.poll() is not None or listed.read_text())
    return int(listed.read_text().split()[0])
