"""How many connections there may be, in all, of a user and from an address, and which go when there are too many."""

from collections.abc import Callable, Collection
from heapq import nsmallest
from typing import Protocol

from hms_gateway.runtime.shares import NO_HOLDER, Bound, Holder

# When there are too many, so many of a hundred are cut off in one go: looking for them takes time.
CUT_PERCENT = 5
# Where no file is left, others wait for one already.
CUT_WITHOUT_FILES_PERCENT = 20

Silence = tuple[bool, float]
"""Whether it was of use before, and since when nothing was done for it; those that sort first go first."""


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

    def __init__(
        self,
        total: Bound,
        per_address: Bound,
        refused: Callable[[str, Holder], None],
        *,
        per_user: Bound | None = None,
    ) -> None:
        self.total = total
        self._per_address = per_address
        self._per_user = per_user or total
        self._refused = refused
        self._holders: dict[Counted, Holder] = {}
        self._of_user: dict[str, dict[Counted, None]] = {}
        self._of_address: dict[str, dict[Counted, None]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def enter(self, connection: Counted, address: str | None) -> bool:
        """True if the connection may stay. Idle ones make room for it: of its own address, or of all, oldest first."""
        of_address = {} if address is None else self._of_address.get(address, {})
        for bound, present in ((self._per_address, of_address), (self.total, self._holders)):
            if not self._has_room(bound, present):
                self._refused(bound.name, Holder(None, address))
                return False
        self._holders[connection] = Holder(None, address)
        if address is not None:
            self._of_address.setdefault(address, {})[connection] = None
        return True

    def claim(self, connection: Counted, user: str) -> Bound | None:
        """Count it as the user's, unless it is another's already; the bound that is in the way.

        Silent connections of the user's make room for it. One that has left belongs to no user.
        """
        holder = self._holders.get(connection)
        if holder is None or holder.user is not None:
            return None
        if not self._has_room(self._per_user, self._of_user.get(user, {})):
            return self._per_user
        self._holders[connection] = Holder(user, holder.address)
        self._of_user.setdefault(user, {})[connection] = None
        return None

    def holder_of(self, connection: Counted) -> Holder:
        """Whose it is."""
        return self._holders.get(connection, NO_HOLDER)

    def leave(self, connection: Counted) -> None:
        """It has gone; harmless when it had left before."""
        holder = self._holders.pop(connection, NO_HOLDER)
        for members, name in zip((self._of_user, self._of_address), holder, strict=True):
            if name is not None:
                del members[name][connection]
                if not members[name]:
                    del members[name]

    def make_room(self, name: str) -> bool:
        """Cut off some silent ones because the process has no file left for others."""
        return self._make_room(name, list(self._holders), CUT_WITHOUT_FILES_PERCENT)

    def _has_room(self, bound: Bound, present: Collection[Counted]) -> bool:
        return len(present) < bound.value or self._make_room(bound.name, list(present), CUT_PERCENT)

    def _make_room(self, name: str, present: list[Counted], percent: int) -> bool:
        silent = [(silence, number) for number, one in enumerate(present) if (silence := one.silence()) is not None]
        chosen = nsmallest(max(1, len(present) * percent // 100), silent)
        for _, number in chosen:
            connection = present[number]
            self._refused(name, self._holders[connection])
            self.leave(connection)
            connection.cut()
        return bool(chosen)
