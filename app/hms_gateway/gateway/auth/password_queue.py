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

    def add(self, check: Check[T]) -> Iterator[tuple[Check[T], Bound]]:
        """Let it wait; the checks that lose their places for it, maybe itself, and the bound that was in the way."""
        if check.was_right:
            self._first.append(check)
            return
        self._waiting.add(check, check.address, check.lane)
        while (bound := self._ledger.take(1, check.holder, parts_first=True)) is not None:
            dropped = self._dropped(bound, check)
            self._waiting.remove(dropped, dropped.address, dropped.lane)
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
        return check

    def _dropped(self, bound: Bound, check: Check[T]) -> Check[T]:
        """The check that goes because of the bound."""
        if bound == self._ledger.per_address:
            return self._waiting.last(check.address)
        if bound == self._ledger.total:
            return self._waiting.last(self._waiting.longest())
        of_user = [one for one in self._waiting if one.user == check.user]
        of_address = Counter(one.address for one in of_user)
        most = max(of_address.values())
        last = {one.address: one for one in of_user if of_address[one.address] == most}.values()
        # Suspects go first among equals.
        return next((one for one in last if one.is_suspect), next(iter(last)))
