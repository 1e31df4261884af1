"""Processes of pytest that share a list of files run each of them once, as one process would."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.dealt_files import take
from tests.support.readme import ROOT

FIXTURES = """
import pytest

@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    yield "made"
    print("ENDED")

@pytest.fixture
def of_the_folder():
    return "folder"
"""
PASSES = """
def test_fixtures(made_once, of_the_folder):
    assert (made_once, of_the_folder) == ("made", "folder")
"""
OPTIONS = """
[pytest]
markers = other
addopts = --import-mode=importlib
"""
FAILS = """
def test_it():
    assert False
"""


def test_each_line_is_taken_once(tmp_path: Path) -> None:
    names = [f"file_{number}.py" for number in range(200)]
    (tmp_path / "files").write_text("\n".join(names) + "\n")
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(take, [tmp_path / "files"] * 202))
    assert sorted(filter(None, taken)) == sorted(names)


def start(folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.dealt_files", "--take-from", "files", "-q", "-s"]
    return subprocess.Popen(
        [*command, "-m", "not other", "--rootdir=.", f"--basetemp=tmp-{number}", "-p", "no:cacheprovider"],
        cwd=folder,
        # Without the options of the run that this test is part of.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_two_processes_run_all_files_and_say_what_failed(tmp_path: Path) -> None:
    contents = {f"inner/test_{number}.py": PASSES for number in range(12)}
    contents |= {"inner/conftest.py": FIXTURES, "pytest.ini": OPTIONS}
    contents |= {"inner/test_fails.py": FAILS, "inner/test_broken.py": "import nowhere"}
    contents |= {"inner/test_other.py": f"import pytest\npytestmark = pytest.mark.other\n{FAILS}"}
    (tmp_path / "inner").mkdir()
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    files = [name for name in contents if "/test_" in name]
    (tmp_path / "files").write_text("\n".join(files) + "\n")
    processes = [start(tmp_path, number) for number in range(2)]
    said = [process.communicate(timeout=60)[0] for process in processes]
    printed = "".join(said)
    assert printed.count("FAILED inner/test_fails.py::test_it") == 1, printed
    assert printed.count("ERROR inner/test_broken.py") == 1, printed
    assert "1 deselected" in printed
    passed = [int(text.rpartition(" passed")[0].split()[-1]) for text in said if " passed" in text]
    assert sum(passed) == 12, printed
    # A process that passed over one of the two, and ran others, has passed. What it shares ends with it.
    assert 1 in {process.returncode for process in processes}
    assert all(text.count("ENDED") == 1 for text in said if " passed" in text)
