"""Counts what Python executes while a call is answered: its lines, in every thread. The same call counts the same."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from hms_gateway.composition.main import Metastore
from tests.attacks.processor_calls import open_metastore


class Work:
    """`with work: …` counts what is executed inside; threads count that were started inside `work.watching()`."""

    def __init__(self) -> None:
        self.steps = 0
        self._is_counting = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Every thread that is started inside can be counted, and this one."""
        before = sys.gettrace()
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]

    def __enter__(self) -> "Work":
        self.steps = 0
        self._is_counting = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_counting = False

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_line if self._is_counting else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._is_counting and event == "line":
            self.steps += 1
        return self._on_line


# A doubling may cost a little more than the one before: buffers grow, numbers get another digit.
GROWTH_MAX = 2.3
SLACK_STEPS = 1_000


def is_linear(counted: Sequence[int]) -> bool:
    """Judge the work for three sizes, each twice the one before."""
    first, second, third = counted
    return third - second <= GROWTH_MAX * max(0, second - first) + SLACK_STEPS


def count(work: Work, answer: Callable[[], object]) -> int:
    with work:
        answer()
    return work.steps


class Watched(NamedTuple):
    metastore: Metastore
    work: Work


@contextmanager
def open_watched_metastore(folder: Path) -> Iterator[Watched]:
    """As `open_metastore`, its threads watched from their beginning."""
    work = Work()
    with work.watching(), open_metastore(folder) as metastore:
        yield Watched(metastore, work)
