"""How many connections there may be, in all and from one address, and which of them go when there are too many."""

from collections.abc import Callable
from heapq import nsmallest
from typing import Protocol

from hms_gateway.runtime.shares import Bound, part

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
    """Connections that count from `enter` to `leave`. `refused` hears of each that a bound cut off or kept out.

    An address of None, such as a proxy's, has no share of its own. Used from the event loop's thread.
    """

    def __init__(self, total: Bound, each: Bound, refused: Callable[[str, str], None]) -> None:
        self.total = total
        self._each = part(each, total)
        self._refused = refused
        self._addresses: dict[Counted, str | None] = {}
        self._of: dict[str, dict[Counted, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, connection: Counted, address: str | None) -> bool:
        """Whether it may stay. Silent ones make room for it: of its own address, or of all, the oldest first."""
        of_address = {} if address is None else self._of.get(address, {})
        for bound, present in ((self._each, of_address), (self.total, self._addresses)):
            if len(present) >= bound.value and not self._make_room(bound.name, list(present), CUT_PERCENT):
                self._refused(bound.name, address or "")
                return False
        self._addresses[connection] = address
        if address is not None:
            self._of.setdefault(address, {})[connection] = None
        return True

    def leave(self, connection: Counted) -> None:
        """It has gone; harmless when it had left before."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        of_address = self._of[address]
        del of_address[connection]
        if not of_address:
            del self._of[address]

    def make_room(self, name: str) -> bool:
        """Cut off some silent ones because the process has no file left for others."""
        return self._make_room(name, list(self._addresses), CUT_WITHOUT_FILES_PERCENT)

    def _make_room(self, name: str, present: list[Counted], percent: int) -> bool:
        silent = [(silence, number) for number, one in enumerate(present) if (silence := one.silence()) is not None]
        chosen = nsmallest(max(1, len(present) * percent // 100), silent)
        for _, number in chosen:
            connection = present[number]
            self._refused(name, self._addresses[connection] or "")
            self.leave(connection)
            connection.cut()
        return bool(chosen)
