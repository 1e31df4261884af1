"""Counts what is shared out: how much of it there is, and how much of it one user or one address may hold.

Everything that callers compete for has a total; one user and one address may hold a fraction of it.
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


def parts(total: Bound, limits: Limits) -> tuple[Bound, Bound]:
    """The parts of a total that one user and one address may hold."""
    fractions = {"share_per_user": limits.share_per_user, "share_per_address": limits.share_per_address}
    per_user, per_address = (
        Bound(f"{name} of {total.name}", max(1, int(total.value * fraction))) for name, fraction in fractions.items()
    )
    return per_user, per_address


def shares_of(limits: Limits, name: str) -> "Shares":
    """The limit of that name, shared out among users and addresses."""
    total = bound_of(limits, name)
    return Shares(total, *parts(total, limits))


class Shares:
    """Amounts out of a total, in parts that one user and one address may hold. Used from one thread."""

    def __init__(self, total: Bound, per_user: Bound, per_address: Bound) -> None:
        self._total = total
        # In the order of a Holder.
        self._each = (per_user, per_address)
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
