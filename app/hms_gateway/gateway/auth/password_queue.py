"""Whose password is checked next: addresses take turns, and in each of them the users.

A check takes a processor for 20 ms and more, and a flood of them shall hold no others up. Checks of unknown users share
one lane of their address, and those that are likely to fail never have all the threads. Headers that were right before
come first. The checks that wait are shared out: what is too much goes from the longest lane of the address in the way,
or, of a user, from the address that has most checks of that name, so that the right password from elsewhere stays.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from hms_gateway.runtime.shares import Bound, FairQueue, Holder, Ledger

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

    @property
    def holder(self) -> Holder:
        return Holder(self.user, self.address)


class PasswordQueue(Generic[T]):
    """Pure bookkeeping. Who runs the checks calls `next` as long as there are threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: deque[Check[T]] = deque()
        self._waiting: FairQueue[Check[T]] = FairQueue()
        # Of each user, how many checks wait from where; the addresses in the order in which they came.
        self._users: dict[str, Counter[str | None]] = {}

    def add(self, check: Check[T]) -> Iterator[tuple[Check[T], Bound]]:
        """Let it wait; the checks that lose their places for it, maybe itself, and the bound that was in the way."""
        if check.was_right:
            self._first.append(check)
            return
        self._waiting.add(check, check.address, check.lane)
        self._users.setdefault(check.user, Counter())[check.address] += 1
        while (bound := self._ledger.take(1, check.holder, parts_first=True)) is not None:
            dropped = self._dropped(bound, check)
            self._waiting.remove(dropped, dropped.address, dropped.lane)
            self._forget(dropped)
            yield dropped, bound
            if dropped is check:
                return
            self._ledger.give_back(1, dropped.holder)

    def next(self, *, suspects_too: bool) -> Check[T] | None:
        """The check whose turn it is; without `suspects_too`, of one that is likely to succeed."""
        if self._first:
            return self._first.popleft()
        check = self._waiting.next(lambda check: suspects_too or not check.is_suspect)
        if check is not None:
            self._ledger.give_back(1, check.holder)
            self._forget(check)
        return check

    def _dropped(self, bound: Bound, check: Check[T]) -> Check[T]:
        """The check that goes because of the bound."""
        if bound == self._ledger.per_address:
            return self._waiting.last(check.address)
        if bound == self._ledger.total:
            return self._waiting.last(self._waiting.longest())
        of_user = self._users[check.user]
        most = max(of_user.values())
        last = [self._last_of(check.user, address) for address, count in of_user.items() if count == most]
        # Suspects go first among equals, then what came from the first address.
        return next((one for one in last if one.is_suspect), last[0])

    def _last_of(self, user: str, address: str | None) -> Check[T]:
        """The last of the user's in the first lane that has one."""
        lanes = {one.lane: one for one in self._waiting if (one.user, one.address) == (user, address)}
        return next(iter(lanes.values()))

    def _forget(self, check: Check[T]) -> None:
        """It has left its lane."""
        of_user = self._users[check.user]
        of_user[check.address] -= 1
        if not of_user[check.address]:
            del of_user[check.address]
        if not of_user:
            del self._users[check.user]
