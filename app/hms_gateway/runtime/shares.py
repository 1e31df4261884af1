"""Counts what is shared out: how much of it there is, and how much of it one user or one address may hold.

Everything that callers compete for has a total, a share for each user and a share for each address.
"""

from typing import NamedTuple

from hms_gateway.runtime.limits import Limits


class Bound(NamedTuple):
    """A bound by the name of its limit or setting, as refusals, log lines and metrics show it."""

    name: str
    value: int


class Holder(NamedTuple):
    """The holder of a share. None has no share: an address that many use, such as a proxy's, is not limited."""

    user: str | None
    address: str | None


NO_HOLDER = Holder(None, None)


def bound_of(limits: Limits, name: str) -> Bound:
    """The limit of that name."""
    return Bound(name, getattr(limits, name))


def part(bound: Bound, total: Bound) -> Bound:
    """`bound`, cut to three quarters of `total`, so that one holder never has everything."""
    return Bound(bound.name, max(1, min(bound.value, total.value * 3 // 4)))


def body_memory(limits: Limits) -> "Shares":
    """The memory for bodies and messages, by user and address."""
    return Shares(
        bound_of(limits, "body_memory_bytes_max"),
        bound_of(limits, "body_memory_bytes_per_user_max"),
        bound_of(limits, "body_memory_bytes_per_address_max"),
    )


class Shares:
    """Amounts out of a total, in parts that one user and one address may hold. Used from one thread."""

    def __init__(self, total: Bound, per_user: Bound, per_address: Bound) -> None:
        self._total = total
        # In the order of a Holder.
        self._each = (part(per_user, total), part(per_address, total))
        self._held: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.taken = 0

    def take(self, amount: int, holder: Holder) -> Bound | None:
        """Take the amount; or take nothing, and return the bound that is in the way."""
        assert amount > 0
        if self.taken + amount > self._total.value:
            return self._total
        for bound, held, name in zip(self._each, self._held, holder, strict=True):
            if name is not None and held.get(name, 0) + amount > bound.value:
                return bound
        self.taken += amount
        for held, name in zip(self._held, holder, strict=True):
            if name is not None:
                held[name] = held.get(name, 0) + amount
        return None

    def give_back(self, amount: int, holder: Holder) -> None:
        """End what `take` began, with the same holder; parts of an amount may go back one by one."""
        assert 0 <= amount <= self.taken
        self.taken -= amount
        for held, name in zip(self._held, holder, strict=True):
            if name is None:
                continue
            left = held.get(name, 0) - amount
            assert left >= 0
            if left:
                held[name] = left
            else:
                held.pop(name, None)
