"""The memory that large bodies take, shared out among users and addresses. Small bodies always get in."""

from types import TracebackType

from hms_gateway.gateway.admission.refusals import overloaded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, shares_of

# So much of every body is not counted, so that small calls get in whatever others send.
UNCOUNTED_BYTES = 64 * 1024


class BodyShares:
    """Two budgets: bytes of bodies in memory, received or inflated, and bodies that are on their way."""

    def __init__(self, limits: Limits) -> None:
        self.memory = shares_of(limits, "body_memory_bytes_max")
        self.uploads = shares_of(limits, "uploads_max")

    def of(self, holder: Holder) -> "BodyShare":
        """The memory of one request of the holder, released at the end of a `with`."""
        return BodyShare(self, holder)


class BodyShare:
    """The memory of one request's body."""

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
