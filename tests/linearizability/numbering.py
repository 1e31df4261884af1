"""Numbers that are given away once, in order, and seen to grow: exact checks that need no search.

A counter's history is linearizable when its calls can be ordered by what they were told without breaking the order
of real time, so it is enough that nothing that was answered before another call was made was told more.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """A call that was given `number`, or, when not `is_new`, saw it as the newest one."""

    number: int
    invoked: int
    returned: int
    is_new: bool = True

    @property
    def rank(self) -> int:
        """A number is seen only after it was given."""
        return 2 * self.number + (not self.is_new)


class NotInOrder(AssertionError):
    """Somebody was told what cannot be; the text names the two calls."""


def check_order(told: Iterable[Told]) -> None:
    """Raises NotInOrder unless numbers were given once each, and grew as time went on."""
    by_invocation = sorted(told, key=lambda one: one.invoked)
    by_return = sorted(by_invocation, key=lambda one: one.returned)
    given: dict[int, Told] = {}
    for one in by_invocation:
        if one.is_new and given.setdefault(one.number, one) is not one:
            raise NotInOrder(f"{one} and {given[one.number]}: given twice")
    highest: Told | None = None
    ended = 0
    for one in by_invocation:
        while by_return[ended].returned < one.invoked:
            if highest is None or by_return[ended].rank > highest.rank:
                highest = by_return[ended]
            ended += 1
        if highest is not None and highest.rank > one.rank:
            raise NotInOrder(f"{one} after {highest}")


def check_dense(numbers: Iterable[int], first: int) -> None:
    """Raises NotInOrder unless the numbers are first, first + 1, and so on, without a gap."""
    for expected, number in enumerate(sorted(numbers), first):
        if number != expected:
            raise NotInOrder(f"{number} was given where {expected} is missing or given twice")
