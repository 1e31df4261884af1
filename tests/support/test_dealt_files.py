"""Processes of pytest that share a list of files run each of them once, as one process would."""

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.dealt_files import dealt, take
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


def test_rooms_stay_together_and_what_takes_longest_begins() -> None:
    room, longer = "tests/spark", "tests/simulation"
    sizes = {"a.py": 1, "b.py": 3, f"{room}/a.py": 1, f"{room}/b.py": 1, f"{longer}/c.py": 2}
    lines = [f"{room}/a.py {room}/b.py", f"{longer}/c.py", "b.py", "a.py"]
    assert dealt(sizes) == lines


def run(folder: Path, contents: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Two processes over the files."""
    (folder / "inner").mkdir()
    for name, text in {"inner/conftest.py": FIXTURES, "pytest.ini": OPTIONS, **contents}.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.dealt_files", "--processes=2", "-q", *arguments]
    return subprocess.run(
        [*command, "--rootdir=.", "--basetemp=run", "-p", "no:cacheprovider"],
        cwd=folder,
        # Without the options of the run that this test is part of.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


PASSING = {f"inner/test_{number}.py": PASSES for number in range(12)}


@pytest.mark.slow
def test_two_processes_run_all_files_and_one_says_what_failed(tmp_path: Path) -> None:
    contents = PASSING | {"inner/test_fails.py": FAILS, "inner/test_broken.py": "import nowhere"}
    contents |= {"inner/test_other.py": f"import pytest\npytestmark = pytest.mark.other\n{FAILS}"}
    ran = run(tmp_path, contents, "-m", "not other")
    assert ran.returncode == 1, ran.stdout
    assert ran.stdout.count("FAILED inner/test_fails.py::test_it") == 1, ran.stdout
    assert ran.stdout.count("ERROR inner/test_broken.py") == 1, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("1 failed, 12 passed, 1 error in "), ran.stdout
    # What they share ends with them, once.
    logs = [(tmp_path / "run" / f"log{number}").read_text() for number in range(2)]
    assert [log.count("ENDED") for log in logs] == [int("passed" in log) for log in logs]


@pytest.mark.slow
def test_a_process_that_dies_fails_the_run_and_its_test_is_named(tmp_path: Path) -> None:
    ran = run(tmp_path, PASSING | {"inner/test_dies.py": "import os\ndef test_it():\n    os._exit(0)"})
    assert ran.returncode == 1, ran.stdout
    assert "FAILED inner/test_dies.py::test_it - " in ran.stdout, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("1 failed, 12 passed in "), ran.stdout


@pytest.mark.slow
def test_files_that_no_process_is_left_for_fail_the_run(tmp_path: Path) -> None:
    dies = "import os\ndef test_it():\n    os._exit(0)\n" + "#" * 1_000  # large files are first
    ran = run(tmp_path, PASSING | {"inner/test_dies.py": dies, "inner/test_too.py": dies})
    assert ran.returncode == 1, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("3 failed in "), ran.stdout
    assert "nothing was left to run inner/test_0.py" in ran.stdout


@pytest.mark.slow
def test_a_hanging_test_dies_with_its_stack(tmp_path: Path) -> None:
    hangs = "import threading\ndef test_it():\n    threading.Event().wait()"
    options = ("-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true")
    ran = run(tmp_path, {"inner/test_hangs.py": hangs}, *options)
    assert ran.returncode == 1, ran.stdout
    assert "FAILED inner/test_hangs.py::test_it - " in ran.stdout, ran.stdout
    assert 'test_hangs.py", line 3 in test_it' in ran.stdout, ran.stdout


@pytest.mark.slow
def test_arguments_choose_tests(tmp_path: Path) -> None:
    two = "def test_one():\n    pass\ndef test_two():\n    assert False"
    ran = run(tmp_path, PASSING | {"inner/test_two.py": two}, "inner/test_two.py::test_one", "inner/test_3.py")
    assert ran.stdout.splitlines()[-1].startswith("2 passed in "), ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["-k", "unheard"], 5), (["nowhere"], 4), (["--unheard"], 4)],
    ids=["name", "file", "option"],
)
def test_a_run_of_nothing_fails(tmp_path: Path, arguments: list[str], status: int) -> None:
    assert run(tmp_path, {"inner/test_0.py": PASSES}, *arguments).returncode == status


@pytest.mark.slow
def test_the_first_failure_may_stop_all(tmp_path: Path) -> None:
    failing = {f"inner/test_fails_{number}.py": FAILS for number in range(40)}
    ran = run(tmp_path, failing, "-x")
    assert ran.returncode == 1, ran.stdout
    assert "stopping after " in ran.stdout, ran.stdout
    assert (tmp_path / "run" / "files").read_text(), "all were run"
