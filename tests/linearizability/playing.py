"""Lets client processes play worlds, and reads what they wrote down."""

from collections.abc import Sequence
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final

import pytest

from tests.linearizability.history import Call, read_journals
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sample import sample
from tests.support.warm_program import WarmModule

PROCESSES: Final = 16
# So many times as many worlds as the suite takes.
SCALE: Final = sample(1, of=40)
# Clients of one process share its compiled statements, which take longer than their calls.
SPREAD: Final = sample(("--processes", 4, "--threads", 4), of=())
on_each_database = pytest.mark.parametrize(
    "database_url",
    [
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ],
    indirect=True,
)
# What would hardly find on another database what the same test on PostgreSQL and others on this one do not.
MARIADB_OF_THE_WHOLE: Final = pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole])
OTHERS_OF_THE_WHOLE: Final = [
    pytest.param("sqlite", marks=pytest.mark.whole),
    pytest.param("postgres", marks=pytest.mark.postgres),
    MARIADB_OF_THE_WHOLE,
]


def start(folder: Path, kind: str, addresses: Sequence[str], *options: object) -> WarmModule:
    """Client processes that write their journals into `folder`."""
    words = [str(folder), kind, *(word for address in addresses for word in ("--address", address))]
    words += ["--processes", str(PROCESSES), *map(str, options)]  # the last one counts
    return WarmModule("tests.linearizability.processes", *words, says_errors=True)


def finish(process: WarmModule, folder: Path) -> list[Call]:
    """The calls of all of them when they are through. Raises AssertionError for one that failed."""
    errors, _ = process.communicate(timeout=PATIENCE_SECONDS + 600 * SCALE)
    assert process.returncode == 0, errors[-4_000:]
    return read_journals(folder.glob("*.journal"))


def play(folder: Path, kind: str, addresses: Sequence[str], *options: object) -> list[Call]:
    return finish(start(folder, kind, addresses, *options), folder)


def wait_for_journals(process: WarmModule, folder: Path, bytes_min: int) -> None:
    """Until so much is written, or all is done."""
    while sum(path.stat().st_size for path in folder.glob("*.journal")) < bytes_min:
        try:
            process.wait(0.02)
        except TimeoutExpired:
            continue
        return
