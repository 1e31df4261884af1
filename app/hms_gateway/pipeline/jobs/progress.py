"""Shows progress: bars on a terminal, a line of JSON every ten seconds elsewhere, nothing in a function."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

LINE_SECONDS: Final = 10.0
BAR_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Amount:
    """The done part of a stage; `total` is None while it is unknown."""

    done: int
    total: int | None = None


class Progress:
    """Shows nothing. `look` of a stage is called from a thread now and then, and once at the end of the stage."""

    every_seconds: float = 0.0

    @contextmanager
    def stage(self, name: str, unit: str, look: Callable[[], Amount]) -> Iterator[None]:
        """The stage `name` for as long as the body runs."""
        if not self.every_seconds:
            yield
            return
        begun, ended = time.monotonic(), threading.Event()
        self._begin(name, unit)

        def watch() -> None:
            while not ended.wait(self.every_seconds):
                self._look(name, unit, look, begun)

        thread = threading.Thread(target=watch, name=f"progress of {name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._look(name, unit, look, begun)
            self._end(name)

    def _look(self, name: str, unit: str, look: Callable[[], Amount], begun: float) -> None:
        try:
            amount = look()
        except Exception:  # What is shown must not end what is done: the state may be away for a moment.
            return
        self._show(name, unit, amount, max(time.monotonic() - begun, 1e-3))

    def _begin(self, name: str, unit: str) -> None:
        """A stage begins."""

    def _show(self, name: str, unit: str, amount: Amount, seconds: float) -> None:
        """A stage is where it is."""

    def _end(self, name: str) -> None:
        """A stage has ended."""


class Lines(Progress):
    """A JSON object on a line: stage, done, total, rate and remaining seconds."""

    every_seconds = LINE_SECONDS

    def _show(self, name: str, unit: str, amount: Amount, seconds: float) -> None:
        rate = amount.done / seconds
        left = None if amount.total is None or not rate else round((amount.total - amount.done) / rate)
        line: dict[str, Any] = {
            "stage": name,
            "unit": unit,
            "done": amount.done,
            "total": amount.total,
            "rate": round(rate, 1),
            "remaining_seconds": left,
        }
        sys.stderr.write(msgspec.json.encode(line).decode() + "\n")
        sys.stderr.flush()


class Terminal(Progress):
    """Bars with rate and remaining time."""

    every_seconds = BAR_SECONDS

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: dict[str, tuple[Bars, TaskID]] = {}

    def _begin(self, name: str, unit: str) -> None:
        bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        bars.start()
        self._bars[name] = (bars, bars.add_task(name, total=None, rate=""))

    def _show(self, name: str, unit: str, amount: Amount, seconds: float) -> None:
        bars, task = self._bars[name]
        rate = f"{amount.done / seconds:,.0f}/s"
        bars.update(task, completed=amount.done, total=amount.total, rate=rate)

    def _end(self, name: str) -> None:
        self._bars.pop(name)[0].stop()
