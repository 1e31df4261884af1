"""The ports of leases in memory for millions of simulated calls, with events, so that changes can be fenced."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from hms_gateway.metastore.ports.store import Event, EventId
from tests.txn.lease_memory import MemoryLeases

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    event_id: EventId
    event: Event


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

    def read(self, work: Callable[[Any], T]) -> T:
        return work(self)

    def write(self, work: Callable[[Any], T]) -> T:
        before, event_count = self.leases, len(self.events)
        self.leases = copy(before)
        for name in ("_held", "_waiting", "_ids"):
            setattr(self.leases, name, dict(getattr(before, name)))
        try:
            return work(self)
        except BaseException:
            self.leases = before
            del self.events[event_count:]
            raise

    def append_event(self, event: Event) -> EventId:
        self.events.append(event)
        return EventId(len(self.events))

    def current_event_id(self) -> EventId:
        return EventId(len(self.events))

    def events_after(self, event_id: int) -> list[StoredEvent]:
        return [
            StoredEvent(EventId(number), self.events[number - 1])
            for number in range(event_id + 1, len(self.events) + 1)
        ]

    @property
    def held(self) -> dict[tuple[int, Any], Any]:
        """Each object of each lease, also those past their end."""
        return self.leases._held  # type: ignore[return-value]

    @property
    def waiting(self) -> dict[int, tuple[Any, int]]:
        """Claims of those who wait by ticket, and until when they count."""
        return self.leases._waiting
