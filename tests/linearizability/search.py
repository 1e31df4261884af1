"""Is there an order in which the calls of a history could have happened one at a time?

Such an order must keep what was so in real time (a call that was answered before another was made comes first) and must
be one in which the model gives every answer that was given. Then the history is linearizable. The search is that of
Wing and Gong: take any call that may be the next one, go on from there, come back when that leads nowhere; never look
twice at the same calls done in the same state, nor at both orders of two calls that have nothing to do with each other.
A search that went astray early on may not come back for hours: after a while another one begins, in another order.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from tests.linearizability.history import NEVER, Call, shown

# A history that is right needs a few states for each call, unless the search went astray; the last try takes minutes.
STATES_MAX: Final = (*[20_000] * 9, 200_000)
# A database may finish what a client that is dead by now had asked for.
LATE_NS: Final = 20_000_000

State = TypeVar("State", bound=Hashable)


class Model(Protocol[State]):
    """What is called, as a state machine over values."""

    def begin(self) -> State: ...

    def step(self, state: State, call: Call) -> Iterable[State]:
        """The states the call may lead to with the answer it got; none when it cannot be answered so.

        A call without an answer may have had any.
        """

    def commute(self, one: Call, other: Call) -> bool:
        """Whether it makes no difference which of two calls comes first, neither to answers nor to the state.

        A wrong yes costs time, never a wrong verdict.
        """

    def stays_idle(self, call: Call) -> bool:
        """Whether the call, where it changes nothing, would change nothing later either."""


class NotLinearizable(AssertionError):
    """No order explains the history; the text shows how far the longest attempt came."""


class GivenUp(NotLinearizable):
    """None was found so far."""


class Undecided(GivenUp):
    """No search came to an end, not even one with shortcuts: that says nothing for or against the history."""


@dataclass(slots=True)
class _Level:
    """One call that was taken: where the search stands after it, and what else could be taken from there."""

    state: object
    chosen: int | None
    options: Iterator[tuple[int, object]]


def linearization(
    calls: Sequence[Call],
    model: Model[State],
    earlier: Sequence[tuple[Call, Call]] = (),
    states_max: Sequence[int] = STATES_MAX,
    *,
    is_thorough: bool = True,
) -> list[Call]:
    """An order that explains the answers; calls without an answer may be missing in it.

    Raises NotLinearizable; GivenUp where there might be one that was not found. `states_max` says how many states each
    try may take, `is_thorough` whether the last one is made without shortcuts. `earlier` are pairs of which the first
    is known to have happened before the second, for instance since it was given the smaller number: the fewer orders
    there are, the sooner one is found.
    """
    in_order = sorted(calls, key=lambda call: call.invoked)
    for number, limit in enumerate(states_max):
        try:
            return _Search(in_order, model, earlier, guess=number).run(limit)
        except GivenUp as error:
            failure: NotLinearizable = Undecided(*error.args)
        except NotLinearizable as error:
            failure = error
            break
    if not is_thorough:
        raise failure
    # Perhaps the shortcuts led astray: calls that commute only seemingly, or that took effect after their end.
    try:
        return _Search(in_order, model, earlier, is_thorough=True).run(states_max[-1])
    except GivenUp as error:
        raise (failure if isinstance(failure, Undecided) else error) from None


class _Search:
    """`guess` numbers the orders in which it takes what may come next."""

    def __init__(
        self,
        calls: list[Call],
        model: Model[State],
        earlier: Sequence[tuple[Call, Call]],
        *,
        guess: int = 0,
        is_thorough: bool = False,
    ) -> None:
        self._calls = calls
        self._model = model
        places = {id(call): place for place, call in enumerate(calls)}
        self._needs = [0] * len(calls)
        for first, second in earlier:
            self._needs[places[id(second)]] |= 1 << places[id(first)]
        self._latest = [call.returned if is_thorough else min(call.ended + LATE_NS, call.returned) for call in calls]
        self._after = [
            sum(1 << place for place, call in enumerate(calls) if call.invoked > latest) for latest in self._latest
        ]
        # Of calls without an answer: those that are too late after each call.
        self._precludes = [
            sum(1 << lost for lost, call in enumerate(calls) if not call.is_answered and self._after[lost] >> place & 1)
            for place in range(len(calls))
        ]
        self._bound = [-1] * len(calls) if is_thorough else self._bonds()
        self._moments = self._guessed(Random(guess)) if guess else [call.returned for call in calls]
        self._wanted = sum(1 << place for place, call in enumerate(calls) if call.is_answered)
        self._seen: set[tuple[int, object]] = set()

    def run(self, states_max: int) -> list[Call]:
        begin: object = self._model.begin()
        longest: tuple[int, int, object] = (0, 0, begin)
        done = 0
        levels = [_Level(begin, None, self._options(0, begin))]
        while levels:
            if done & self._wanted == self._wanted:
                return [self._calls[level.chosen] for level in levels if level.chosen is not None]
            level = levels[-1]
            following = next(level.options, None)
            if following is None:
                levels.pop()
                if level.chosen is not None:
                    done ^= 1 << level.chosen
                continue
            place, state = following
            reached = done | 1 << place
            if (reached, state) in self._seen:
                continue
            self._seen.add((reached, state))
            if len(self._seen) > states_max:
                raise GivenUp(f"given up after {states_max} states. {self._explanation(*longest[1:])}")
            done = reached
            levels.append(_Level(state, place, self._options(done, state)))
            if len(levels) > longest[0]:
                longest = (len(levels), done, state)
        raise NotLinearizable(self._explanation(*longest[1:]))

    def _guessed(self, random: Random) -> list[float]:
        """When the calls may have happened."""
        return [random.uniform(call.invoked, min(call.ended, call.returned)) for call in self._calls]

    def _options(self, done: int, state: object) -> Iterator[tuple[int, object]]:
        """What may come next, the earliest first; the first search takes the moment of the answer, the most likely one.

        A call that never changes anything and may be the next one is taken without looking at others: in any order that
        goes on from here it can be moved to the front, unless something would be too late then. One without an answer
        need not have happened, so it can wait.
        """
        found: list[tuple[int, object]] = []
        possible, there = self._possible(done)
        for place in possible:
            following = list(self._model.step(state, self._calls[place]))  # type: ignore[arg-type]
            if following == [state] and not self._calls[place].is_answered:
                continue
            is_first = self._precludes[place] & there == 0 and self._model.stays_idle(self._calls[place])
            if following == [state] and is_first:
                return iter([(place, state)])
            found += [(place, each) for each in following]
        return iter(found)

    def _possible(self, done: int) -> tuple[list[int], int]:
        """The calls that were made before any of those not done was answered, and are not too late.

        Of these only the one that was answered first, and what has to do with it, directly or by others. It comes
        sometime, and whatever is put before it and has nothing to do with it may as well come later.
        The second value is all of them.
        """
        found: list[int] = []
        first_return = NEVER
        place = (~done & (done + 1)).bit_length() - 1
        while place < len(self._calls) and self._calls[place].invoked < first_return:
            if not done >> place & 1:
                first_return = min(first_return, self._calls[place].returned)
                found.append(place)
            place += 1
        found = [
            place for place in found if self._calls[place].invoked < first_return and self._after[place] & done == 0
        ]
        found.sort(key=lambda place: self._calls[place].returned)
        near = self._around(found)
        possible = [place for place in found if near >> place & 1 and self._needs[place] & ~done == 0]
        return sorted(possible, key=self._moments.__getitem__), sum(1 << place for place in found)

    def _around(self, places: list[int]) -> int:
        there = sum(1 << place for place in places)
        near = fresh = 1 << places[0] if places else 0
        while fresh:
            found = 0
            for place in places:
                if fresh >> place & 1:
                    found |= self._bound[place]
            fresh = found & there & ~near
            near |= fresh
        return near

    def _bonds(self) -> list[int]:
        """For each call those that overlap with it and do not commute with it, and those that must come before it.

        A call without an answer has to do with those that it is too late after.
        """
        bonds = [needs | precluded for needs, precluded in zip(self._needs, self._precludes, strict=True)]
        for place, call in enumerate(self._calls):
            if not call.is_answered:
                bonds[place] |= self._after[place]
            for other in range(place + 1, len(self._calls)):
                if self._calls[other].invoked > self._latest[place]:
                    break
                if not self._model.commute(call, self._calls[other]):
                    bonds[place] |= 1 << other
                    bonds[other] |= 1 << place
        return bonds

    def _explanation(self, done: int, state: object) -> str:
        missing = [call for place, call in enumerate(self._calls) if not done >> place & 1]
        number = len(self._calls) - len(missing)
        return (
            f"{number} of {len(self._calls)} calls can be put into an order that leads to\n{state}\n"
            f"and then none of these goes on:\n{shown(missing[:40])}\nThe whole history:\n{shown(self._calls)}"
        )
