"""Commits under kills: that a lost, a doubled and a half-made commit is told, and a small run."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.commit_history import wrong_commits
from tests.linearizability.history import NEVER, Call, Failure

ROOT = Path(__file__).parents[2]
RIGHT = [("acknowledged", 1, 1), ("refused", 0, 0), ("unknown", 0, 0), ("unknown", 1, 1)]
WRONG = [("acknowledged", 0, 0), ("acknowledged", 2, 1), ("acknowledged", 1, 0), ("refused", 1, 1), ("unknown", 0, 1)]


def call(told: str) -> Call:
    answer = Failure("Refused", "409") if told == "refused" else None
    return Call(0, 0, "append", (7, "a", "b"), answer, 0, NEVER if told == "unknown" else 1)


@pytest.mark.parametrize(("told", "in_a", "in_b"), [*RIGHT, *WRONG, ("unknown", 2, 2)])
def test_what_clients_were_told_is_compared_with_the_histories(told: str, in_a: int, in_b: int) -> None:
    found = list(wrong_commits([call(told)], {"a": Counter({"7": in_a}), "b": Counter({"7": in_b})}))
    assert (not found) == ((told, in_a, in_b) in RIGHT)


def test_a_commit_that_nobody_sent_is_told() -> None:
    assert len(list(wrong_commits([], {"a": Counter({"7": 1})}))) == 1


@pytest.mark.whole
@pytest.mark.postgres
@pytest.mark.iceberg
def test_a_small_run() -> None:
    pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg (requirements/spark.txt)")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    sizes = ["--commits", "300", "--writers", "8", "--tables", "4", "--kills", "6"]
    command = [sys.executable, "-m", "benchmarks", "commits", *sizes]
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 writers and 2 gateways killed" in ran.stdout
