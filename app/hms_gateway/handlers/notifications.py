"""Methods on the notification log."""

from collections.abc import Sequence

from hms_gateway.catalog.arguments import in_catalog, is_newer
from hms_gateway.catalog.registry.notifications import MESSAGE_FORMAT, Insertion, NotificationService, Written
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import EventId, EventSelection, StoredEvent
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG, normalize
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
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
    WriteNotificationLogBatchRequest,
    WriteNotificationLogBatchResponse,
    WriteNotificationLogRequest,
    WriteNotificationLogResponse,
)


class Notifications:
    def __init__(self, notifications: NotificationService) -> None:
        self._notifications = notifications

    def get_next_notification(self, call: Call, rqst: NotificationEventRequest) -> NotificationEventResponse:
        """Without a positive `maxEvents` all there are. `withoutMessages` is ours: their messages are empty."""
        request = required(rqst, "rqst")
        catalog = DEFAULT_CATALOG if is_newer(call) or request.catName else None
        found = self._notifications.events(event_selection(request))
        return NotificationEventResponse([_event(one, catalog) for one in found])

    def get_current_notificationEventId(self, call: Call) -> CurrentNotificationEventId:
        return CurrentNotificationEventId(self._notifications.current_id())

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
        return NotificationEventsCountResponse(self._notifications.count(selection))

    def fire_listener_event(self, call: Call, rqst: FireEventRequest) -> FireEventResponse:
        """Events of other kinds than INSERT and RELOAD cannot be fired. Callers before 4 get an empty answer.

        As in Hive, `successful` makes no difference.
        """
        request = required(rqst, "rqst")
        data = required(request.data, "data")
        name = TableName(in_catalog(request.catName, request.dbName), request.tableName)
        if data.insertData is not None:
            ids = self._notifications.insert(name, [_insertion(data.insertData, request.partitionVals)])
        elif data.insertDatas is not None:
            ids = self._notifications.insert(name, [_insertion(one, one.partitionVal) for one in data.insertDatas])
        elif data.refreshEvent is not None:
            partitions = request.batchPartitionValsForRefresh or [request.partitionVals or []]
            ids = self._notifications.reload(name, partitions)
        else:
            raise MetaException("Event type null not currently supported.")
        return FireEventResponse([*ids]) if is_newer(call) or request.catName else FireEventResponse()

    def add_write_notification_log(self, call: Call, rqst: WriteNotificationLogRequest) -> WriteNotificationLogResponse:
        """Files written by a transaction: an INSERT event at once, which followers may see before the commit."""
        request = required(rqst, "rqst")
        self._notifications.written(TableName(in_catalog(None, request.db), request.table), [_written(request)])
        return WriteNotificationLogResponse()

    def add_write_notification_log_in_batch(
        self, call: Call, rqst: WriteNotificationLogBatchRequest
    ) -> WriteNotificationLogBatchResponse:
        """The table is the one of the batch, whatever its requests say."""
        request = required(rqst, "rqst")
        name = TableName(in_catalog(request.catalog, request.db), request.table)
        self._notifications.written(name, [_written(one) for one in request.requestList or ()])
        return WriteNotificationLogBatchResponse()

    def cm_recycle(self, call: Call, request: CmRecycleRequest) -> CmRecycleResponse:
        """Does nothing: a change manager, which keeps deleted files for replication, is off in Hive by default, too."""
        if not required(request, "request").dataPath:
            raise MetaException("dataPath must not be empty")
        return CmRecycleResponse()


def event_selection(request: NotificationEventRequest) -> EventSelection:
    return EventSelection(
        EventId(request.lastEvent or 0),
        db_name=_database(request.catName, request.dbName),
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
