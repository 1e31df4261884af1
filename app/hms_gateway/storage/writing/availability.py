"""Judges if the database does what is asked of it: an outage is one line in the log when it begins, one when it ends.

A server that hangs keeps its connections, and nothing on them ever fails. When a new one gets no answer either, all
are cut off, so that their users hear of it, and until one is answered again no other is made.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any
from weakref import WeakSet

import structlog

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreUnavailable
from hms_gateway.storage.dialects.base import NoAnswer

_log = structlog.get_logger("hms_gateway.storage")


class Availability:
    """Used by any thread. `lost_commits` counts the changes of which it is not known whether they happened."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: set[str] = set()
        self._began = 0.0
        self._refused = 0
        self._silent: StoreUnavailable | None = None
        self._connections: WeakSet[Any] = WeakSet()
        self.lost_commits = 0

    @property
    def is_up(self) -> bool:
        return not self._failing

    def note(self, kind: str, failure: BaseException | None = None) -> None:
        """A unit of work of this kind (`read`, `write`) has ended, with what it raised."""
        if isinstance(failure, OutcomeUnknown):
            with self._lock:
                self.lost_commits += 1
        elif isinstance(failure, StoreUnavailable):
            # The gateway's own limits are counted and logged where the call is refused.
            if not failure.limit:
                self._fail(kind, failure, refused=1)
        elif kind in self._failing:
            self._work({kind})

    def note_answer(self, failure: Exception | None = None) -> None:
        """A new connection was made or not."""
        if isinstance(failure, StoreUnavailable):
            self._fail("answer", failure)
            if isinstance(failure, NoAnswer):
                self._cut_off(failure)
        elif failure is None and self._failing:
            self._silent = None
            self._work(set(self._failing))

    def check(self) -> None:
        """Raises StoreUnavailable while the database hangs: who connects now would wait in vain."""
        silent = self._silent
        if silent is not None:
            raise StoreUnavailable(str(silent), silent.detail)

    def keep(self, connection: Any) -> None:
        """A driver's connection to cut off when the database hangs."""
        with self._lock:
            self._connections.add(connection)

    def _fail(self, kind: str, failure: StoreUnavailable, refused: int = 0) -> None:
        with self._lock:
            begins = not self._failing
            self._failing.add(kind)
            if begins:
                self._began, self._refused = self._clock(), 0
            self._refused += refused
        if begins:
            _log.error("the database cannot be used", problem=str(failure), detail=failure.detail)

    def _work(self, kinds: set[str]) -> None:
        with self._lock:
            was_failing = bool(self._failing)
            self._failing -= kinds
            ends = was_failing and not self._failing
            seconds, refused = round(self._clock() - self._began, 1), self._refused
        if ends:
            _log.warning("the database can be used again", seconds=seconds, refused=refused)

    def _cut_off(self, failure: StoreUnavailable) -> None:
        self._silent = failure
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            # Closed ones have no socket any more.
            with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as shared:
                shared.shutdown(socket.SHUT_RDWR)
