"""Leases that end by themselves: who had what when, as far as clients can tell.

A client knows of its lease only that it began between the request and its answer, and ended some time later. So there
are times at which it surely was live, and times at which it may have been. That two leases that exclude each other were
never surely live at once, and that each answer was possible at some moment of the call, is checked exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.linearizability.history import Call, answered
from tests.linearizability.lease_model import Claim, clash, contains
from tests.linearizability.numbering import Told, check_order

# Databases count in milliseconds, and their clock is slewed against the one that does not jump.
SLACK_NS = 5_000_000
SECOND_NS = 1_000_000_000


class Impossible(AssertionError):
    """Somebody had or was refused what cannot be; the text says what."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """A lease: surely live from `begin` to `end`, and never before `first` or after `last`."""

    lease_id: int
    claims: tuple[Claim, ...]
    first: int
    begin: int
    end: int
    last: int

    def clashes(self, claims: Iterable[Claim]) -> bool:
        return any(clash(mine, theirs) for mine in self.claims for theirs in claims)

    def lets_write(self, place: tuple[str, str | None, str | None]) -> bool:
        return any(kind == "x" and contains(mine, place) for mine, kind in self.claims)


def check_tenures(calls: Sequence[Call]) -> list[Tenure]:
    """The leases of a history. Raises Impossible and NotInOrder."""
    taken = answered(calls, "take")
    tenures = [_tenure(call, calls) for call in taken]
    check_order(Told(call.answer, call.invoked, call.returned) for call in taken)
    _check_exclusion(tenures)
    by_id = {tenure.lease_id: tenure for tenure in tenures}
    for call in calls:
        if call.name == "write" and call.is_answered:
            _check_write(call, by_id[call.arguments[0]], tenures)
        elif call.name == "take" and call.failure is not None:
            _check_refusal(call, calls, tenures)
    return tenures


def _tenure(taken: Call, calls: Sequence[Call]) -> Tenure:
    _, claims, seconds, _ = taken.arguments
    # An end is the next whole second.
    begin, end, last = taken.returned, taken.invoked + seconds * SECOND_NS, taken.returned + (seconds + 1) * SECOND_NS
    for call in calls:
        if call.name == "extend" and call.arguments[1] == taken.answer and not call.failure:
            longer = call.arguments[3] * SECOND_NS
            end = max(end, call.invoked + longer if call.is_answered else 0)
            last = max(last, call.returned + longer + SECOND_NS)
    for call in calls:
        if call.name == "drop" and call.arguments[1] == taken.answer:
            end, last = min(end, call.invoked), min(last, call.returned)
    return Tenure(taken.answer, claims, taken.invoked, begin, end - SLACK_NS, last + SLACK_NS)


def _check_exclusion(tenures: Sequence[Tenure]) -> None:
    in_order = sorted(tenures, key=lambda tenure: tenure.begin)
    for place, one in enumerate(in_order):
        for other in in_order[place + 1 :]:
            if other.begin >= one.end:
                break
            if other.end > other.begin and one.clashes(other.claims):
                raise Impossible(f"{one}\nand {other}\nwere live at once")


def _check_write(call: Call, tenure: Tenure, tenures: Sequence[Tenure]) -> None:
    place = call.arguments[1]
    if call.failure is not None:
        if tenure.lets_write(place) and tenure.begin <= call.invoked and call.returned <= tenure.end:
            raise Impossible(f"{call}\nwas refused under {tenure}")
        return
    others = [one for one in tenures if one is not tenure and one.clashes([(place, "x")])]
    moments = (max(call.invoked, tenure.first), min(call.returned, tenure.last))
    if not tenure.lets_write(place) or not any(_outside(moments, others)):
        raise Impossible(f"{call}\nwas made under {tenure},\nbeside\n" + "\n".join(map(str, _near(call, others))))


def _outside(moments: tuple[int, int], others: Iterable[Tenure]) -> Iterator[bool]:
    """True for each stretch of the moments at which none of the others surely was live."""
    first, last = moments
    for other in sorted(others, key=lambda one: one.begin):
        if other.end > other.begin and other.end > first:
            if other.begin > first:
                break
            first = other.end
    yield first <= last


def _check_refusal(call: Call, calls: Sequence[Call], tenures: Sequence[Tenure]) -> None:
    claims = call.arguments[1]
    was_held = any(one.clashes(claims) for one in tenures if one.first <= call.returned and call.invoked <= one.last)
    was_wanted = any(
        other.name == "take" and other is not call and any(clash(a, b) for a in other.arguments[1] for b in claims)
        for other in calls
        if other.invoked <= call.returned and call.invoked <= other.returned
    )
    if not was_held and not was_wanted:
        raise Impossible(f"{call}\nwas refused, and nothing was in its way")


def _near(call: Call, tenures: Iterable[Tenure]) -> list[Tenure]:
    return [one for one in tenures if one.first <= call.returned and call.invoked <= one.last]
