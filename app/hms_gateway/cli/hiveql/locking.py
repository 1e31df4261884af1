"""Locks, leases, transactions and compactions: shown, taken, given back."""

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import hms_gateway.rpc.structs as structs
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
from hms_gateway.client import acquiring, concurrency
from hms_gateway.client.lock_text import LockReason, parse_reason
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.structs.catalogs import shown_key


@statement
def show_transactions(state: ShellState) -> ResultRows:
    return table_of(
        state.call("get_open_txns_info").open_txns or [],
        transaction_id="id",
        state=lambda txn: _member(structs.TxnState, txn.state),
        started=lambda txn: time_text(txn.startedTime),
        last_heartbeat=lambda txn: time_text(txn.lastHeartbeatTime),
        user="user",
        hostname="hostname",
        agent_info="agentInfo",
    )


@statement
def show_compactions(state: ShellState) -> ResultRows:
    return table_of(
        state.call("show_compact", structs.ShowCompactRequest()).compacts or [],
        compaction_id="id",
        database=lambda one: shown_key(one.dbname or ""),
        table="tablename",
        partition="partitionname",
        type=lambda each: _member(structs.CompactionType, each.type),
        state="state",
        worker="workerid",
        start=lambda each: time_text(each.start),
        run_as="runAs",
        error="errorMessage",
    )


@statement
def show_locks(state: ShellState, place: PlaceName | None = None, is_extended: bool = False) -> ResultRows:
    return locks_of(locks_on(state, place, is_extended=is_extended), is_extended=is_extended)


def locks_on(
    state: ShellState, place: PlaceName | None, *, is_extended: bool
) -> list[structs.ShowLocksResponseElement]:
    """The locks on a place, None for all. Raises CommandRefused."""
    request = filter_of(state, place)
    request.isExtended = is_extended
    found: list[structs.ShowLocksResponseElement] = state.call("show_locks", request).locks or []
    return found


def filter_of(state: ShellState, place: PlaceName | None) -> structs.ShowLocksRequest:
    """The request for the locks on a place, None for all. Raises CommandRefused."""
    return structs.ShowLocksRequest() if place is None else structs.ShowLocksRequest(*_names(state, place))


def locks_of(found: Iterable[structs.ShowLocksResponseElement], *, is_extended: bool = False) -> ResultRows:
    """The rows of locks."""
    return table_of(
        found,
        lockid=lambda lock: f"{lock.lockid}.{lock.lockIdInternal}",
        database=lambda one: shown_key(one.dbname or ""),
        table="tablename",
        partition="partname",
        lock_state=lambda lock: _member(structs.LockState, lock.state),
        blocked_by=lambda lock: lock.blockedByExtId and f"{lock.blockedByExtId}.{lock.blockedByIntId}",
        lock_type=lambda lock: _member(structs.LockType, lock.type),
        transaction_id=lambda lock: lock.txnid or None,
        last_heartbeat=lambda lock: time_text(lock.lastheartbeat),
        acquired_at=lambda lock: time_text(lock.acquiredat),
        user="user",
        hostname="hostname",
        **_EXTENDED if is_extended else {"agent_info": "agentInfo"},
    )


def blocking_of(found: Iterable[structs.BlockingLock]) -> ResultRows:
    """The rows of locks that block: when each is lost without another heartbeat, and which requests wait for it."""
    return table_of(
        found,
        lockid=lambda each: f"{each.lock.lockid}.{each.lock.lockIdInternal}",
        database=lambda one: shown_key(one.lock.dbname or ""),
        table="lock.tablename",
        partition="lock.partname",
        lock_state=lambda each: _member(structs.LockState, each.lock.state),
        lock_type=lambda each: _member(structs.LockType, each.lock.type),
        transaction_id=lambda each: each.lock.txnid or None,
        user="lock.user",
        hostname="lock.hostname",
        acquired_at=lambda each: time_text(each.lock.acquiredat),
        last_heartbeat=lambda each: time_text(each.last_heartbeat),
        lost_at=lambda each: time_text(each.lost_at),
        blocks=_blocked,
        agent_info="lock.agentInfo",
    )


def _blocked(blocking: structs.BlockingLock) -> str:
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
def lock_statement(state: ShellState, command: concurrency.Command, text: str) -> ResultRows:
    """The lock lasts until it is released, or gets no heartbeat for the time-out of the metastore."""
    settings = _settings(state)
    reason = LockReason.of_command(text, is_explicit=True)
    holder = acquiring.LockHolder(state.user, state.hostname, str(reason))
    try:
        command = concurrency.in_key_order(command, acquiring.PartitionKeys(state.caller))
        locks = concurrency.needed_locks(command)
        lock_id = acquiring.LockAcquirer(state.caller, settings, time.sleep).acquire(locks, holder)
    except concurrency.NotAKey as error:
        raise CommandRefused(str(error)) from error
    except acquiring.LocksDenied as error:
        raise CommandRefused(f"{error}; {acquiring.listing_holders('SHOW LOCKS')}") from error
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
        state.call("unlock", structs.UnlockRequest(lock_id))
        if lock_id in state.lock_ids:
            state.lock_ids.remove(lock_id)


@statement
def explain_locks(state: ShellState, command: concurrency.Command) -> ResultRows:
    types = {concurrency.Mode.SHARED: "SHARED", concurrency.Mode.EXCLUSIVE: "EXCLUSIVE"}
    try:
        command = concurrency.in_key_order(command, acquiring.PartitionKeys(state.caller))
    except concurrency.NotAKey as error:
        raise CommandRefused(str(error)) from error
    locks = concurrency.needed_locks(command)
    asked = {(one.dbname, one.tablename, one.partitionname) for one in concurrency.lock_components(locks)}
    rows = ((place.db_name, place.table_name, place.partition_name, types[mode]) for place, mode in locks)
    return ResultRows(
        ("database", "table", "partition", "lock_type", "in_show_locks"),
        ((shown_key(row[0]), *row[1:], row[:3] in asked) for row in rows),
    )


@statement
def abort_transactions(state: ShellState, ids: Sequence[int]) -> None:
    state.call("abort_txns", structs.AbortTxnsRequest(list(ids)))


def _reason(lock: structs.ShowLocksResponseElement) -> LockReason:
    return parse_reason(lock.agentInfo or "")


_EXTENDED: Final[Mapping[str, Callable[[structs.ShowLocksResponseElement], Cell]]] = {
    "query_id": lambda lock: _reason(lock).query_id,
    "lock_mode": lambda lock: "EXPLICIT" if _reason(lock).is_explicit else "IMPLICIT",
    "query_string": lambda lock: _reason(lock).statement,
}


def _member(enum: Any, number: int | None) -> str:
    """Other metastores may know more members."""
    return next((member.name for member in enum if member == number), str(number))


def _settings(state: ShellState) -> acquiring.ConcurrencySettings:
    given = {name: value for name, value in state.options.items() if name in acquiring.SETTING_NAMES}
    try:
        return acquiring.ConcurrencySettings.from_configuration({"hive.lock.numretries": "0", **given})
    except acquiring.SettingError as error:
        raise CommandRefused(str(error)) from error


def _text(place: PlaceName) -> str:
    database = shown_key(place.db_name)
    return f"database {database}" if place.table_name is None else f"table {database}.{place.table_name}"


def leases_of(found: Iterable[structs.LeaseObject]) -> ResultRows:
    """The rows of leases."""
    return table_of(
        found,
        lease_id="lease_id",
        user="user",
        database=lambda one: shown_key(one.db_name or ""),
        table="table_name",
        partition=lambda lease: lease.partition_name or None,
        type=lambda lease: "EXCLUSIVE" if lease.lease_type == "x" else "SHARED",
        start=lambda lease: time_text(lease.start_utc),
        end=lambda lease: time_text(lease.end_utc),
    )


def _lease_object(state: ShellState, place: PlaceName) -> structs.LeaseObject:
    return structs.LeaseObject(*_names(state, place), "s")


def _names(state: ShellState, place: PlaceName) -> tuple[str, str | None, str | None]:
    """Database, table and partition; a partition of a missing table as it is written. Raises CommandRefused."""
    name = QualifiedName(place.db_name, place.table_name or "")
    if not place.spec or acquiring.PartitionKeys(state.caller)(concurrency.LockPlace(*name)) is not None:
        return place_names(state, place)
    known = known_values(name, [part.key for part in place.spec], place.spec)
    return place.db_name, place.table_name, make_name(list(known), list(known.values()))


def this_host() -> str:
    """The name of this machine in locks."""
    return socket.gethostname()
