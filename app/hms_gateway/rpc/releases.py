"""Notifies waiting calls of this process that something they may wait for was released."""

import threading
from collections.abc import Callable

Listener = Callable[[], None]


class Releases:
    """Safe to use from any thread. Listeners are called in the thread that announces, and must not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        # How many there were, for callers that look before and after.
        self.count = 0

    def subscribe(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def announce(self) -> None:
        """Whatever it was is released and committed."""
        with self._lock:
            self.count += 1
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
