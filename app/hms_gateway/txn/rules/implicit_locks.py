"""Whether a change could get the locks it needs against what others hold; they would be gone with its unit of work.

Waiting requests are not in its way: what lasts no time delays none of them. A lock past its time is not held any more.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from hms_gateway.structs import InvalidOperationException, LockType
from hms_gateway.txn.rules.locks import NO_TXN, Lock, LockId, block_of
from hms_gateway.txn.rules.names import Target


class LockedByAnother(InvalidOperationException):
    """A change was not made, because others hold what it needs."""


class Needed(NamedTuple):
    target: Target
    type: LockType


class AcquiredLock(msgspec.Struct, frozen=True):
    """An acquired lock. `user`, `hostname` and `agent_info` are what its client sent; `principal` is the authenticated
    user who asked for it, from `address`.
    """

    lock: Lock
    user: str
    hostname: str
    agent_info: str
    principal: str | None
    address: str | None


class Obstacle(msgspec.Struct, frozen=True):
    """The first need that is not met, and the oldest lock in its way."""

    needed: Needed
    held: AcquiredLock

    def __str__(self) -> str:
        lock = self.held.lock
        of_txn = f" of transaction {lock.txn_id}" if lock.txn_id != NO_TXN else ""
        held = f"{lock.type.name} on {lock.target}, lock {lock.lock_id}{of_txn}"
        return f"{self.needed.target} is locked: user {self.held.user} on {self.held.hostname} holds {held}"


def obstacle(
    needed: Sequence[Needed], held: Sequence[AcquiredLock], is_own: Callable[[AcquiredLock], bool]
) -> Obstacle | None:
    """None where all of `needed` could be granted at once to the owner of what `is_own`."""
    if not needed or not held:
        return None
    others = {(one.lock.lock_id, one.lock.number): one for one in held if not is_own(one)}
    request = [Lock(LockId(0), number, NO_TXN, target, type, False) for number, (target, type) in enumerate(needed, 1)]
    block = block_of(request, [one.lock for one in others.values()])
    if block is None:
        return None
    return Obstacle(needed[block.component.number - 1], others[block.blocker.lock_id, block.blocker.number])
