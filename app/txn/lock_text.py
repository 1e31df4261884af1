"""Locks as Hive prints them: SHOW LOCKS in both of its forms, and EXPLAIN LOCKS (semantics §8.3)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from app.structs import LockComponent, LockState, LockType, ShowLocksResponseElement

_HEADER: Final = (
    "Lock ID", "Database", "Table", "Partition", "State", "Blocked By", "Type", "Transaction ID", "Last Heartbeat",
    "Acquired At", "User", "Hostname", "Agent Info",
)  # fmt: skip
_NOTHING: Final = "NULL"
_BLANK: Final = " " * 12


def show_locks(locks: Sequence[ShowLocksResponseElement]) -> str:
    """What Hive prints with its transaction manager: a header and a line for each lock, with tabs between."""
    return "\n".join("\t".join(cells) for cells in (_HEADER, *map(_cells, locks)))


def show_locks_legacy(
    locks: Sequence[ShowLocksResponseElement],
    *,
    is_extended: bool = False,
    statements: Mapping[str, str] | None = None,
    explicit: frozenset[int] = frozenset(),
) -> str:
    """What Hive prints without transactions: `db@table@partition` and the mode, exclusive first.

    Extended tells about each lock whose it is; `statements` has the text by query (the agent), `explicit` the ids of
    locks that a LOCK statement took. Waiting requests are none of this form's locks: it knows denied ones only.
    """
    lines: list[str] = []
    for lock in sorted((lock for lock in locks if lock.state == LockState.ACQUIRED), key=_legacy_order):
        lines.append(f"{_legacy_name(lock)}\t{_legacy_mode(lock)}")
        if is_extended:
            lines.extend(_details(lock, statements or {}, is_explicit=lock.lockid in explicit))
    return "\n".join(lines)


def explain_locks(components: Sequence[LockComponent]) -> str:
    """What a command would lock."""
    lines = (f"{'.'.join(_names(part))} -> {LockType(part.type or 0).name}" for part in components)
    return "\n".join(("LOCK INFORMATION:", *lines))


def _cells(lock: ShowLocksResponseElement) -> tuple[str, ...]:
    blocker = _BLANK if lock.blockedByExtId is None else f"{lock.blockedByExtId}.{lock.blockedByIntId}"
    return (
        f"{lock.lockid}.{lock.lockIdInternal}",
        lock.dbname or _NOTHING,
        lock.tablename or _NOTHING,
        lock.partname or _NOTHING,
        LockState(lock.state or 0).name,
        blocker,
        LockType(lock.type or 0).name,
        str(lock.txnid) if lock.txnid else _NOTHING,
        str(lock.lastheartbeat or 0),
        _NOTHING if lock.acquiredat is None else str(lock.acquiredat),
        lock.user or "",
        lock.hostname or "",
        lock.agentInfo or "",
    )


def _details(lock: ShowLocksResponseElement, statements: Mapping[str, str], *, is_explicit: bool) -> Iterator[str]:
    query = lock.agentInfo or ""
    yield f"LOCK_QUERYID:{query}"
    yield f"LOCK_TIME:{lock.acquiredat or 0}"
    yield f"LOCK_MODE:{'EXPLICIT' if is_explicit else 'IMPLICIT'}"
    yield f"LOCK_QUERYSTRING:{statements.get(query, '')}"


def _legacy_order(lock: ShowLocksResponseElement) -> tuple[str, bool, int, int]:
    is_shared = _legacy_mode(lock) == "SHARED"
    return _legacy_name(lock), is_shared, lock.lockid or 0, lock.lockIdInternal or 0


def _legacy_name(lock: ShowLocksResponseElement) -> str:
    return "@".join(name for name in (lock.dbname, lock.tablename, lock.partname) if name)


def _legacy_mode(lock: ShowLocksResponseElement) -> str:
    return "EXCLUSIVE" if lock.type == LockType.EXCLUSIVE else "SHARED"


def _names(part: LockComponent) -> list[str]:
    return [name for name in (part.dbname, part.tablename, part.partitionname) if name]
