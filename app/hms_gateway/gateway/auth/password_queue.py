"""Whose password is checked next: addresses take turns, and in each of them the users.

A check takes a processor for 20 ms and more, and a flood of them shall hold no others up. Checks of unknown users share
one lane of their address, and those that are likely to fail never have all the threads. Headers that were right before
come first. The checks that wait are shared out: what is too much goes from the longest lane of the address in the way,
or, of a user, from the address that has most checks of that name, so that the right password from elsewhere stays.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from hms_gateway.runtime.shares import Bound

T = TypeVar("T")

# The lane of names that no user has; a user's name is never empty.
UNKNOWN = ""


class Check(msgspec.Struct, Generic[T], frozen=True):
    """A password to be checked. `is_suspect`: the user is unknown, or has failed from there lately.

    `address` is None for one that is not limited, such as a proxy's. `user` is the name that was sent, known or not.
    """

    job: T
    address: str | None
    user: str
    lane: str
    is_suspect: bool = False
    was_right: bool = False


class _Address(msgspec.Struct, Generic[T]):
    lanes: OrderedDict[str, deque[Check[T]]] = msgspec.field(default_factory=OrderedDict)
    waiting: int = 0

    def longest_lane(self) -> str:
        return max(self.lanes, key=lambda lane: len(self.lanes[lane]))


class PasswordQueue(Generic[T]):
    """Pure bookkeeping. Who runs the checks calls `next` as long as there are threads."""

    def __init__(self, total: Bound, per_user: Bound, per_address: Bound) -> None:
        self._total = total
        self._per_user = per_user
        self._per_address = per_address
        self._first: deque[Check[T]] = deque()
        self._addresses: OrderedDict[str | None, _Address[T]] = OrderedDict()
        # Of each user, how many checks wait from where.
        self._users: dict[str, Counter[str | None]] = {}
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
        of_user = self._users.setdefault(check.user, Counter())
        of_user[check.address] += 1
        if check.address is not None and address.waiting > self._per_address.value:
            yield self._drop(check.address), self._per_address
        if of_user.total() > self._per_user.value:
            yield self._drop_of(check.user), self._per_user
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

    def _take(self, name: str | None, lane: str) -> Check[T]:
        """The first of the lane; other lanes of its address, and other addresses, come first now."""
        address = self._addresses[name]
        check = address.lanes[lane].popleft()
        address.lanes.move_to_end(lane)
        self._addresses.move_to_end(name)
        self._forget(check)
        return check

    def _drop(self, name: str | None) -> Check[T]:
        """The last of the longest lane of the address."""
        address = self._addresses[name]
        check = address.lanes[address.longest_lane()].pop()
        self._forget(check)
        return check

    def _drop_of(self, user: str) -> Check[T]:
        """The last of the user's from the address that has most of them; suspects go first among equals."""
        of_user = self._users[user]
        last = [self._last_of(user, name) for name, count in of_user.items() if count == max(of_user.values())]
        check = next((check for check in last if check.is_suspect), last[0])
        self._addresses[check.address].lanes[check.lane].remove(check)
        self._forget(check)
        return check

    def _last_of(self, user: str, name: str | None) -> Check[T]:
        lanes = self._addresses[name].lanes.values()
        return next(check for lane in lanes for check in reversed(lane) if check.user == user)

    def _forget(self, check: Check[T]) -> None:
        """It has left its lane."""
        address = self._addresses[check.address]
        address.waiting -= 1
        self._waiting -= 1
        if not address.lanes[check.lane]:
            del address.lanes[check.lane]
        if not address.lanes:
            del self._addresses[check.address]
        of_user = self._users[check.user]
        of_user[check.address] -= 1
        if not of_user[check.address]:
            del of_user[check.address]
        if not of_user:
            del self._users[check.user]
