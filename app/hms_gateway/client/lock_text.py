"""Locks as Hive prints them: SHOW LOCKS without transactions, and EXPLAIN LOCKS (semantics §8.3)."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from hms_gateway.client.concurrency import LockPlace, Mode, NeededLock
from hms_gateway.rpc.structs import LockState, LockType, ShowLocksResponseElement
from hms_gateway.rpc.structs.catalogs import shown_key
from hms_gateway.runtime.logging import printable

_REASON: Final = re.compile(r"([^:\s]+):(IMPLICIT|EXPLICIT):(.*)", re.DOTALL)
_STATEMENT_CHARACTERS_MAX: Final = 1_000


class LockReason(msgspec.Struct, frozen=True):
    """For what a lock was taken; its text is in the request's agent, the only field for it.

    is_explicit  a LOCK statement asked for it
    """

    query_id: str
    is_explicit: bool = False
    statement: str = ""

    @classmethod
    def of_command(cls, statement: str, *, is_explicit: bool) -> "LockReason":
        """With an id that no other command has."""
        return cls(f"hms-gateway_{uuid.uuid4()}", is_explicit, statement)

    def __str__(self) -> str:
        statement = " ".join(self.statement.split())[:_STATEMENT_CHARACTERS_MAX]
        return f"{self.query_id}:{self._mode}:{statement}"

    @property
    def _mode(self) -> str:
        return "EXPLICIT" if self.is_explicit else "IMPLICIT"

    def lines(self, acquired_ms: int) -> Iterator[str]:
        """As SHOW LOCKS EXTENDED prints it."""
        yield f"LOCK_QUERYID:{shown_text(self.query_id)}"
        yield f"LOCK_TIME:{acquired_ms}"
        yield f"LOCK_MODE:{self._mode}"
        yield f"LOCK_QUERYSTRING:{shown_text(self.statement)}"


def parse_reason(agent_info: str) -> LockReason:
    """The reason behind an agent; that of other clients counts as the name of their query."""
    found = _REASON.fullmatch(agent_info)
    return LockReason(agent_info) if found is None else LockReason(found[1], found[2] == "EXPLICIT", found[3])


def show_locks_legacy(locks: Sequence[ShowLocksResponseElement], *, is_extended: bool = False) -> Iterator[str]:
    """The lines that Hive prints without transactions: `db@table@partition` and the mode, exclusive first.

    Extended shows for each lock what it was taken for. Waiting requests are none of this form's locks: it knows
    denied ones only.
    """
    for lock in sorted((lock for lock in locks if lock.state == LockState.ACQUIRED), key=_legacy_order):
        yield f"{shown_text(_legacy_name(lock))}\t{_legacy_mode(lock)}"
        if is_extended:
            yield from parse_reason(lock.agentInfo or "").lines(lock.acquiredat or 0)


def explain_locks(locks: Sequence[NeededLock]) -> str:
    """What a command needs to lock."""
    types = {Mode.SHARED: LockType.SHARED_READ, Mode.EXCLUSIVE: LockType.EXCLUSIVE}
    lines = (f"{shown_text(_place_text(place))} -> {types[mode].name}" for place, mode in locks)
    return "\n".join(("LOCK INFORMATION:", *lines))


def shown_text(text: str | None) -> str:
    """A name or other text of a client: in one line and one cell; None is empty."""
    return printable(text or "")


def _legacy_order(lock: ShowLocksResponseElement) -> tuple[str, bool, int, int]:
    is_shared = _legacy_mode(lock) == "SHARED"
    return _legacy_name(lock), is_shared, lock.lockid or 0, lock.lockIdInternal or 0


def _legacy_name(lock: ShowLocksResponseElement) -> str:
    return "@".join(name for name in (shown_key(lock.dbname or ""), lock.tablename, lock.partname) if name)


def _legacy_mode(lock: ShowLocksResponseElement) -> str:
    return "EXCLUSIVE" if lock.type == LockType.EXCLUSIVE else "SHARED"


def _place_text(place: LockPlace) -> str:
    return ".".join(name for name in (shown_key(place.db_name), place.table_name, place.partition_name) if name)
