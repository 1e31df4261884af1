"""What is counted of lines that cannot be written."""

import threading

import pytest

from hms_gateway.runtime import logging as program_logging
from hms_gateway.runtime.logging import LineWriter
from tests.support.patience import PATIENCE_SECONDS


class FullDisk:
    """Takes nothing until there is room."""

    def __init__(self) -> None:
        self.tries = threading.Semaphore(0)
        self.has_room = False
        self.text = ""

    def write(self, text: str) -> None:
        self.tries.release()
        if not self.has_room:
            raise OSError(28, "No space left on device")
        self.text += text

    def flush(self) -> None: ...


def test_a_full_disk_loses_the_lines_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_logging, "FLUSH_EVERY_SECONDS", 0.001)
    disk = FullDisk()
    writer = LineWriter("audit log", disk)
    try:
        writer.write_line("one")
        for _ in range(5):
            assert disk.tries.acquire(timeout=PATIENCE_SECONDS)
        disk.has_room = True
    finally:
        writer.close()
    assert writer.lost == 1
    assert '"calls":1' in disk.text.replace(" ", "")
