"""The gateway serves with the rights of the unit and the image: own account, no capability, read-only file systems."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ordinary_account import ACCOUNT, IS_ROOT, OrdinaryServer, data_folder, skip_unless_possible
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import PASSWORD, USER, basic

SCRIPT = Path(__file__).parents[2] / "deploy" / "least-rights"


def confined(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*under(folder), *command], capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def under(folder: Path) -> list[str]:
    return [str(SCRIPT), str(folder), str(ACCOUNT)]


@pytest.fixture
def folder() -> Iterator[Path]:
    if not IS_ROOT:
        pytest.skip("needs root")
    with data_folder() as made:
        skip_unless_possible(under(made))
        yield made


def test_only_the_data_folder_can_be_written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    other.chmod(0o777)
    script = 'for place in "$@"; do touch "$place/file" 2>/dev/null && echo "$place"; done; true'
    tried = confined(folder, "sh", "-c", script, "sh", str(folder), str(other), "/tmp", "/var/tmp", "/dev/shm")
    assert tried.stdout.split() == [str(folder)]


@pytest.mark.slow
def test_the_gateway_serves_and_has_no_rights_to_lose(folder: Path) -> None:
    with OrdinaryServer(folder, under(folder)) as server:
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
