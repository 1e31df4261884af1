"""Whose password is checked next: addresses take turns, and in each of them the users.

A check takes a processor for 20 ms and more, and a flood of them shall hold no others up. Checks of unknown users share
one lane of their address, and those that are likely to fail never have all the threads. Headers that were right before
come first.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hms_gateway.runtime.shares import Bound

T = TypeVar("T")

# The lane of names that no user has; a user's name is never empty.
UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """A password to be checked. `is_suspect`: the user is unknown, or has failed from there lately."""

    job: T
    address: str
    lane: str
    is_suspect: bool = False
    was_right: bool = False


@dataclass(slots=True)
class _Address(Generic[T]):
    lanes: OrderedDict[str, deque[Check[T]]] = field(default_factory=OrderedDict)
    waiting: int = 0

    def longest_lane(self) -> str:
        return max(self.lanes, key=lambda lane: len(self.lanes[lane]))


class PasswordQueue(Generic[T]):
    """Pure bookkeeping. Who runs the checks calls `next` as long as there are threads."""

    def __init__(self, total: Bound, each: Bound) -> None:
        self._total = total
        self._each = each
        self._first: deque[Check[T]] = deque()
        self._addresses: OrderedDict[str, _Address[T]] = OrderedDict()
        self._waiting = 0

    def add(self, check: Check[T]) -> Iterator[tuple[Check[T], Bound]]:
        """Let it wait; the checks that lose their places for it, maybe itself, and the bound that was in the way."""
        if check.was_right:
            self._first.append(check)
            return
        address = self._addresses.setdefault(check.address, _Address())
        address.lanes.setdefault(check.lane, deque()).append(check)
        address.waiting += 1
        self._waiting += 1
        if address.waiting > self._each.value:
            yield self._drop(check.address), self._each
        if self._waiting > self._total.value:
            yield self._drop(max(self._addresses, key=lambda name: self._addresses[name].waiting)), self._total

    def next(self, *, suspects_too: bool) -> Check[T] | None:
        """The check whose turn it is; without `suspects_too`, of one that is likely to succeed."""
        if self._first:
            return self._first.popleft()
        for name, address in self._addresses.items():
            for lane, checks in address.lanes.items():
                if suspects_too or not checks[0].is_suspect:
                    return self._take(name, lane)
        return None

    def _take(self, name: str, lane: str) -> Check[T]:
        """The first of the lane; other lanes of its address, and other addresses, come first now."""
        address = self._addresses[name]
        check = address.lanes[lane].popleft()
        address.lanes.move_to_end(lane)
        self._addresses.move_to_end(name)
        self._forget(name, lane)
        return check

    def _drop(self, name: str) -> Check[T]:
        """The last of the longest lane of the address."""
        address = self._addresses[name]
        lane = address.longest_lane()
        check = address.lanes[lane].pop()
        self._forget(name, lane)
        return check

    def _forget(self, name: str, lane: str) -> None:
        """One check has left the lane."""
        address = self._addresses[name]
        address.waiting -= 1
        self._waiting -= 1
        if not address.lanes[lane]:
            del address.lanes[lane]
        if not address.lanes:
            del self._addresses[name]
