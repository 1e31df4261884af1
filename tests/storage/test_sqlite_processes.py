"""SQLite under several processes: what was answered survives a kill, and two writers do not disturb each other."""

import subprocess
import sys
from pathlib import Path

import pytest

from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.manual_clock import ManualClock

ROOT = Path(__file__).resolve().parents[2]


def start_writer(url: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.storage.writer_process", url, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_answered_writes_survive_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    with start_writer(url, 1_000_000) as writer:
        assert writer.stdout is not None
        answered = [int(writer.stdout.readline()) for _ in range(50)]
        writer.kill()
        answered += [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    store = open_store(url, ManualClock(), Limits())
    ids = [event.event_id for event in store.changes_since(0)]  # type: ignore[arg-type]
    store.close()
    assert answered == list(range(1, len(answered) + 1))
    assert ids == list(range(1, len(ids) + 1))
    assert len(ids) >= len(answered)


@pytest.mark.slow
def test_two_processes_write_to_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    store = open_store(url, ManualClock(), Limits())
    with start_writer(url, 40) as writer:
        ours = []
        for _ in range(40):
            before = store.version()
            ours.append(store.write(lambda transaction: transaction.append_event(Event("Y", "d", None, "{}"))))
            assert ours[-1] > before
        assert writer.stdout is not None
        theirs = [int(line) for line in writer.stdout.read().splitlines()]
    assert writer.returncode == 0
    assert sorted(ours + theirs) == list(range(1, 81))
    assert store.version() == 80
    store.close()
