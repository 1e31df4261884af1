"""What a caller presents for its changes: a lease, which fences its units of work (`metastore.changes.fencing`), and
itself as the owner of locks, which those of others stop (`metastore.changes.implicit_locks`); and who it is, which is
kept with its changes. Calls that record what another metastore knows keep its times, and make, move and delete no
directory.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")


class bound(AbstractContextManager[None], Generic[T]):
    """Sets `variable` inside the block, and what it was before behind it.

    A class, because a generator takes three times as long, and every call enters several of these.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


_lease: ContextVar[tuple[int | None, str | None]] = ContextVar("presented_lease", default=(None, None))


def presenting(lease_id: int, holder: str | None = None) -> bound[tuple[int | None, str | None]]:
    """Units of work that this thread starts inside are made under the lease; with `holder`, under that user's only."""
    return bound(_lease, (lease_id, holder))


def presented_lease_id() -> int | None:
    """The lease of the call this thread is answering, None when its caller presents none."""
    return _lease.get()[0]


def presented_lease_holder() -> str | None:
    """The user whose the presented lease has to be, None where every user may present it."""
    return _lease.get()[1]


# Of the transaction of the unit of work, which this room does not know.
Condition: TypeAlias = Callable[[Any], None]

_condition: ContextVar[Condition | None] = ContextVar("condition_of_changes", default=None)


def changing_only_if(condition: Condition) -> bound[Condition | None]:
    """Units of work that this thread starts inside change nothing if `condition` raises something at their end."""
    return bound(_condition, condition)


def condition_of_changes() -> Condition | None:
    """The condition on changes of the call this thread is answering, None where there is none."""
    return _condition.get()


class LockCaller(msgspec.Struct, frozen=True):
    """The caller of a change under implicit locks.

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


def locking(caller: LockCaller | None) -> bound[LockCaller | None]:
    """Units of work that this thread starts inside happen only if others do not hold what they need."""
    return bound(_caller, caller)


def lock_caller() -> LockCaller | None:
    """The lock caller of this thread's call; None where changes take no locks."""
    return _caller.get()


class Actor(msgspec.Struct, frozen=True, omit_defaults=True):
    """User, address and request of a change. `real_user`: the authenticated user if it acts for another."""

    user: str
    address: str = ""
    method: str = ""
    request_id: str = ""
    real_user: str = ""


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


def acting(actor: Actor | None) -> bound[Actor | None]:
    """Context manager: records changes of this thread as the actor's."""
    return bound(_actor, actor)


def current_actor() -> Actor | None:
    """The actor of this thread's call; None where changes are not recorded."""
    return _actor.get()


_recorded_at: ContextVar[int | None] = ContextVar("recorded_at", default=None)


def recording(at_seconds: int) -> bound[int | None]:
    """Context manager: calls of this thread record what happened elsewhere."""
    return bound(_recorded_at, at_seconds)


def is_recorded() -> bool:
    """Tell whether this thread's call records what another metastore knows. Units of work do not know it."""
    return _recorded_at.get() is not None


def creation_seconds(sent: int | None, now_seconds: int) -> int:
    """When something was made: now, but for a recorded call as it was sent, or when that says it was."""
    recorded_at = _recorded_at.get()
    if recorded_at is None:
        return now_seconds
    return recorded_at if sent is None else sent
