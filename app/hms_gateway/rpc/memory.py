"""The memory of large messages and files while calls use them, shared out among users and addresses."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from hms_gateway.rpc.call import Unavailable
from hms_gateway.rpc.structs import Method
from hms_gateway.rpc.wire import Codec, LimitExceeded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, Ledger

# Shorter messages are not looked at: they become a few MiB at most.
UNCOUNTED_BYTES = 64 * 1024


class _Held:
    """The memory that one call holds, in bytes by what it is for."""

    __slots__ = ("amounts", "holder")

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.amounts: dict[str, int] = {}


class _OfThread(threading.local):
    held: _Held | None = None


_of_thread = _OfThread()


class DecodedMemory:
    """The memory that decoded messages take, and files that calls read, shared out among users and addresses.

    Small messages always get in. Safe to use from several threads.
    """

    def __init__(self, limits: Limits) -> None:
        self._ledger = Ledger(limits, "decoded_bytes_max")
        # While it is decoded, a message keeps Python's lock, and the event loop waits. What is larger than a share
        # could never be taken.
        per_message = Ledger(limits, "decoded_bytes_per_message_max").total
        self.most: Final = min(self._ledger.per_user, self._ledger.per_address, key=lambda bound: bound.value)
        self._message = min(per_message, self.most, key=lambda bound: bound.value)
        self._lock = threading.Lock()

    def held(self, codec: Codec, method: Method, payload: bytes, holder: Holder) -> AbstractContextManager[None]:
        """Count the decoded arguments as `held_bytes` does. Raises ProtocolError."""
        # Texts take about what they take in the message.
        size = len(payload) + codec.decoded_bytes(method.arguments, payload, self._message.value)
        return self.held_bytes(size, method.name, holder)

    @contextmanager
    def held_bytes(self, size: int, what: str, holder: Holder) -> Iterator[None]:
        """Inside, the memory of what was decoded is counted for the holder.

        Raises LimitExceeded for a message that one user may never send, Unavailable while others are in the way.
        """
        if size > self._message.value:
            raise LimitExceeded(self._message.name, self._message.value, what)
        self._take(size, holder)
        try:
            yield
        finally:
            with self._lock:
                self._ledger.give_back(size, holder)

    @contextmanager
    def holding(self, holder: Holder) -> Iterator[None]:
        """Inside, what the thread reads is counted by `hold` for the holder."""
        before, _of_thread.held = _of_thread.held, (held := _Held(holder))
        try:
            yield
        finally:
            _of_thread.held = before
            with self._lock:
                self._ledger.give_back(sum(held.amounts.values()), holder)

    def hold(self, what: str, size: int) -> None:
        """Count bytes for `what` until `holding` ends; of several sizes for one the largest. Outside nothing is.

        Raises Unavailable while others are in the way; `most` is the bound of one holder.
        """
        held = _of_thread.held
        if held is None:
            return
        more = size - held.amounts.get(what, 0)
        if more > 0:
            self._take(more, held.holder)
            held.amounts[what] = size

    def _take(self, size: int, holder: Holder) -> None:
        with self._lock:
            bound = self._ledger.take(size, holder)
        if bound is not None:
            text = f"too many large messages are being worked on; try again, or raise {bound.name}"
            raise Unavailable(text, limit=bound.name)
