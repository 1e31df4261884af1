"""The memory that decoded messages take, shared out among users and addresses. Small messages always get in."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from hms_gateway.rpc.errors import Unavailable
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger
from hms_gateway.structs import Method
from hms_gateway.wire import Codec, LimitExceeded

# Shorter messages are not looked at: they become a few MiB at most.
UNCOUNTED_BYTES = 64 * 1024
_UNCOUNTED = nullcontext()


class DecodedMemory:
    """Safe to use from several threads."""

    def __init__(self, limits: Limits) -> None:
        self._ledger = Ledger(limits, "decoded_bytes_max")
        # While it is decoded, a message keeps Python's lock, and the event loop waits. What is larger than a share
        # could never be taken.
        per_message = Bound("decoded_bytes_per_message_max", limits.decoded_bytes_per_message_max)
        bounds = (per_message, self._ledger.per_user, self._ledger.per_address)
        self._message = min(bounds, key=lambda bound: bound.value)
        self._lock = threading.Lock()

    def held(self, codec: Codec, method: Method, payload: bytes, holder: Holder) -> AbstractContextManager[None]:
        """Inside, the memory of the decoded arguments is counted for the holder.

        Raises LimitExceeded for a message that one user may never send, Unavailable while others are in the way, and
        ProtocolError.
        """
        if len(payload) < UNCOUNTED_BYTES:
            return _UNCOUNTED
        return self._counted(codec, method, payload, holder)

    @contextmanager
    def _counted(self, codec: Codec, method: Method, payload: bytes, holder: Holder) -> Iterator[None]:
        # Texts take about what they take in the message.
        size = len(payload) + codec.decoded_bytes(method.arguments, payload, self._message.value)
        if size > self._message.value:
            raise LimitExceeded(self._message.name, self._message.value, method.name)
        self._take(size, holder)
        try:
            yield
        finally:
            with self._lock:
                self._ledger.give_back(size, holder)

    def _take(self, size: int, holder: Holder) -> None:
        with self._lock:
            bound = self._ledger.take(size, holder)
        if bound is not None:
            text = f"too many large messages are being worked on; try again, or raise {bound.name}"
            raise Unavailable(text, limit=bound.name)
