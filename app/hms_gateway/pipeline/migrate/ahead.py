"""Reads the source in a thread of its own while what was read before is written."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def ahead(produce: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What `produce` gives, made in another thread while the one before is used; it is at most two ahead."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(2)
    is_given_up = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not is_given_up.is_set():
            try:
                ready.put((kind, value), timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def run() -> None:
        try:
            for value in produce():
                if not put("value", value):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=run, name="reading ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        is_given_up.set()
        thread.join()
