"""What a caller presents for its changes: a lease, which fences its units of work (`metastore.changes.fencing`), and
itself as the owner of locks, which those of others stop (`metastore.changes.implicit_locks`); and who it is, which is
kept with its changes.
"""

from contextvars import ContextVar

import msgspec

from hms_gateway.runtime.bound import bound

_lease_id: ContextVar[int | None] = ContextVar("presented_lease", default=None)


def presenting(lease_id: int) -> bound[int | None]:
    """Units of work that this thread starts inside are made under the lease."""
    return bound(_lease_id, lease_id)


def presented_lease_id() -> int | None:
    """The lease of the call this thread is answering, None when its caller presents none."""
    return _lease_id.get()


class LockCaller(msgspec.Struct, frozen=True):
    """Who changes something under implicit locks.

    principal, address  the authenticated user, and the address of its client
    timeout_ms          after which a lock without a heartbeat is lost
    lock_ids, txn_ids   what the call names as its own; where it names any, only these are
    taken               the locks taken for the call itself, which it must not have lost
    """

    principal: str
    address: str
    timeout_ms: int
    lock_ids: frozenset[int] = frozenset()
    txn_ids: frozenset[int] = frozenset()
    taken: frozenset[int] = frozenset()


_caller: ContextVar[LockCaller | None] = ContextVar("lock_caller", default=None)


def locking(caller: LockCaller) -> bound[LockCaller | None]:
    """Units of work that this thread starts inside happen only if others do not hold what they need."""
    return bound(_caller, caller)


def lock_caller() -> LockCaller | None:
    """Of the call this thread is answering, None where changes do not take locks."""
    return _caller.get()


class Actor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who makes a change, from where, and by which call. `real_user` is who logged in where that is another one."""

    user: str
    address: str = ""
    method: str = ""
    request_id: str = ""
    real_user: str = ""


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


def acting(actor: Actor) -> bound[Actor | None]:
    """What this thread changes inside is noted as the actor's."""
    return bound(_actor, actor)


def current_actor() -> Actor | None:
    """Of the call this thread is answering, None where changes are not noted."""
    return _actor.get()
