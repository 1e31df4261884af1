"""Memory of requests and replies, shared out among users and addresses: large bodies, and replies that nobody reads.

Small bodies always get in. Of replies only what the transport could not hand to the system is counted, when its buffer
is above UNCOUNTED_BYTES; a reply that is read at once is never counted. Where nothing moves, replies are cut off.
"""

import asyncio
from collections import Counter
from types import TracebackType
from typing import NamedTuple

from hms_gateway.gateway.admission.identity import Refusals, overloaded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger

# So much of every body and of every reply is not counted, so that small calls get in whatever others send.
UNCOUNTED_BYTES = 64 * 1024


class BodyShares:
    """Two budgets: bytes of bodies in memory, received or inflated, and bodies that are on their way."""

    def __init__(self, limits: Limits) -> None:
        self.memory = Ledger(limits, "body_memory_bytes_max")
        self.uploads = Ledger(limits, "uploads_max")


class BodyShare:
    """The memory of one request's body, released at the end of a `with`."""

    __slots__ = ("_held", "_holder", "_is_upload", "_shares", "_uncounted")

    def __init__(self, shares: BodyShares, holder: Holder) -> None:
        self._shares = shares
        self._holder = holder
        self._uncounted = UNCOUNTED_BYTES
        self._held = 0
        self._is_upload = False

    def grow(self, amount: int, *, is_upload: bool = False) -> None:
        """So many bytes more. Raises Refused (503) naming the limit that is in the way."""
        uncounted = min(amount, self._uncounted)
        self._uncounted -= uncounted
        amount -= uncounted
        if not amount:
            return
        if is_upload and not self._is_upload:
            self._check(self._shares.uploads.take(1, self._holder), "large bodies on their way")
            self._is_upload = True
        self._check(self._shares.memory.take(amount, self._holder), "large bodies in memory")
        self._held += amount

    def has_arrived(self) -> None:
        """The body is not on its way any more."""
        if self._is_upload:
            self._shares.uploads.give_back(1, self._holder)
            self._is_upload = False

    def __enter__(self) -> "BodyShare":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.has_arrived()
        if self._held:
            self._shares.memory.give_back(self._held, self._holder)
            self._held = 0

    def _check(self, bound: Bound | None, what: str) -> None:
        if bound is not None:
            raise overloaded(f"There are too many {what}; try again, or raise {bound.name}", bound.name)


class _Unread(NamedTuple):
    holder: Holder
    counted: int
    size: int
    until: float


class UnreadReplies:
    """A connection is here from when its transport says that it takes no more until it does again, or is lost.

    When too much waits, the connection goes on which nothing has moved for the longest: of the user or address in the
    way, or of the user with most of all. Used from the event loop's thread.
    """

    def __init__(self, limits: Limits, refusals: Refusals, *, stall_seconds_max: float) -> None:
        self.ledger = Ledger(limits, "unread_reply_bytes_max")
        # A single reply fits into every share, however long it is.
        self._counted_max = min(self.ledger.per_user.value, self.ledger.per_address.value)
        self._refusals = refusals
        self._stall_seconds_max = stall_seconds_max
        # In the order of `until`.
        self._unread: dict[asyncio.Transport, _Unread] = {}
        self._timer: asyncio.TimerHandle | None = None

    def paused(self, transport: asyncio.Transport, holder: Holder) -> None:
        """More was written than the client takes; also when yet more was."""
        self.resumed(transport)
        self._count(transport, holder)
        self._start_timer()

    def _count(self, transport: asyncio.Transport, holder: Holder) -> None:
        size = transport.get_write_buffer_size()
        counted = min(size, self._counted_max)
        if not counted:
            return
        while (bound := self.ledger.take(counted, holder)) is not None:
            self._cut(self._longest_waiting(bound, holder), bound.name)
        until = asyncio.get_running_loop().time() + self._stall_seconds_max
        self._unread[transport] = _Unread(holder, counted, size, until)

    def resumed(self, transport: asyncio.Transport) -> None:
        """The client has taken most of it, or has gone; harmless where nothing was counted."""
        unread = self._unread.pop(transport, None)
        if unread is not None:
            self.ledger.give_back(unread.counted, unread.holder)

    def _longest_waiting(self, bound: Bound, holder: Holder) -> asyncio.Transport:
        present = [one for one, of in self._unread.items() if self.ledger.makes_room(bound, holder, of.holder)]
        if bound == self.ledger.total:
            held: Counter[str | None] = Counter()
            for unread in self._unread.values():
                held[unread.holder.user] += unread.counted
            user = held.most_common(1)[0][0]
            present = [one for one in present if self._unread[one].holder.user == user]
        return present[0]

    def _cut(self, transport: asyncio.Transport, limit: str) -> None:
        holder = self._unread[transport].holder
        self._refusals.note(limit, user=holder.user or "", address=holder.address or "")
        self.resumed(transport)
        transport.abort()

    def _start_timer(self) -> None:
        if self._timer is None and self._unread:
            loop = asyncio.get_running_loop()
            first = next(iter(self._unread.values()))
            self._timer = loop.call_later(max(0.0, first.until - loop.time()), self._cut_stalled)

    def _cut_stalled(self) -> None:
        """Cut off those of which nothing was taken; the first one has waited for the longest."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for transport, unread in list(self._unread.items()):
            if unread.until > now:
                break
            if transport.get_write_buffer_size() < unread.size:
                self.resumed(transport)
                self._count(transport, unread.holder)
            else:
                self._cut(transport, "write_stall_seconds_max")
        self._start_timer()
