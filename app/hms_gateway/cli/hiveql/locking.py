"""Locks, leases, transactions and compactions: shown, taken, given back."""

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    CommandRefused,
    PlaceName,
    QualifiedName,
    ResultRows,
    ShellState,
    known_values,
    place_names,
    statement,
    table_of,
)
from hms_gateway.client.acquiring import (
    SETTING_NAMES,
    ConcurrencySettings,
    LockAcquirer,
    LockHolder,
    LocksDenied,
    PartitionKeys,
    SettingError,
    listing_holders,
)
from hms_gateway.client.concurrency import (
    Command,
    LockPlace,
    Mode,
    NotAKey,
    in_key_order,
    lock_components,
    needed_locks,
)
from hms_gateway.client.lock_text import LockReason, parse_reason
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.structs import (
    AbortTxnsRequest,
    BlockingLock,
    CompactionType,
    LeaseObject,
    LockState,
    LockType,
    ShowCompactRequest,
    ShowLocksRequest,
    ShowLocksResponseElement,
    TxnState,
    UnlockRequest,
)


@statement
def show_transactions(state: ShellState) -> ResultRows:
    return table_of(
        state.call("get_open_txns_info").open_txns or [],
        transaction_id="id",
        state=lambda txn: _member(TxnState, txn.state),
        started=lambda txn: time_text(txn.startedTime),
        last_heartbeat=lambda txn: time_text(txn.lastHeartbeatTime),
        user="user",
        hostname="hostname",
        agent_info="agentInfo",
    )


@statement
def show_compactions(state: ShellState) -> ResultRows:
    return table_of(
        state.call("show_compact", ShowCompactRequest()).compacts or [],
        compaction_id="id",
        database="dbname",
        table="tablename",
        partition="partitionname",
        type=lambda each: _member(CompactionType, each.type),
        state="state",
        worker="workerid",
        start=lambda each: time_text(each.start),
        run_as="runAs",
        error="errorMessage",
    )


@statement
def show_locks(state: ShellState, place: PlaceName | None = None, is_extended: bool = False) -> ResultRows:
    return locks_of(locks_on(state, place, is_extended=is_extended), is_extended=is_extended)


def locks_on(state: ShellState, place: PlaceName | None, *, is_extended: bool) -> list[ShowLocksResponseElement]:
    """The locks on a place, None for all. Raises Refused."""
    request = filter_of(state, place)
    request.isExtended = is_extended
    found: list[ShowLocksResponseElement] = state.call("show_locks", request).locks or []
    return found


def filter_of(state: ShellState, place: PlaceName | None) -> ShowLocksRequest:
    """The request for the locks on a place, None for all. Raises Refused."""
    return ShowLocksRequest() if place is None else ShowLocksRequest(*_names(state, place))


def locks_of(found: Iterable[ShowLocksResponseElement], *, is_extended: bool = False) -> ResultRows:
    """The rows of locks."""
    return table_of(
        found,
        lockid=lambda lock: f"{lock.lockid}.{lock.lockIdInternal}",
        database="dbname",
        table="tablename",
        partition="partname",
        lock_state=lambda lock: _member(LockState, lock.state),
        blocked_by=lambda lock: lock.blockedByExtId and f"{lock.blockedByExtId}.{lock.blockedByIntId}",
        lock_type=lambda lock: _member(LockType, lock.type),
        transaction_id=lambda lock: lock.txnid or None,
        last_heartbeat=lambda lock: time_text(lock.lastheartbeat),
        acquired_at=lambda lock: time_text(lock.acquiredat),
        user="user",
        hostname="hostname",
        **_EXTENDED if is_extended else {"agent_info": "agentInfo"},
    )


def blocking_of(found: Iterable[BlockingLock]) -> ResultRows:
    """The rows of locks that block: when each is lost without another heartbeat, and which requests wait for it."""
    return table_of(
        found,
        lockid=lambda each: f"{each.lock.lockid}.{each.lock.lockIdInternal}",
        database="lock.dbname",
        table="lock.tablename",
        partition="lock.partname",
        lock_state=lambda each: _member(LockState, each.lock.state),
        lock_type=lambda each: _member(LockType, each.lock.type),
        transaction_id=lambda each: each.lock.txnid or None,
        user="lock.user",
        hostname="lock.hostname",
        acquired_at=lambda each: time_text(each.lock.acquiredat),
        last_heartbeat=lambda each: time_text(each.last_heartbeat),
        lost_at=lambda each: time_text(each.lost_at),
        blocks=_blocked,
        agent_info="lock.agentInfo",
    )


def _blocked(blocking: BlockingLock) -> str:
    shown = blocking.blocked or []
    more = (blocking.blocked_count or 0) - len(shown)
    return ",".join(map(str, shown)) + (f" and {more} more" if more else "")


@statement
def show_leases(state: ShellState, places: tuple[PlaceName, ...] = ()) -> ResultRows:
    """No places mean every lease."""
    return leases_of(state.call("list_lease", [_lease_object(state, place) for place in places]))


@statement
def drop_leases(state: ShellState, places: tuple[PlaceName, ...] = ()) -> None:
    state.call("force_drop_lease", [_lease_object(state, place) for place in places])


@statement
def lock_statement(state: ShellState, command: Command, text: str) -> ResultRows:
    """The lock lasts until it is released, or gets no heartbeat for the time-out of the metastore."""
    settings = _settings(state)
    reason = LockReason.of_command(text, is_explicit=True)
    holder = LockHolder(state.user, state.hostname, str(reason))
    try:
        command = in_key_order(command, PartitionKeys(state.caller))
        locks = needed_locks(command)
        lock_id = LockAcquirer(state.caller, settings, time.sleep).acquire(locks, holder)
    except NotAKey as error:
        raise CommandRefused(str(error)) from error
    except LocksDenied as error:
        raise CommandRefused(f"{error}; {listing_holders('SHOW LOCKS')}") from error
    if lock_id is not None:
        state.lock_ids.append(lock_id)
    return ResultRows(("lockid",), [(lock_id,)])


@statement
def unlock(state: ShellState, place: PlaceName) -> None:
    """Gives back what LOCK took on the object, by this user on this machine."""
    names = _names(state, place)
    found = locks_on(state, place, is_extended=False)
    own = {
        lock.lockid
        for lock in found
        if (lock.dbname, lock.tablename or None, lock.partname or None) == names
        and (lock.user, lock.hostname) == (state.user, state.hostname)
        and parse_reason(lock.agentInfo or "").is_explicit
    }
    if not own:
        raise CommandRefused(f"{_text(place)} is not locked by {state.user} on {state.hostname}; SHOW LOCKS shows all")
    for lock_id in own:
        state.call("unlock", UnlockRequest(lock_id))
        if lock_id in state.lock_ids:
            state.lock_ids.remove(lock_id)


@statement
def explain_locks(state: ShellState, command: Command) -> ResultRows:
    types = {Mode.SHARED: "SHARED", Mode.EXCLUSIVE: "EXCLUSIVE"}
    try:
        command = in_key_order(command, PartitionKeys(state.caller))
    except NotAKey as error:
        raise CommandRefused(str(error)) from error
    locks = needed_locks(command)
    asked = {(one.dbname, one.tablename, one.partitionname) for one in lock_components(locks)}
    rows = ((place.db_name, place.table_name, place.partition_name, types[mode]) for place, mode in locks)
    return ResultRows(
        ("database", "table", "partition", "lock_type", "in_show_locks"),
        ((*row, row[:3] in asked) for row in rows),
    )


@statement
def abort_transactions(state: ShellState, ids: Sequence[int]) -> None:
    state.call("abort_txns", AbortTxnsRequest(list(ids)))


def _reason(lock: ShowLocksResponseElement) -> LockReason:
    return parse_reason(lock.agentInfo or "")


_EXTENDED: Final[Mapping[str, Callable[[ShowLocksResponseElement], Cell]]] = {
    "query_id": lambda lock: _reason(lock).query_id,
    "lock_mode": lambda lock: "EXPLICIT" if _reason(lock).is_explicit else "IMPLICIT",
    "query_string": lambda lock: _reason(lock).statement,
}


def _member(enum: Any, number: int | None) -> str:
    """Other metastores may know more members."""
    return next((member.name for member in enum if member == number), str(number))


def _settings(state: ShellState) -> ConcurrencySettings:
    given = {name: value for name, value in state.options.items() if name in SETTING_NAMES}
    try:
        return ConcurrencySettings.from_configuration({"hive.lock.numretries": "0", **given})
    except SettingError as error:
        raise CommandRefused(str(error)) from error


def _text(place: PlaceName) -> str:
    return f"database {place.db_name}" if place.table_name is None else f"table {place.db_name}.{place.table_name}"


def leases_of(found: Iterable[LeaseObject]) -> ResultRows:
    """The rows of leases."""
    return table_of(
        found,
        lease_id="lease_id",
        user="user",
        database="db_name",
        table="table_name",
        partition=lambda lease: lease.partition_name or None,
        type=lambda lease: "EXCLUSIVE" if lease.lease_type == "x" else "SHARED",
        start=lambda lease: time_text(lease.start_utc),
        end=lambda lease: time_text(lease.end_utc),
    )


def _lease_object(state: ShellState, place: PlaceName) -> LeaseObject:
    return LeaseObject(*_names(state, place), "s")


def _names(state: ShellState, place: PlaceName) -> tuple[str, str | None, str | None]:
    """Database, table, and partition; of a table that does not exist a partition as it is written. Raises Refused."""
    name = QualifiedName(place.db_name, place.table_name or "")
    if not place.spec or PartitionKeys(state.caller)(LockPlace(*name)) is not None:
        return place_names(state, place)
    known = known_values(name, [part.key for part in place.spec], place.spec)
    return place.db_name, place.table_name, make_name(list(known), list(known.values()))


def this_host() -> str:
    """The name of this machine in locks."""
    return socket.gethostname()
