"""Locks, leases, transactions and compactions: shown, taken, given back."""

import socket
import time
from collections.abc import Sequence
from typing import Any, Final

from hms_gateway.cli.hiveql.shell_state import (
    Cell,
    CommandRefused,
    PlaceName,
    QualifiedName,
    ResultRows,
    ShellState,
    Statement,
    known_values,
    place_names,
    time_text,
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
from hms_gateway.rpc.structs import (
    AbortTxnsRequest,
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

_LOCK_COLUMNS: Final = (
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type", "transaction_id",
    "last_heartbeat", "acquired_at", "user", "hostname", "agent_info",
)  # fmt: skip
_EXTENDED: Final = ("query_id", "lock_mode", "query_string")


class ShowTransactions(Statement, frozen=True):
    def run(self, state: ShellState) -> ResultRows:
        found = state.call("get_open_txns_info").open_txns or []
        columns = ("transaction_id", "state", "started", "last_heartbeat", "user", "hostname", "agent_info")
        return ResultRows(
            columns,
            (
                (
                    txn.id,
                    _member(TxnState, txn.state),
                    time_text(txn.startedTime),
                    time_text(txn.lastHeartbeatTime),
                    txn.user,
                    txn.hostname,
                    txn.agentInfo,
                )
                for txn in found
            ),
        )


class ShowCompactions(Statement, frozen=True):
    def run(self, state: ShellState) -> ResultRows:
        found = state.call("show_compact", ShowCompactRequest()).compacts or []
        columns = (
            "compaction_id",
            "database",
            "table",
            "partition",
            "type",
            "state",
            "worker",
            "start",
            "run_as",
            "error",
        )
        return ResultRows(
            columns,
            (
                (
                    each.id,
                    each.dbname,
                    each.tablename,
                    each.partitionname,
                    _member(CompactionType, each.type),
                    each.state,
                    each.workerid,
                    time_text(each.start),
                    each.runAs,
                    each.errorMessage,
                )
                for each in found
            ),
        )


class ShowLocks(Statement, frozen=True):
    place: PlaceName | None = None
    is_extended: bool = False

    def run(self, state: ShellState) -> ResultRows:
        filter = ShowLocksRequest(isExtended=self.is_extended)
        if self.place is not None:
            filter.dbname, filter.tablename, filter.partname = _names(state, self.place)
        found = state.call("show_locks", filter).locks or []
        if not self.is_extended:
            return ResultRows(_LOCK_COLUMNS, map(_lock_cells, found))
        return ResultRows(
            (*_LOCK_COLUMNS[:-1], *_EXTENDED), ((*_lock_cells(lock)[:-1], *_reason_cells(lock)) for lock in found)
        )


class ShowLeases(Statement, frozen=True):
    """No places mean every lease."""

    places: tuple[PlaceName, ...] = ()

    def run(self, state: ShellState) -> ResultRows:
        found = state.call("list_lease", [_lease_object(state, place) for place in self.places])
        columns = ("lease_id", "user", "database", "table", "partition", "type", "start", "end")
        return ResultRows(columns, map(lease_cells, found))


class DropLeases(Statement, frozen=True):
    places: tuple[PlaceName, ...] = ()

    def run(self, state: ShellState) -> None:
        state.call("force_drop_lease", [_lease_object(state, place) for place in self.places])


class LockStatement(Statement, frozen=True):
    command: Command
    text: str

    def run(self, state: ShellState) -> ResultRows:
        """The lock lasts until it is released, or gets no heartbeat for the time-out of the metastore."""
        settings = _settings(state)
        reason = LockReason.of_command(self.text, is_explicit=True)
        holder = LockHolder(state.user, state.hostname, str(reason))
        try:
            command = in_key_order(self.command, PartitionKeys(state.caller))
            locks = needed_locks(command)
            lock_id = LockAcquirer(state.caller, settings, time.sleep).acquire(locks, holder)
        except NotAKey as error:
            raise CommandRefused(str(error)) from error
        except LocksDenied as error:
            raise CommandRefused(f"{error}; {listing_holders('SHOW LOCKS')}") from error
        if lock_id is not None:
            state.lock_ids.append(lock_id)
        return ResultRows(("lockid",), [(lock_id,)])


class Unlock(Statement, frozen=True):
    place: PlaceName

    def run(self, state: ShellState) -> None:
        """Gives back what LOCK took on the object, by this user on this machine."""
        names = _names(state, self.place)
        found = state.call("show_locks", ShowLocksRequest(*names)).locks or []
        own = {
            lock.lockid
            for lock in found
            if (lock.dbname, lock.tablename or None, lock.partname or None) == names
            and (lock.user, lock.hostname) == (state.user, state.hostname)
            and parse_reason(lock.agentInfo or "").is_explicit
        }
        if not own:
            raise CommandRefused(
                f"{_text(self.place)} is not locked by {state.user} on {state.hostname}; SHOW LOCKS shows all"
            )
        for lock_id in own:
            state.call("unlock", UnlockRequest(lock_id))
            if lock_id in state.lock_ids:
                state.lock_ids.remove(lock_id)


class ExplainLocks(Statement, frozen=True):
    command: Command

    def run(self, state: ShellState) -> ResultRows:
        types = {Mode.SHARED: "SHARED", Mode.EXCLUSIVE: "EXCLUSIVE"}
        try:
            command = in_key_order(self.command, PartitionKeys(state.caller))
        except NotAKey as error:
            raise CommandRefused(str(error)) from error
        locks = needed_locks(command)
        asked = {(one.dbname, one.tablename, one.partitionname) for one in lock_components(locks)}
        rows = ((place.db_name, place.table_name, place.partition_name, types[mode]) for place, mode in locks)
        return ResultRows(
            ("database", "table", "partition", "lock_type", "in_show_locks"),
            ((*row, row[:3] in asked) for row in rows),
        )


class AbortTransactions(Statement, frozen=True):
    ids: Sequence[int]

    def run(self, state: ShellState) -> None:
        state.call("abort_txns", AbortTxnsRequest(list(self.ids)))


def _lock_cells(lock: ShowLocksResponseElement) -> tuple[Cell, ...]:
    blocker = None if lock.blockedByExtId is None else f"{lock.blockedByExtId}.{lock.blockedByIntId}"
    return (
        f"{lock.lockid}.{lock.lockIdInternal}",
        lock.dbname,
        lock.tablename,
        lock.partname,
        _member(LockState, lock.state),
        blocker,
        _member(LockType, lock.type),
        lock.txnid or None,
        time_text(lock.lastheartbeat),
        time_text(lock.acquiredat),
        lock.user,
        lock.hostname,
        lock.agentInfo,
    )


def _reason_cells(lock: ShowLocksResponseElement) -> tuple[Cell, ...]:
    reason = parse_reason(lock.agentInfo or "")
    return reason.query_id, "EXPLICIT" if reason.is_explicit else "IMPLICIT", reason.statement


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


def lease_cells(lease: LeaseObject) -> tuple[Cell, ...]:
    """One row of SHOW LEASES."""
    kind = "EXCLUSIVE" if lease.lease_type == "x" else "SHARED"
    names = (lease.db_name, lease.table_name, lease.partition_name or None)
    return (lease.lease_id, lease.user, *names, kind, time_text(lease.start_utc), time_text(lease.end_utc))


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
