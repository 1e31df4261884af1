"""Counts what is shared out: how much of it there is, and how much of it one user or one address may hold."""

from typing import NamedTuple

from app.limits import Limits


class Bound(NamedTuple):
    """A bound by the name of its limit or setting, as refusals, log lines and metrics show it."""

    name: str
    value: int


def part(bound: Bound, total: Bound) -> Bound:
    """`bound`, cut to three quarters of `total`, so that one holder never has everything."""
    return Bound(bound.name, max(1, min(bound.value, total.value * 3 // 4)))


def body_memory(limits: Limits) -> "Shares":
    """The memory for bodies and messages, by user and address."""
    return Shares(
        Bound("body_memory_bytes_max", limits.body_memory_bytes_max),
        Bound("body_memory_bytes_per_user_max", limits.body_memory_bytes_per_user_max),
        Bound("body_memory_bytes_per_address_max", limits.body_memory_bytes_per_address_max),
    )


class Shares:
    """Amounts out of a total. A holder of each kind, such as a user or an address, has a bound of its own.

    `take` and `give_back` name one holder of each kind, in the order of `each`; None is a holder without a bound.
    Used from one thread.
    """

    def __init__(self, total: Bound, *each: Bound) -> None:
        self._total = total
        self._each = tuple(part(bound, total) for bound in each)
        self._held: tuple[dict[str, int], ...] = tuple({} for _ in each)
        self.taken = 0

    def take(self, amount: int, *holders: str | None) -> Bound | None:
        """Take the amount; or take nothing, and return the bound that is in the way."""
        assert amount > 0
        if self.taken + amount > self._total.value:
            return self._total
        for bound, held, holder in zip(self._each, self._held, holders, strict=True):
            if holder is not None and held.get(holder, 0) + amount > bound.value:
                return bound
        self.taken += amount
        for held, holder in zip(self._held, holders, strict=True):
            if holder is not None:
                held[holder] = held.get(holder, 0) + amount
        return None

    def give_back(self, amount: int, *holders: str | None) -> None:
        """End what `take` began, with the same holders; parts of an amount may go back one by one."""
        assert 0 <= amount <= self.taken
        self.taken -= amount
        for held, holder in zip(self._held, holders, strict=True):
            if holder is None:
                continue
            left = held.get(holder, 0) - amount
            assert left >= 0
            if left:
                held[holder] = left
            else:
                held.pop(holder, None)
