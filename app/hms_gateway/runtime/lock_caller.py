"""Whose locks let a call pass: its changes are checked against those of others (`metastore.changes.implicit_locks`)."""

from contextvars import ContextVar

import msgspec

from hms_gateway.runtime.bound import bound


class LockCaller(msgspec.Struct, frozen=True):
    """Who changes something under implicit locks.

    principal, address  the authenticated user, and the address of its client
    lock_ids, txn_ids   what the call names as its own; where it names any, only these are
    timeout_ms          after which a lock without a heartbeat is lost
    """

    principal: str
    address: str
    timeout_ms: int
    lock_ids: frozenset[int] = frozenset()
    txn_ids: frozenset[int] = frozenset()


_caller: ContextVar[LockCaller | None] = ContextVar("lock_caller", default=None)


def locking(caller: LockCaller) -> bound[LockCaller | None]:
    """Units of work that this thread starts inside happen only if others do not hold what they need."""
    return bound(_caller, caller)


def lock_caller() -> LockCaller | None:
    """Of the call this thread is answering, None where changes do not take locks."""
    return _caller.get()
