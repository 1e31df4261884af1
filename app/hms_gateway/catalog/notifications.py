"""The log of notification events: reading, writing by clients, expiry (semantics §2.20); its methods."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.catalog.arguments import in_catalog, is_newer
from hms_gateway.catalog.runtime_records import RuntimeRecordRows
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName, values_name
from hms_gateway.metastore.ports.store import (
    Event,
    EventId,
    EventSelection,
    Snapshot,
    Store,
    StoredEvent,
    StoredTable,
    Transaction,
)
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    CmRecycleRequest,
    CmRecycleResponse,
    CurrentNotificationEventId,
    FireEventRequest,
    FireEventResponse,
    InsertEventRequestData,
    InsertEventRequestData_v4,
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventResponse,
    NotificationEventsCountRequest,
    NotificationEventsCountResponse,
    WriteEventInfo,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogBatchResponse,
    WriteNotificationLogRequest,
    WriteNotificationLogResponse,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_prefix
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits

T = TypeVar("T")

INSERT: Final = "INSERT"
RELOAD: Final = "RELOAD"

MESSAGE_FORMAT: Final = "json-0.2"
# Between the files of a write event; it is in no location.
FILE_SEPARATOR: Final = "]"
# Messages may be long, so not all are read before it is known how many fit.
_PAGE_EVENTS: Final = 50
# Without messages events are small; each counts as so many bytes.
_PAGE_HEADERS: Final = 1_000
_HEADER_BYTES: Final = 200
# So many in one unit of work, which all other changes wait for.
_EXPIRED_AT_ONCE_MAX: Final = 1_000


class Insertion(msgspec.Struct, frozen=True):
    """What a client says it wrote: files, and whether they replace all others.

    partition_values   of the partition written to, perhaps of the leading keys only; none for the table itself
    """

    files: Sequence[str] = ()
    replaces: bool = False
    partition_values: Sequence[str] = ()


class Written(msgspec.Struct, frozen=True):
    """What a transaction says it wrote under a write id."""

    txn_id: int
    write_id: int
    insertion: Insertion


class Notifications:
    """Methods that read and extend the log that changes write."""

    def __init__(self, store: Store, clock: Clock, events: EventMaker, limits: Limits) -> None:
        self._store = store
        self._bytes_max = limits.event_bytes_per_reply_max
        self._clock = clock
        self._events = events

    def get_next_notification(self, call: Call, rqst: NotificationEventRequest) -> NotificationEventResponse:
        """Events in order of their ids, at least one if there are any; without a positive `maxEvents` all there are.

        They end early when their messages become too long for one reply (limit event_bytes_per_reply_max). Followers
        of the log ask again from the last id they got, so nothing is lost to them. `withoutMessages` is ours: their
        messages are empty.
        """
        request = required(rqst, "rqst")
        catalog = DEFAULT_CATALOG if is_newer(call) or request.catName else None
        selection = event_selection(request)
        found = self._store.read(lambda snapshot: self._within_bounds(snapshot, selection))
        return NotificationEventResponse([_event(one, catalog) for one in found])

    def get_current_notificationEventId(self, call: Call) -> CurrentNotificationEventId:
        """The newest event's id, 0 before the first."""
        return CurrentNotificationEventId(self._store.version())

    def get_notification_events_count(
        self, call: Call, rqst: NotificationEventsCountRequest
    ) -> NotificationEventsCountResponse:
        request = required(rqst, "rqst")
        selection = EventSelection(
            EventId(request.fromEventId or 0),
            up_to=request.toEventId,
            db_name=_database(request.catName, required(request.dbName, "dbName")),
            table_names=_tables(request.tableNames),
            limit=_positive(request.limit),
        )
        return NotificationEventsCountResponse(self._store.read(lambda snapshot: snapshot.count_events(selection)))

    def fire_listener_event(self, call: Call, rqst: FireEventRequest) -> FireEventResponse:
        """Events of other kinds than INSERT and RELOAD cannot be fired. Callers before 4 get an empty answer.

        As in Hive, `successful` makes no difference. Clients of 4 fire RELOAD when files were changed behind the
        catalog's back.
        """
        request = required(rqst, "rqst")
        data = required(request.data, "data")
        name = TableName(in_catalog(request.catName, request.dbName), request.tableName)
        if data.insertData is not None:
            ids = self._append(name, [_insertion(data.insertData, request.partitionVals)], self._insert_event)
        elif data.insertDatas is not None:
            insertions = [_insertion(one, one.partitionVal) for one in data.insertDatas]
            ids = self._append(name, insertions, self._insert_event)
        elif data.refreshEvent is not None:
            ids = self._append(
                name, request.batchPartitionValsForRefresh or [request.partitionVals or []], self._reload_event
            )
        else:
            raise MetaException("Event type null not currently supported.")
        return FireEventResponse([*ids]) if is_newer(call) or request.catName else FireEventResponse()

    def add_write_notification_log(self, call: Call, rqst: WriteNotificationLogRequest) -> WriteNotificationLogResponse:
        """Files written by a transaction: an INSERT event at once, which followers may see before the commit."""
        request = required(rqst, "rqst")
        self._insert_written(TableName(in_catalog(None, request.db), request.table), [_written(request)])
        return WriteNotificationLogResponse()

    def add_write_notification_log_in_batch(
        self, call: Call, rqst: WriteNotificationLogBatchRequest
    ) -> WriteNotificationLogBatchResponse:
        """The table is the one of the batch, whatever its requests say."""
        request = required(rqst, "rqst")
        name = TableName(in_catalog(request.catalog, request.db), request.table)
        self._insert_written(name, [_written(one) for one in request.requestList or ()])
        return WriteNotificationLogBatchResponse()

    def cm_recycle(self, call: Call, request: CmRecycleRequest) -> CmRecycleResponse:
        """Does nothing: a change manager, which keeps deleted files for replication, is off in Hive by default, too."""
        if not required(request, "request").dataPath:
            raise MetaException("dataPath must not be empty")
        return CmRecycleResponse()

    def _insert_written(self, name: TableName, writes: Sequence[Written]) -> list[EventId]:
        """An INSERT event for each of what transactions wrote, which is noted for get_all_write_event_info, too."""

        def work(tx: Transaction) -> list[EventId]:
            table = name.load(tx)
            for write in writes:
                self._note(tx, table, write)
            return [tx.append_event(self._insert_event(tx, table, write.insertion)) for write in writes]

        return self._store.write(work)

    def _append(
        self, name: TableName, each: Sequence[T], event: Callable[[Transaction, StoredTable, T], Event]
    ) -> list[EventId]:
        """An event for each. Raises NoSuchObjectException, MetaException."""

        def work(tx: Transaction) -> list[EventId]:
            table = name.load(tx)
            return [tx.append_event(event(tx, table, one)) for one in each]

        return self._store.write(work)

    def _within_bounds(self, snapshot: Snapshot, selection: EventSelection) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        size = 0
        most, least_bytes = (_PAGE_EVENTS, 0) if selection.has_messages else (_PAGE_HEADERS, _HEADER_BYTES)
        while True:
            missing = most if selection.limit is None else min(most, selection.limit - len(found))
            after = found[-1].event_id if found else selection.after
            page = snapshot.events(msgspec.structs.replace(selection, after=after, limit=missing))
            for stored in page:
                size += len(stored.event.message) + least_bytes
                if found and size > self._bytes_max:
                    return found
                found.append(stored)
            if len(page) < missing or len(found) == selection.limit:
                return found

    def _insert_event(self, tx: Transaction, table: StoredTable, insertion: Insertion) -> Event:
        fields = self._fields(tx, table, insertion.partition_values) | {
            "timestamp": self._events.timestamp(),
            "replace": "true" if insertion.replaces else "false",
            "files": list(insertion.files),
            "partKeyVals": _key_values(table, insertion.partition_values),
        }
        return self._events.event(INSERT, table.table.dbName or "", table.table.tableName, fields)

    def _reload_event(self, tx: Transaction, table: StoredTable, values: Sequence[str]) -> Event:
        fields = self._fields(tx, table, values) | {"timestamp": self._events.timestamp(), "refreshEvent": "true"}
        return self._events.event(RELOAD, table.table.dbName or "", table.table.tableName, fields)

    def _note(self, tx: Transaction, table: StoredTable, write: Written) -> None:
        """Files that are written to the same place by the same transaction come behind those noted before."""
        values = write.insertion.partition_values
        fields = self._fields(tx, table, values)
        new = WriteEventInfo(
            writeId=write.write_id,
            database=table.table.dbName,
            table=table.table.tableName,
            files=FILE_SEPARATOR.join(required(file, "file") for file in write.insertion.files),
            partition=values_name(table, values) if values else None,
            tableObj=fields["tableObjJson"],
            partitionObj=fields.get("ptnObjJson"),
        )
        before = RuntimeRecordRows(tx).write_event(write.txn_id, new)
        if before is not None and before.files:
            new = msgspec.structs.replace(new, files=FILE_SEPARATOR.join([before.files, new.files or ""]))
        RuntimeRecordRows(tx).put_write_event(write.txn_id, new, self._clock.seconds())

    def _fields(self, tx: Transaction, table: StoredTable, values: Sequence[str]) -> dict[str, Any]:
        """How the message names what it is about; the partition itself only where it is there already."""
        fields = self._events.table_fields(table.table) | {"tableObjJson": self._events.object_json(table.table)}
        if values and len(values) == len(table.key_names):
            found = tx.partition(table, values_name(table, values))
            if found is not None:
                fields["ptnObjJson"] = self._events.object_json(found.partition)
        return fields


def expire_events(store: Store, clock: Clock, settings: MetastoreSettings) -> int:
    """Forget the events that are older than the setting allows; how many. Any replica may do it at any time."""
    before = clock.seconds() - settings.event_seconds_max
    expired = 0
    while count := store.write(lambda tx: tx.delete_events_before(before, _EXPIRED_AT_ONCE_MAX)):
        expired += count
    return expired


def _key_values(table: StoredTable, values: Sequence[str]) -> dict[str, str]:
    """Raises MetaException for more values than there are keys."""
    if len(values) > len(table.key_names):
        raise MetaException(f"{len(values)} partition values for {len(table.key_names)} keys")
    given = [required(value, "partition value") for value in values]
    return dict(zip(table.key_names, given, strict=False))


def event_selection(request: NotificationEventRequest) -> EventSelection:
    return EventSelection(
        EventId(request.lastEvent or 0),
        db_name=_database(request.catName, request.dbName),
        prefix=catalog_prefix(request.catName) if request.catName else None,
        table_names=_tables(request.tableNames),
        types=request.eventTypeList or None,
        skipped_types=request.eventTypeSkipList or (),
        limit=_positive(request.maxEvents),
        has_messages=not request.withoutMessages,
    )


def _event(stored: StoredEvent, catalog: str | None) -> NotificationEvent:
    event = stored.event
    return NotificationEvent(
        stored.event_id,
        stored.event_time,
        event.event_type,
        event.db_name or None,
        event.table_name,
        event.message,
        MESSAGE_FORMAT,
        catalog,
    )


def _insertion(
    data: InsertEventRequestData | InsertEventRequestData_v4, partition_values: Sequence[str] | None
) -> Insertion:
    """Both shapes of the data; the older one may hold the newer, one field on (semantics §10.1).

    Checksums go no further: messages of the format we write have none. Hive 3 and 4 take `replace` for true if unset.
    """
    files, replaces = data.filesAdded, False
    if isinstance(data, InsertEventRequestData_v4):
        replaces = data.replace is not False
    elif files is None:
        files = data.filesAddedChecksum
    return Insertion(files or (), replaces, partition_values or ())


def _written(request: WriteNotificationLogRequest | None) -> Written:
    given = required(request, "request")
    insertion = _insertion(required(given.fileInfo, "fileInfo"), given.partitionVals)
    return Written(required(given.txnId, "txnId"), required(given.writeId, "writeId"), insertion)


def _database(catalog: str | None, name: str | None) -> str | None:
    return None if name is None else normalize(in_catalog(catalog, name) or "")


def _tables(names: Sequence[str] | None) -> list[str] | None:
    return [normalize(name) for name in names] if names else None


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None
