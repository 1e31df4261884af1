"""Implicit locks of a call: whose locks let it pass, and what becomes of it when others hold what its change needs."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

import msgspec

from hms_gateway.handlers.environment import in_environment
from hms_gateway.rpc.call import Call, Waiting
from hms_gateway.runtime.presented import LockCaller, locking
from hms_gateway.structs import InvalidOperationException, Method, Struct
from hms_gateway.txn.rules.implicit_locks import LockedByAnother

LOCK_PROPERTY: Final = "hms.lock.id"
TXN_PROPERTY: Final = "hms.txn.id"


class ImplicitLocks(msgspec.Struct, frozen=True):
    """The settings. A change is tried again every `pause_seconds`, for `wait_seconds`."""

    timeout_ms: int
    wait_seconds: float = 0.0
    pause_seconds: float = 60.0


class UnderImplicitLocks(AbstractContextManager[None]):
    """What to answer a changing call in, around `inner`.

    Raises Waiting for a change that is to be tried again, InvalidOperationException for what is not an id.
    """

    def __init__(
        self,
        settings: ImplicitLocks,
        method: Method,
        call: Call,
        arguments: Struct,
        inner: AbstractContextManager[None],
    ) -> None:
        caller = LockCaller(
            call.principal,
            call.client_address,
            settings.timeout_ms,
            _ids(LOCK_PROPERTY, call.lock_id, in_environment(method, arguments, LOCK_PROPERTY)),
            _ids(TXN_PROPERTY, call.txn_id, in_environment(method, arguments, TXN_PROPERTY)),
        )
        self._settings = settings
        self._left_seconds = settings.wait_seconds - call.waited_seconds
        self._bound = locking(caller)
        self._inner = inner

    def __enter__(self) -> None:
        self._bound.__enter__()
        try:
            self._inner.__enter__()
        except BaseException:
            self._bound.__exit__()
            raise

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._inner.__exit__(type, error, trace)
        finally:
            self._bound.__exit__()
        if isinstance(error, LockedByAnother):
            if self._left_seconds > 0:
                raise Waiting(min(self._settings.pause_seconds, self._left_seconds)) from error
            raise InvalidOperationException(error.message) from error


def _ids(name: str, *texts: str | None) -> frozenset[int]:
    """One or several, with commas between."""
    return frozenset(_id(name, part.strip()) for text in texts if text is not None for part in text.split(","))


def _id(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise InvalidOperationException(f"{name} is {text[:80]!r}; it is the id of a lock or transaction, a number")
    return int(text)
