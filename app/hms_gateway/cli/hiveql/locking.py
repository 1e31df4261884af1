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
    Statement,
    known_values,
    place_names,
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
from hms_gateway.rpc.structs.catalogs import shown_key


class ShowTransactions(Statement, frozen=True):
    def run(self, state: ShellState) -> ResultRows:
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


class ShowCompactions(Statement, frozen=True):
    def run(self, state: ShellState) -> ResultRows:
        return table_of(
            state.call("show_compact", ShowCompactRequest()).compacts or [],
            compaction_id="id",
            database=lambda one: shown_key(one.dbname or ""),
            table="tablename",
            partition="partitionname",
            type=lambda each: _member(CompactionType, each.type),
            state="state",
            worker="workerid",
            start=lambda each: time_text(each.start),
            run_as="runAs",
            error="errorMessage",
        )


class ShowLocks(Statement, frozen=True):
    place: PlaceName | None = None
    is_extended: bool = False

    def run(self, state: ShellState) -> ResultRows:
        filter = ShowLocksRequest(isExtended=self.is_extended)
        if self.place is not None:
            filter.dbname, filter.tablename, filter.partname = _names(state, self.place)
        return table_of(
            state.call("show_locks", filter).locks or [],
            lockid=lambda lock: f"{lock.lockid}.{lock.lockIdInternal}",
            database=lambda one: shown_key(one.dbname or ""),
            table="tablename",
            partition="partname",
            lock_state=lambda lock: _member(LockState, lock.state),
            blocked_by=_blocker,
            lock_type=lambda lock: _member(LockType, lock.type),
            transaction_id=lambda lock: lock.txnid or None,
            last_heartbeat=lambda lock: time_text(lock.lastheartbeat),
            acquired_at=lambda lock: time_text(lock.acquiredat),
            user="user",
            hostname="hostname",
            **_EXTENDED if self.is_extended else {"agent_info": "agentInfo"},
        )


class ShowLeases(Statement, frozen=True):
    """No places mean every lease."""

    places: tuple[PlaceName, ...] = ()

    def run(self, state: ShellState) -> ResultRows:
        return leases_of(state.call("list_lease", [_lease_object(state, place) for place in self.places]))


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
            ((shown_key(row[0]), *row[1:], row[:3] in asked) for row in rows),
        )


class AbortTransactions(Statement, frozen=True):
    ids: Sequence[int]

    def run(self, state: ShellState) -> None:
        state.call("abort_txns", AbortTxnsRequest(list(self.ids)))


def _blocker(lock: ShowLocksResponseElement) -> str | None:
    return None if lock.blockedByExtId is None else f"{lock.blockedByExtId}.{lock.blockedByIntId}"


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
    database = shown_key(place.db_name)
    return f"database {database}" if place.table_name is None else f"table {database}.{place.table_name}"


def leases_of(found: Iterable[LeaseObject]) -> ResultRows:
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
