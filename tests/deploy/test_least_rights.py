"""The gateway serves with the rights of the unit and the image: own account, no capability, read-only file systems."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import PASSWORD, USER, GatewayServer, basic

SCRIPT = Path(__file__).parents[2] / "deploy" / "least-rights"
ACCOUNT = 10_001


class Confined(GatewayServer):
    """The data folder, and nothing else, is the account's."""

    def _command(self) -> list[str]:
        for path in (self.data_dir, *self.data_dir.rglob("*")):
            os.chown(path, ACCOUNT, ACCOUNT)
        return [str(SCRIPT), str(self.data_dir), str(ACCOUNT), *super()._command()]


def confined(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    run = [str(SCRIPT), str(folder), str(ACCOUNT), *command]
    return subprocess.run(run, capture_output=True, text=True, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder that the account can reach, as it can our Python."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")):
        pytest.skip("needs root, unshare and setpriv")
    for above in tmp_path.parents:
        if above.stat().st_uid == os.geteuid() and above != Path(above.root):
            above.chmod(above.stat().st_mode | 0o011)
    os.chown(tmp_path, ACCOUNT, ACCOUNT)
    tried = confined(tmp_path, sys.executable, "-c", "")
    if tried.returncode:
        pytest.skip(f"not possible here: {tried.stderr.strip()}")
    return tmp_path


def test_only_the_data_folder_can_be_written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    other.chmod(0o777)
    script = 'for place in "$@"; do touch "$place/file" 2>/dev/null && echo "$place"; done; true'
    tried = confined(folder, "sh", "-c", script, "sh", str(folder), str(other), "/tmp", "/var/tmp", "/dev/shm")
    assert tried.stdout.split() == [str(folder)]


def test_the_gateway_serves_and_has_no_rights_to_lose(folder: Path) -> None:
    with Confined(folder) as server:
        body = b'[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"sales"}}}}]'
        status, answer = server.post(body, headers=basic(USER, PASSWORD))
        assert (status, answer.endswith(b",{}]")) == (200, True), answer
        facts = facts_of(server.pid)
        assert facts["Uid"].split() == [str(ACCOUNT)] * 4
        assert facts["NoNewPrivs"] == "1"
        assert {int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert server.stop() == 0


def facts_of(pid: int) -> dict[str, str]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value for name, _, value in (line.partition(":\t") for line in lines)}
