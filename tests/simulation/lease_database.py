"""The ports of leases in memory for millions of simulated calls, with events, so that changes can be fenced."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

from hms_gateway.metastore.ports.store import Event, EventId
from tests.txn.lease_memory import MemoryLeases

T = TypeVar("T")


class _DatabaseClock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000_000_000

    def milliseconds(self) -> int:
        return self.now_ms


class LeaseDatabase:
    """A unit of work that raises changes nothing."""

    def __init__(self) -> None:
        self.clock = _DatabaseClock()
        self.local_skew_ms = 0
        self.leases = MemoryLeases(self.clock)  # type: ignore[no-untyped-call, arg-type]
        self.leases.database = self  # type: ignore[attr-defined]
        self.events: list[Event] = []
        self._events_before = 0

    def read(self, work: Callable[[Any], T]) -> T:
        return work(self)

    def write(self, work: Callable[[Any], T]) -> T:
        before, self._events_before = self.leases, len(self.events)
        self.leases = copy(before)
        for name in ("_held", "_waiting", "_ids"):
            setattr(self.leases, name, dict(getattr(before, name)))
        try:
            return work(self)
        except BaseException:
            self.leases = before
            del self.events[self._events_before :]
            raise

    def append_event(self, event: Event) -> EventId:
        self.events.append(event)
        return EventId(len(self.events))

    def made_events(self) -> Sequence[Event]:
        return self.events[self._events_before :]

    @property
    def held(self) -> dict[tuple[int, Any], Any]:
        """Each object of each lease, also those past their end."""
        return self.leases._held  # type: ignore[return-value]

    @property
    def waiting(self) -> dict[int, tuple[Any, int]]:
        """Claims of those who wait by ticket, and until when they count."""
        return self.leases._waiting
