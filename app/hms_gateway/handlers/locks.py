"""Methods on locks and leases, and the order of partition keys in the names that they lock."""

from collections.abc import Sequence
from typing import Final

import msgspec

from hms_gateway.catalog.arguments import database_name, is_newer, with_fields
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.vocabulary.partition_names import canonical_value, escape, unescape
from hms_gateway.rpc.call import Call, Waiting
from hms_gateway.rpc.structs import (
    BlockingLock,
    CheckLockRequest,
    InvalidArgumentsException,
    LeaseObject,
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    ShowLocksRequest,
    ShowLocksResponse,
    ShowLocksResponseElement,
    UnlockRequest,
)
from hms_gateway.runtime.suspension import Deferred, in_thread
from hms_gateway.txn.ports.txn import Client, LockFilter, ShownLock
from hms_gateway.txn.rules.leases import Ticket
from hms_gateway.txn.rules.locks import NO_TXN, TxnId
from hms_gateway.txn.rules.names import Target, fold, normalize_partition, target
from hms_gateway.txn.rules.transactions import Write, recorded_operation
from hms_gateway.txn.services.leases import LeaseService, MustWait
from hms_gateway.txn.services.locks import ComponentSpec, LockAnswer, LockService, LockSpec


class KeyOrder:
    """More than `objects_max` are returned as they are: such requests are refused."""

    def __init__(self, store: Store, objects_max: int) -> None:
        self._store = store
        self._objects_max = objects_max

    def ordered(self, targets: Sequence[Target]) -> list[Target]:
        """The same objects, partitions by their names in the catalog."""
        if not any(target.partition_name for target in targets):
            return list(targets)
        spelt = [_spelt(target) for target in targets]
        tables = {target[:2] for target in spelt if len(_keys(target)) > 1}
        if not tables or len(spelt) > self._objects_max:
            return spelt
        orders = self._store.read(lambda snapshot: {table: _order(snapshot, *table) for table in tables})
        return [_in_order(target, orders.get(target[:2], ())) for target in spelt]


def _order(snapshot: Snapshot, db_name: str, table_name: str | None) -> Sequence[str]:
    table = TableName(db_name, table_name).find(snapshot) if db_name and table_name else None
    return [] if table is None else [(key.name or "").lower() for key in table.table.partitionKeys or ()]


def _in_order(target: Target, order: Sequence[str]) -> Target:
    """Leave a name as it is that has something else than keys of the table."""
    keys = _keys(target)
    if target.partition_name is None or len(set(keys)) < len(keys) or not set(keys).issubset(order):
        return target
    parts = dict(zip(keys, target.partition_name.split("/"), strict=True))
    return target._replace(partition_name="/".join(parts[key] for key in order if key in parts))


def _keys(target: Target) -> list[str]:
    """The names of the keys; empty for a partition in a short form without them."""
    parts = [] if target.partition_name is None else target.partition_name.split("/")
    return [unescape(part.partition("=")[0]) for part in parts] if all("=" in part for part in parts) else []


def _spelt(target: Target) -> Target:
    if target.partition_name is None:
        return target
    return target._replace(partition_name="/".join(_spelt_part(part) for part in target.partition_name.split("/")))


def _spelt_part(part: str) -> str:
    key, separator, value = part.partition("=")
    return f"{escape(unescape(key))}={escape(canonical_value(unescape(value)))}" if separator else part


class Leases:
    def __init__(self, leases: LeaseService, order: KeyOrder) -> None:
        self._leases = leases
        self._order = order

    def grab_lease(
        self, call: Call, objs: list[LeaseObject], lease_duration_sec: int, lease_wait_duration_sec: int
    ) -> int:
        """A request that has to wait is called again by the edge; what it is resumed with is its ticket."""
        ticket = call.resume if isinstance(call.resume, int) else None
        outcome = self._leases.grab(
            call.principal,
            self._objects(objs),
            lease_duration_sec or 0,
            lease_wait_duration_sec or 0,
            waited_seconds=call.waited_seconds,
            ticket=None if ticket is None else Ticket(ticket),
        )
        if not isinstance(outcome, MustWait):
            return outcome
        waits_for = outcome.ticket
        raise Waiting(outcome.seconds, resume=waits_for, abandon=lambda: self._leases.abandon(waits_for))

    def list_lease(self, call: Call, objs: list[LeaseObject]) -> list[LeaseObject]:
        return self._leases.listed(self._objects(objs))

    def extend_lease(self, call: Call, lease_id: int, objs: list[LeaseObject], lease_duration_sec: int) -> int:
        return self._leases.extend(call.principal, lease_id or 0, self._objects(objs), lease_duration_sec)

    def drop_lease(self, call: Call, lease_id: int, objs: list[LeaseObject]) -> None:
        self._leases.drop(call.principal, lease_id or 0, self._objects(objs))

    def force_drop_lease(self, call: Call, objs: list[LeaseObject]) -> None:
        self._leases.force_drop(call.principal, self._objects(objs))

    def _objects(self, objs: list[LeaseObject] | None) -> list[LeaseObject]:
        """Spell names as the catalog does: databases may be given as `@hive#name`."""
        try:
            given = [with_fields(each, db_name=database_name(each.db_name)) for each in objs or ()]
        except MetaException as error:
            raise InvalidArgumentsException(error.message) from error
        places = [target(each.db_name, each.table_name, each.partition_name) for each in given]
        return [
            each if place.partition_name is None else with_fields(each, partition_name=place.partition_name)
            for each, place in zip(given, self._order.ordered(places), strict=True)
        ]


_BLOCKED_SHOWN_MAX: Final = 100
# EXCL_WRITE is unknown before 4, where SHARED_WRITE means the same: one writer, any readers (semantics §10.1).
_OLDER_TYPES: Final = {LockType.EXCL_WRITE: LockType.SHARED_WRITE}


class Locks:
    def __init__(self, locks: LockService, order: KeyOrder) -> None:
        self._locks = locks
        self._order = order

    def lock(self, call: Call, rqst: LockRequest) -> Deferred[LockResponse]:
        request = required(rqst, "rqst")
        if any("/" in (component.partitionname or "") for component in request.component or ()):
            # The order of a partition's keys is read from the catalog.
            return in_thread(lambda: self._lock(call, request).result())
        return self._lock(call, request)

    def _lock(self, call: Call, request: LockRequest) -> Deferred[LockResponse]:
        txn_id = TxnId(request.txnid or NO_TXN)
        components, mistake = self._all_components(request, txn_id)
        spec = LockSpec(
            components=components,
            mistake=mistake,
            client=_holder(call, request),
            txn_id=txn_id,
            # Hive 4 always says it, 3.1 does not know it; both may come through the same door.
            shares_writes=request.zeroWaitReadEnabled is not None,
            zero_wait_read=bool(request.zeroWaitReadEnabled),
            exclusive_ctas=bool(request.exclusiveCTAS),
        )
        return self._locks.lock(spec).then(_response)

    def check_lock(self, call: Call, rqst: CheckLockRequest) -> Deferred[LockResponse]:
        """Only the lock's id counts (semantics §5.9)."""
        return self._locks.check_lock(required(rqst, "rqst").lockid or 0).then(_response)

    def unlock(self, call: Call, rqst: UnlockRequest) -> Deferred[None]:
        return self._locks.unlock(required(rqst, "rqst").lockid or 0)

    def show_locks(self, call: Call, rqst: ShowLocksRequest) -> ShowLocksResponse:
        shown_types = {} if is_newer(call) else _OLDER_TYPES
        return ShowLocksResponse(self._locks.show(self._filter(required(rqst, "rqst")), shown_types))

    def list_blocking_locks(self, call: Call, rqst: ShowLocksRequest) -> list[BlockingLock]:
        return [
            BlockingLock(
                lock=_element(call, one.shown),
                last_heartbeat=one.last_heartbeat_ms,
                lost_at=one.lost_ms,
                blocked=list(one.blocked[:_BLOCKED_SHOWN_MAX]),
                blocked_count=len(one.blocked),
                blocked_since=list(one.blocked_since_ms[:_BLOCKED_SHOWN_MAX]),
            )
            for one in self._locks.blocking(self._filter(required(rqst, "rqst")))
        ]

    def force_release_lock(self, call: Call, lockid: int, reason: str) -> list[ShowLocksResponseElement]:
        released = self._locks.force_release(call.principal, lockid or 0, reason)
        return [_element(call, one) for one in released]

    def _filter(self, request: ShowLocksRequest) -> LockFilter:
        """A name that is empty is none, as in Hive."""
        db_name = database_name(request.dbname)
        table_name = fold(request.tablename) if request.tablename else None
        partition = None if request.partname is None else normalize_partition(request.partname) or None
        [place] = self._order.ordered([Target(fold(db_name or ""), table_name, partition)])
        return LockFilter(
            db_name=place.db_name if db_name else None,
            table_name=place.table_name,
            partition_name=place.partition_name,
            txn_id=None if request.txnid is None else TxnId(request.txnid),
        )

    def _all_components(self, request: LockRequest, txn_id: TxnId) -> tuple[list[ComponentSpec], MetaException | None]:
        """The components, or what is wrong with one: like Hive, the service looks at the transaction first."""
        components = request.component or ()
        try:
            places = [object_named(one.dbname, one.tablename, one.partitionname) for one in components]
            ordered = zip(components, self._order.ordered(places), strict=True)
            return [_component_spec(component, place, txn_id) for component, place in ordered], None
        except MetaException as mistake:
            return [], mistake


def client(user: str | None, hostname: str | None, agent_info: str | None) -> Client:
    """Clients of Iceberg compare the agent of every lock and fail on an absent one (clients §5.1)."""
    return Client(user or "", hostname or "", "Unknown" if agent_info is None else agent_info)


def _holder(call: Call, request: LockRequest) -> Client:
    sent = client(request.user, request.hostname, request.agentInfo)
    return msgspec.structs.replace(sent, principal=call.principal, address=call.client_address)


def _component_spec(component: LockComponent, place: Target, txn_id: TxnId) -> ComponentSpec:
    if txn_id == NO_TXN:
        return ComponentSpec(place, _lock_type(component.type))
    operation = recorded_operation(
        component.operationType, component.isAcid, is_dynamic=bool(component.isDynamicPartitionWrite)
    )
    return ComponentSpec(place, _lock_type(component.type), None if operation is None else Write(place, operation))


def object_named(db_name: str | None, table_name: str | None = None, partition_name: str | None = None) -> Target:
    """What a request names, its database perhaps as `@hive#name`. Raises MetaException."""
    return target(database_name(db_name), table_name, partition_name)


def _lock_type(number: int | None) -> LockType:
    try:
        return LockType(number or 0)
    except ValueError:
        raise MetaException(f"unknown lock type {number}") from None


def _response(answer: LockAnswer) -> LockResponse:
    return LockResponse(answer.lock_id, answer.state, answer.error_message)


def _element(call: Call, shown: ShownLock) -> ShowLocksResponseElement:
    lock = shown.lock
    return ShowLocksResponseElement(
        lockid=lock.lock_id,
        dbname=lock.target.db_name,
        tablename=lock.target.table_name,
        partname=lock.target.partition_name,
        state=LockState.ACQUIRED if lock.is_acquired else LockState.WAITING,
        type=lock.type if is_newer(call) else _OLDER_TYPES.get(lock.type, lock.type),
        txnid=lock.txn_id,
        lastheartbeat=lock.last_heartbeat_ms,
        acquiredat=shown.since_ms if lock.is_acquired else None,
        user=shown.client.user,
        hostname=shown.client.hostname,
        agentInfo=shown.client.agent_info,
        blockedByExtId=None if shown.blocker is None else shown.blocker[0],
        blockedByIntId=None if shown.blocker is None else shown.blocker[1],
        lockIdInternal=lock.number,
    )
