"""Sessions of pytest in other projects: the blocks of docs/testing.md as printed, their ends, and what they leave."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.spark.spark_session import why_not
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# The rest is loaded with the first metastore.
OURS = ["hms_gateway", "hms_gateway.testing", "hms_gateway.testing.plugin"]
A_TEST_THAT_HANGS = """
def test_it(metastore):
    metastore.client.call("get_all_databases")
    open("running", "w").close()
    import time
    time.sleep(600)
"""


class Project:
    """A folder with tests of somebody else, where sessions write their temporary files to another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.temporary = folder / "temporary"
        self.folder.mkdir()
        self.temporary.mkdir()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, "utf-8")

    def start(self, *options: str) -> "subprocess.Popen[str]":
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=../base", *options],
            cwd=self.folder,
            env={**variables, "TMPDIR": str(self.temporary), "PYTHONWARNINGS": "error::ResourceWarning"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str) -> str:
        with self.start(*options) as session:
            said, _ = session.communicate(timeout=PATIENCE_SECONDS)
        return said

    def left(self) -> list[str]:
        return sorted(path.name for path in self.temporary.iterdir())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _files(*parts: str) -> dict[str, str]:
    """Files of the document by name: those whose block begins with one of the names."""
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    found = re.findall(r"^```python\n# (\w+)\.py(?:, continued)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    files: dict[str, str] = {}
    for name, block in found:
        if name in parts:
            files[name] = files.get(name, "") + block
    return files


@pytest.mark.iceberg
def test_the_first_block_beside_a_test_that_fails_and_one_that_lacks_a_package(project: Project) -> None:
    wrong = """
import pathlib, pytest, sys
def test_with_spark(metastore_spark): ...
def test_failing(metastore):
    assert metastore.client.call("get_all_databases") == []
def test_with_another_session(metastore):
    pathlib.Path("inner.py").write_text("def test_it(): ...")
    assert pytest.main(["-p", "no:cacheprovider", "inner.py"]) == 0
    assert metastore.client.call("get_all_databases") == ["default"]
sys.modules["pyspark"] = None
"""
    project.write(**_files("test_orders"), test_wrong=wrong)
    said = project.run()
    assert "1 failed, 3 passed, 1 error" in said, said
    assert "pip install 'hms-gateway[spark]'" in said, said
    assert project.left() == []


def test_a_session_that_another_plugin_refuses_ends_with_its_text_alone(project: Project) -> None:
    refuse = 'import pytest\ndef pytest_configure(config):\n    raise pytest.UsageError("set DATABASE_URL first")\n'
    project.write(conftest=refuse)
    assert project.run() == "ERROR: set DATABASE_URL first\n\n"


def test_a_session_that_uses_no_metastore_loads_nothing() -> None:
    program = (
        "import sys, pytest\nimport importlib.metadata, subprocess, json, threading, atexit\n"
        "before = set(sys.modules)\nimport hms_gateway.testing.plugin\nprint(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == OURS


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.whole)], ids=["ctrl-c", "kill -9"]
)
def test_an_ended_session_leaves_nothing(project: Project, number: signal.Signals) -> None:
    project.write(test_it=A_TEST_THAT_HANGS)
    with project.start() as session:
        until((project.folder / "running").exists)
        (folder,) = project.left()
        os.killpg(session.pid, number)
        session.communicate(timeout=PATIENCE_SECONDS)
    # After a kill the process of the metastores sees the end of its input.
    until(lambda: project.left() == [])
    assert _programs_in(folder) == []


@pytest.mark.whole
def test_processes_of_xdist_have_their_own(project: Project) -> None:
    test = "def test_{}(metastore):\n    assert metastore.client.call('get_all_databases') == ['default']\n"
    project.write(**{f"test_{number}": test.format(number) for number in range(12)})
    said = project.run("-n", "4")
    assert "12 passed" in said, said
    assert project.left() == []


@pytest.mark.whole
@pytest.mark.spark
@pytest.mark.iceberg
def test_the_new_conftest_in_place_of_a_container(project: Project) -> None:
    if reason := why_not():
        pytest.skip(reason)
    project.write(**_files("conftest", "test_spark", "test_orders"))
    said = project.run()
    assert "4 passed" in said, said
    assert project.left() == []


def test_the_block_without_pytest(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(from hms_gateway.testing.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(block)
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()] == ["['default']", "['default']"]


def _programs_in(folder: str) -> Sequence[str]:
    """Command lines of processes that have a file of the folder open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(folder in os.readlink(handle) for handle in (process / "fd").iterdir()):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has ended, or is somebody else's
    return found
