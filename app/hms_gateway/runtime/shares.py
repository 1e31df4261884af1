"""Resources that callers compete for: ledgers count shares of a total, fair queues say whose turn it is.

Of every total one user and one address may hold a fraction.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from heapq import nsmallest
from typing import Generic, NamedTuple, Protocol, TypeVar

from hms_gateway.runtime.limits import Limits

T = TypeVar("T")

# When there are too many connections, so many of a hundred are cut off in one go: looking for them takes time.
CUT_PERCENT = 5
# Where no file is left, others wait for one already.
CUT_WITHOUT_FILES_PERCENT = 20


class Bound(NamedTuple):
    """A bound by the name of its limit or setting, as refusals, log lines and metrics show it."""

    name: str
    value: int


class Holder(NamedTuple):
    """The holder of a share. None has no share: an address that many use, such as a proxy's, is not limited."""

    user: str | None
    address: str | None


NO_HOLDER = Holder(None, None)


class Ledger:
    """Amounts out of a total, in parts that one user and one address may hold. Used from one thread.

    The total is a limit by its name, or a bound of another kind.
    """

    def __init__(self, limits: Limits, total: str | Bound) -> None:
        self.total = Bound(total, getattr(limits, total)) if isinstance(total, str) else total
        self.per_user = self._part("share_per_user", limits.share_per_user)
        self.per_address = self._part("share_per_address", limits.share_per_address)
        self.taken = 0
        self._users: dict[str, int] = {}
        self._addresses: dict[str, int] = {}

    def _part(self, name: str, fraction: float) -> Bound:
        return Bound(f"{name} of {self.total.name}", max(1, int(self.total.value * fraction)))

    def take(self, amount: int, holder: Holder, *, parts_first: bool = False) -> Bound | None:
        """Take the amount; or take nothing, and return the bound that is in the way.

        Of several it is the total. With `parts_first` it is the one of the address, else of the user: who has more
        than its part makes room, and nobody else.
        """
        assert amount > 0
        user, address = holder
        of_user = 0 if user is None else self._users.get(user, 0) + amount
        of_address = 0 if address is None else self._addresses.get(address, 0) + amount
        in_the_way = []
        if self.taken + amount > self.total.value:
            in_the_way.append(self.total)
        if of_user > self.per_user.value:
            in_the_way.append(self.per_user)
        if of_address > self.per_address.value:
            in_the_way.append(self.per_address)
        if in_the_way:
            return in_the_way[-1 if parts_first else 0]
        self.taken += amount
        if user is not None:
            self._users[user] = of_user
        if address is not None:
            self._addresses[address] = of_address
        return None

    def give_back(self, amount: int, holder: Holder) -> None:
        """End what `take` began, with the same holder; parts of an amount may go back one by one."""
        assert 0 <= amount <= self.taken
        self.taken -= amount
        for held, name in ((self._users, holder.user), (self._addresses, holder.address)):
            if name is None:
                continue
            left = held.get(name, 0) - amount
            assert left >= 0
            if left:
                held[name] = left
            else:
                held.pop(name, None)

    def of_user(self, user: str | None) -> int:
        """The amount that the user holds."""
        return 0 if user is None else self._users.get(user, 0)

    def makes_room(self, bound: Bound, holder: Holder, other: Holder) -> bool:
        """True if `other` could give back something that `bound` keeps from `holder`."""
        if bound == self.per_user:
            return other.user == holder.user
        if bound == self.per_address:
            return other.address == holder.address
        return True


class FairQueue(Generic[T]):
    """Groups take turns, in each of them the lanes, and a lane is served in order. Pure bookkeeping."""

    def __init__(self) -> None:
        self._groups: OrderedDict[Hashable, OrderedDict[Hashable, deque[T]]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        """Iterate over all that wait, lane by lane."""
        return (item for lanes in self._groups.values() for lane in lanes.values() for item in lane)

    def has(self, group: Hashable, lane: Hashable = None) -> bool:
        """True if something waits in that lane."""
        lanes = self._groups.get(group)
        return lanes is not None and lane in lanes

    def add(self, item: T, group: Hashable, lane: Hashable = None) -> None:
        self._groups.setdefault(group, OrderedDict()).setdefault(lane, deque()).append(item)
        self._length += 1

    def next(self, may_go: Callable[[T], bool] = lambda item: True) -> T | None:
        """The first item whose turn it is among those that may go."""
        for group, lanes in self._groups.items():
            for lane, items in lanes.items():
                if may_go(items[0]):
                    item = items.popleft()
                    # Others come first now.
                    self._groups.move_to_end(group)
                    lanes.move_to_end(lane)
                    self._left(group, lane)
                    return item
        return None

    def longest(self) -> Hashable:
        """The group with most items."""
        return max(self._groups, key=lambda group: sum(map(len, self._groups[group].values())))

    def last(self, group: Hashable) -> T:
        """The last item of the longest lane of the group."""
        return max(self._groups[group].values(), key=len)[-1]

    def remove(self, item: T, group: Hashable, lane: Hashable = None) -> None:
        """Take an item out whose turn it is not; mostly it is the last one of its lane."""
        items = self._groups[group][lane]
        if items[-1] is item:
            items.pop()
        else:
            items.remove(item)
        self._left(group, lane)

    def _left(self, group: Hashable, lane: Hashable) -> None:
        self._length -= 1
        lanes = self._groups[group]
        if not lanes[lane]:
            del lanes[lane]
        if not lanes:
            del self._groups[group]


Silence = tuple[bool, float]
"""Usefulness before, and the time since when nothing was done for it; those that sort first go first."""


class Counted(Protocol):
    """A connection, as it is counted here."""

    def silence(self) -> Silence | None:
        """None while something is done for it."""

    def cut(self) -> None:
        """Close now, whatever it is doing."""


class Connections:
    """Connections that count from `enter` to `leave`, and as their user's from `claim` on.

    `refused` hears of each that a bound cut off or that `enter` kept out. Used from the event loop's thread.
    """

    def __init__(self, ledger: Ledger, refused: Callable[[str, Holder], None]) -> None:
        self._ledger = ledger
        self._refused = refused
        self._holders: dict[Counted, Holder] = {}

    @property
    def total(self) -> Bound:
        """The number of connections that are let in."""
        return self._ledger.total

    def __len__(self) -> int:
        return len(self._holders)

    def enter(self, connection: Counted, address: str | None) -> bool:
        """True if the connection may stay. Idle ones make room for it: of its own address, or of all, oldest first."""
        holder = Holder(None, address)
        bound = self._take(holder)
        if bound is not None:
            self._refused(bound.name, holder)
            return False
        self._holders[connection] = holder
        return True

    def claim(self, connection: Counted, user: str) -> Bound | None:
        """Count it as the user's, unless it is another's already; the bound that is in the way.

        Silent connections of the user's make room for it. One that has left belongs to no user.
        """
        holder = self._holders.get(connection)
        if holder is None or holder.user is not None:
            return None
        claimed = Holder(user, holder.address)
        self._ledger.give_back(1, holder)
        bound = self._take(claimed)
        if bound is None:
            self._holders[connection] = claimed
        else:
            self._ledger.take(1, holder)
        return bound

    def holder_of(self, connection: Counted) -> Holder:
        """Whose it is."""
        return self._holders.get(connection, NO_HOLDER)

    def leave(self, connection: Counted) -> None:
        """It has gone; harmless when it had left before."""
        holder = self._holders.pop(connection, None)
        if holder is not None:
            self._ledger.give_back(1, holder)

    def make_room(self, name: str) -> bool:
        """Cut off some silent ones because the process has no file left for others."""
        return self._make_room(name, list(self._holders), CUT_WITHOUT_FILES_PERCENT)

    def _take(self, holder: Holder) -> Bound | None:
        """Count one more, if need be in the place of silent ones; the bound that is in the way."""
        while (bound := self._ledger.take(1, holder, parts_first=True)) is not None:
            present = [one for one, other in self._holders.items() if self._ledger.makes_room(bound, holder, other)]
            if not self._make_room(bound.name, present, CUT_PERCENT):
                return bound
        return None

    def _make_room(self, name: str, present: list[Counted], percent: int) -> bool:
        silent = [(silence, number) for number, one in enumerate(present) if (silence := one.silence()) is not None]
        chosen = nsmallest(max(1, len(present) * percent // 100), silent)
        for _, number in chosen:
            connection = present[number]
            self._refused(name, self._holders[connection])
            self.leave(connection)
            connection.cut()
        return bool(chosen)
