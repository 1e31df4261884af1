"""The calls of clients, on a store in their own process or through a gateway, with values that JSON can keep."""

import json
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

import httpx

from hms_gateway.client.metastore_client import ClientError, MetastoreClient
from hms_gateway.metastore.changes.implicit_locks import refuse_locked
from hms_gateway.metastore.ports.store import CatalogWork, Event, EventId, OutcomeUnknown, StoreUnavailable, Transaction
from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AddDynamicPartitions,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    Database,
    DataOperationType,
    EnvironmentContext,
    FieldSchema,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NotificationEventRequest,
    OpenTxnRequest,
    SerDeInfo,
    ShowLocksRequest,
    ShowLocksResponseElement,
    StorageDescriptor,
    Table,
    TxnState,
    UnlockRequest,
)
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import LockCaller, locking
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.ports.txn import Client, LockFilter
from hms_gateway.txn.rules.locks import LockedByAnother, Needed, TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnOperation, Write
from hms_gateway.txn.services.compaction import Expiry
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.linearizability.history import NotMade, Unknown

T = TypeVar("T")

WHO: Final = Client("u", "h", "a")
TIMEOUT_MS: Final = 300_000
# What is named as one's own by who has none: all clients are the same user.
NO_LOCK: Final = 0
# A mistake to be found: locks are compared in a unit of work before that of the change.
LOOKS_TOO_EARLY = False
_X: Final = LockType.EXCLUSIVE
_CHANGES: Final = ("DROP_TABLE", "DROP_PARTITION", "ALTER_TABLE")
READ_CONNECTIONS: Final = 4


class Services(Protocol):
    """What a client may call, by `made`. Raises ThriftException, Unknown when the answer got lost, and NotMade."""

    def made(self, call: Callable[[], T]) -> T: ...

    def open(self, count: int) -> Any: ...
    def commit(self, txn_id: int, checks: bool, is_strict: bool) -> None: ...
    def abort(self, txn_id: int) -> None: ...
    def heartbeat(self, lock_id: int, txn_id: int) -> None: ...
    def add_writes(self, txn_id: int, place: Sequence[str | None], operation: str) -> None: ...
    def open_txns(self, since: int) -> Any: ...
    def lock(self, txn_id: int, is_of_hive_4: bool, parts: Sequence[Any]) -> Any: ...
    def check_lock(self, lock_id: int) -> str: ...
    def unlock(self, lock_id: int) -> None: ...
    def show_locks(self) -> Any: ...
    def allocate(self, table: str, txn_ids: Sequence[int]) -> Any: ...
    def valid_write_ids(self, table: str) -> Any: ...
    def change(self, place: Sequence[str | None], own: Sequence[int]) -> None: ...
    def count_changes(self) -> int: ...
    def prepare(self, db_name: str) -> None: ...
    def close(self) -> None: ...


class StoreServices:
    """On the database itself."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        # What is over is forgotten as soon as somebody tidies up.
        settings = TxnSettings(remembered_ms=-1, victims_remembered_ms=-1)
        self._locks = LockService(store, settings)
        self._transactions = TransactionService(store, self._locks, settings)
        self._write_ids = WriteIdService(store, settings)
        self._expiry = Expiry(store, settings)
        self.db_name = ""

    def made(self, call: Callable[[], T]) -> T:
        """The answer of a call, with the store's errors as ours: what it says about a change is taken at its word."""
        try:
            return call()
        except OutcomeUnknown as error:
            raise Unknown from error
        except StoreUnavailable as error:
            raise NotMade from error

    def open(self, count: int) -> Any:
        return self._transactions.open(count, WHO).result()

    def commit(self, txn_id: int, checks: bool, is_strict: bool) -> None:
        self._transactions.commit(txn_id, checks_writes=checks, is_strict=is_strict).result()

    def abort(self, txn_id: int) -> None:
        self._transactions.abort(txn_id).result()

    def heartbeat(self, lock_id: int, txn_id: int) -> None:
        self._transactions.heartbeat(lock_id, txn_id).result()

    def add_writes(self, txn_id: int, place: Sequence[str | None], operation: str) -> None:
        self._transactions.add_writes(txn_id, [_target(place)], TxnOperation[operation], None)

    def open_txns(self, since: int) -> Any:
        found = self._transactions.open_txns()
        listed = [(txn.txn_id, txn.is_open) for txn in found.unfinished if txn.txn_id >= since]
        return found.high_water_mark, listed

    def lock(self, txn_id: int, is_of_hive_4: bool, parts: Sequence[Any]) -> Any:
        wanted = [
            ComponentSpec(_target(place), LockType[kind], operation and Write(_target(place), TxnOperation[operation]))
            for place, kind, operation in parts
        ]
        answer = self._locks.lock(LockSpec(wanted, WHO, TxnId(txn_id), is_of_hive_4)).result()
        return answer.lock_id, answer.state.name

    def check_lock(self, lock_id: int) -> str:
        return self._locks.check_lock(lock_id).result().state.name

    def unlock(self, lock_id: int) -> None:
        self._locks.unlock(lock_id).result()

    def show_locks(self) -> Any:
        found = self._locks.show(LockFilter(db_name=self.db_name)).struct_chunks()
        return _shown(one for chunk in found for one in chunk)

    def allocate(self, table: str, txn_ids: Sequence[int]) -> Any:
        return sorted(self._write_ids.allocate(Target(self.db_name, table), txn_ids).items())

    def valid_write_ids(self, table: str) -> Any:
        ((found, _),) = self._write_ids.valid_write_ids([(table, Target(self.db_name, table))], None)
        return found.ids.high_water_mark, found.ids.open_ids, found.ids.aborted_ids

    def change(self, place: Sequence[str | None], own: Sequence[int]) -> None:
        """A change of a table or partition under implicit locks; `own` are the caller's."""
        changed = _target(place)
        caller = LockCaller("", "", TIMEOUT_MS, frozenset(own) or frozenset({NO_LOCK}))

        def work(transaction: Transaction) -> None:
            transaction.append_event(_event(changed))

        if LOOKS_TOO_EARLY:
            self._store.write(lambda transaction: refuse_locked(transaction, caller, [Needed(changed, _X)]))
            self._store.write(work)
            return
        with locking(caller):
            self._store.write(CatalogWork(work, [(changed.db_name, changed.table_name or "")]))

    def count_changes(self) -> int:
        events = (stored.event for stored in self._store.changes_since(EventId(0)))
        return sum(event.db_name == self.db_name and event.event_type in _CHANGES for event in events)

    def prepare(self, db_name: str) -> None:
        """What is changed need not be there."""

    def twin(self) -> "StoreServices":
        """For another thread."""
        return StoreServices(self._store)

    def tidy_up(self) -> None:
        """Forget what is over."""
        self._expiry.expire()

    def close(self) -> None:
        self._store.close()


class GatewayServices:
    """Through HTTP, in the shapes of 2.3."""

    def __init__(self, url: str, user: str, password: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._account = (url, user, password)
        self._client = MetastoreClient(url, (user, password), context, timeout_seconds=60)
        self.db_name = ""

    def made(self, call: Callable[[], T]) -> T:
        return call()

    def open(self, count: int) -> Any:
        return self._call("open_txns", OpenTxnRequest(count, *_who())).txn_ids

    def commit(self, txn_id: int, checks: bool, is_strict: bool) -> None:
        assert checks or not is_strict
        is_lax = None if checks and not is_strict else not checks
        self._call("commit_txn", CommitTxnRequest(txn_id, exclWriteEnabled=is_lax))

    def abort(self, txn_id: int) -> None:
        self._call("abort_txn", AbortTxnRequest(txn_id))

    def heartbeat(self, lock_id: int, txn_id: int) -> None:
        self._call("heartbeat", HeartbeatRequest(lock_id, txn_id))

    def add_writes(self, txn_id: int, place: Sequence[str | None], operation: str) -> None:
        db_name, table_name, partition_name = place
        partitions = [partition_name or ""]
        request = AddDynamicPartitions(txn_id, db_name, table_name, partitions, DataOperationType[operation])
        self._call("add_dynamic_partitions", request)

    def open_txns(self, since: int) -> Any:
        found = self._call("get_open_txns_info")
        listed = sorted((txn.id, TxnState(txn.state) is TxnState.OPEN) for txn in found.open_txns if txn.id >= since)
        return found.txn_high_water_mark, listed

    def lock(self, txn_id: int, is_of_hive_4: bool, parts: Sequence[Any]) -> Any:
        assert not is_of_hive_4
        components = [
            LockComponent(LockType[kind], _level(place), *place, operationType=DataOperationType[operation or "SELECT"])
            for place, kind, operation in parts
        ]
        answer = self._call("lock", LockRequest(components, txn_id or None, *_who()))
        return answer.lockid, LockState(answer.state).name

    def check_lock(self, lock_id: int) -> str:
        return LockState(self._call("check_lock", CheckLockRequest(lock_id)).state).name

    def unlock(self, lock_id: int) -> None:
        self._call("unlock", UnlockRequest(lock_id))

    def show_locks(self) -> Any:
        return _shown(self._call("show_locks", ShowLocksRequest(self.db_name)).locks)

    def allocate(self, table: str, txn_ids: Sequence[int]) -> Any:
        request = AllocateTableWriteIdsRequest(self.db_name, table, list(txn_ids))
        given = self._call("allocate_table_write_ids", request).txnToWriteIds
        return sorted((one.txnId, one.writeId) for one in given)

    def valid_write_ids(self, table: str) -> Any:
        request = GetValidWriteIdsRequest([f"{self.db_name}.{table}"])
        (found,) = self._call("get_valid_write_ids", request).tblValidWriteIds
        bits = found.abortedBits or b""
        aborted = [
            number
            for place, number in enumerate(found.invalidWriteIds)
            if place // 8 < len(bits) and bits[place // 8] >> place % 8 & 1
        ]
        return found.writeIdHighWaterMark, [one for one in found.invalidWriteIds if one not in aborted], aborted

    def change(self, place: Sequence[str | None], own: Sequence[int]) -> None:
        """Of the table, whatever of it was meant: its partitions are not there."""
        db_name, table_name, _ = place
        table = self._call("get_table", db_name, table_name)
        context = EnvironmentContext({"hms.lock.id": ",".join(map(str, own or (NO_LOCK,)))})
        try:
            self._call("alter_table_with_environment_context", db_name, table_name, table, context)
        except InvalidOperationException as error:
            raise LockedByAnother(error.message) from error

    def count_changes(self) -> int:
        found = self._call("get_next_notification", NotificationEventRequest(0)).events
        return sum(event.dbName == self.db_name and event.eventType in _CHANGES for event in found)

    def prepare(self, db_name: str) -> None:
        self._call("create_database", Database(db_name))
        for name in ("t", "u"):
            described = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo())
            self._call("create_table", Table(name, db_name, sd=described))

    def twin(self) -> "GatewayServices":
        """For another thread."""
        return GatewayServices(*self._account)

    def tidy_up(self) -> None:
        """The gateway does so by itself."""

    def close(self) -> None:
        self._client.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._client.call(name, *arguments)
        except ClientError as error:
            raise (NotMade if isinstance(error.__cause__, httpx.ConnectError) else Unknown)(str(error)) from error


def open_services(address: str) -> StoreServices | GatewayServices:
    """`address` is the URL of a database, or `https://…` with user and password behind it, separated by spaces."""
    url, *account = address.split(" ", 2)
    if url.startswith("http"):
        return GatewayServices(url, *account)
    return StoreServices(open_store(url, SystemClock(), Limits(), READ_CONNECTIONS))


def _event(changed: Target) -> Event:
    if changed.partition_name is None:
        return Event("DROP_TABLE", changed.db_name, changed.table_name, "{}")
    message = json.dumps({"partName": changed.partition_name})
    return Event("DROP_PARTITION", changed.db_name, changed.table_name, message)


def _target(place: Sequence[str | None]) -> Target:
    return Target(place[0] or "", *place[1:])


def _shown(locks: Iterable[Any]) -> Any:
    return sorted(
        (one.lockid, one.lockIdInternal, one.txnid, _names(one), LockState(one.state) is LockState.ACQUIRED)
        for one in locks
    )


def _names(shown: ShowLocksResponseElement) -> list[str | None]:
    return [shown.dbname, shown.tablename, shown.partname]


def _level(place: Sequence[str | None]) -> LockLevel:
    return list(LockLevel)[sum(name is not None for name in place) - 1]


def _who() -> tuple[str, str]:
    return WHO.user, WHO.hostname
