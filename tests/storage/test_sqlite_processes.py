"""SQLite under several processes: what was answered survives a kill, and two writers do not disturb each other."""

from pathlib import Path

import pytest

from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.manual_clock import ManualClock
from tests.support.warm_program import WarmModule


def start_writer(url: str, count: int) -> WarmModule:
    return WarmModule("tests.storage.writer_process", url, str(count))


@pytest.mark.slow
def test_answered_writes_survive_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    writer = start_writer(url, 1_000_000)
    answered = [int(writer.stdout.readline()) for _ in range(50)]
    writer.kill()
    rest, _ = writer.communicate()
    answered += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
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
    writer = start_writer(url, 40)
    ours = []
    for _ in range(40):
        before = store.version()
        ours.append(store.write(lambda transaction: transaction.append_event(Event("Y", "d", None, "{}"))))
        assert ours[-1] > before
    theirs = [int(line) for line in writer.communicate()[0].splitlines()]
    assert writer.returncode == 0
    assert sorted(ours + theirs) == list(range(1, 81))
    assert store.version() == 80
    store.close()
