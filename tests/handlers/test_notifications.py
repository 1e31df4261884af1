"""The Thrift methods on the notification log."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hms_gateway.catalog.arguments import with_fields
from hms_gateway.catalog.notifications import Notifications
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    CmRecycleRequest,
    Database,
    FireEventRequest,
    FireEventRequest_v4,
    FireEventRequestData,
    FireEventRequestData_v4,
    FireEventResponse,
    InsertEventRequestData,
    InsertEventRequestData_v4,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    Struct,
    ThriftException,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from hms_gateway.rpc.wire import Codec, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.support.catalog import NOW, Catalog, columns, new_table

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)


@pytest.fixture
def notifications(catalog: Catalog) -> Notifications:
    """A log of a database, and of a table with one partition key in each of two."""
    catalog.databases.create(Database(name="sales"))
    for db_name in ("default", "sales"):
        catalog.tables.create(new_table("t", db_name, keys=columns("ds string")))
    return catalog.notifications


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def kinds(notifications: Notifications, **conditions: Any) -> list[tuple[int, str]]:
    request = NotificationEventRequest(**{"lastEvent": 0, **conditions})
    found = notifications.get_next_notification(CALL, request).events
    return [(event.eventId, event.eventType) for event in found]


EVERYTHING = [(1, "CREATE_DATABASE"), (2, "CREATE_DATABASE"), (3, "CREATE_TABLE"), (4, "CREATE_TABLE")]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, EVERYTHING),
        ({"maxEvents": 2}, EVERYTHING[:2]),
        ({"maxEvents": 0}, EVERYTHING),
        ({"maxEvents": -1}, EVERYTHING),
        ({"lastEvent": 3}, EVERYTHING[3:]),
        ({"lastEvent": 4}, []),
        ({"lastEvent": 2**63 - 1}, []),
        ({"lastEvent": -(2**63)}, EVERYTHING),
        ({"eventTypeSkipList": ["CREATE_TABLE"]}, EVERYTHING[:2]),
        ({"eventTypeSkipList": []}, EVERYTHING),
        ({"eventTypeList": ["CREATE_TABLE", "INSERT"]}, EVERYTHING[2:]),
        ({"eventTypeList": []}, EVERYTHING),
        ({"dbName": " Sales "}, [EVERYTHING[1], EVERYTHING[3]]),
        ({"dbName": "sales", "catName": "HIVE"}, [EVERYTHING[1], EVERYTHING[3]]),
        ({"dbName": "@hive#sales"}, [EVERYTHING[1], EVERYTHING[3]]),
        ({"dbName": "sales", "catName": "spark"}, []),
        ({"dbName": ""}, []),
        ({"dbName": "\0a"}, []),
        ({"tableNames": ["T", "missing"]}, EVERYTHING[2:]),
        ({"tableNames": []}, EVERYTHING),
    ],
)
def test_which_events_come(
    notifications: Notifications, conditions: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    assert kinds(notifications, **conditions) == expected


def test_an_event_as_it_is_sent(notifications: Notifications) -> None:
    event = notifications.get_next_notification(CALL, NotificationEventRequest(3)).events[0]
    assert (event.eventTime, event.dbName, event.tableName, event.messageFormat) == (NOW, "sales", "t", "json-0.2")
    assert event.catName is None
    assert json.loads(event.message)["table"] == "t"
    event = notifications.get_next_notification(NEWER, NotificationEventRequest(3)).events[0]
    assert event.catName == "hive"


def test_events_come_without_messages_when_asked(notifications: Notifications) -> None:
    whole, headers = (
        notifications.get_next_notification(CALL, NotificationEventRequest(0, withoutMessages=wish)).events
        for wish in (False, True)
    )
    assert all(event.message for event in whole)
    assert headers == [with_fields(event, message="") for event in whole]


def test_the_newest_id(notifications: Notifications) -> None:
    assert notifications.get_current_notificationEventId(CALL).eventId == 4


@pytest.mark.parametrize(
    ("request_", "count"),
    [
        (NotificationEventsCountRequest(0, "sales"), 2),
        (NotificationEventsCountRequest(2, "SALES", "hive"), 1),
        (NotificationEventsCountRequest(0, "sales", "spark"), 0),
        (NotificationEventsCountRequest(0, "missing"), 0),
        (NotificationEventsCountRequest(0, "sales", toEventId=2), 1),
        (NotificationEventsCountRequest(0, "sales", toEventId=0), 0),
        (NotificationEventsCountRequest(0, "sales", limit=1), 1),
        (NotificationEventsCountRequest(0, "sales", limit=0), 2),
        (NotificationEventsCountRequest(0, "sales", tableNames=["t"]), 1),
    ],
)
def test_counts(notifications: Notifications, request_: NotificationEventsCountRequest, count: int) -> None:
    assert notifications.get_notification_events_count(CALL, request_).eventsCount == count


def decoded(codec: Codec, method: str, struct: Struct) -> Struct:
    """What a caller's struct looks like to the method of 2.3, whatever shape the caller gave it."""
    payload = codec.encode(struct)
    assert isinstance(payload, bytes)
    return codec.decode(METHODS[method].arguments, payload)


def newest(notifications: Notifications) -> tuple[str, dict[str, Any]]:
    last = notifications.get_current_notificationEventId(CALL).eventId - 1
    [event] = notifications.get_next_notification(CALL, NotificationEventRequest(last)).events
    return event.eventType, json.loads(event.message)


def test_an_insert_of_2_3(notifications: Notifications) -> None:
    data = FireEventRequestData(InsertEventRequestData(["file:/a"], ["1"]))
    request = FireEventRequest(True, data, "Sales", "T", ["2024"])
    assert notifications.fire_listener_event(CALL, request) == FireEventResponse()
    event_type, message = newest(notifications)
    assert (event_type, message["files"], message["replace"]) == ("INSERT", ["file:/a"], "false")
    assert message["partKeyVals"] == {"ds": "2024"}


def test_an_insert_of_4(notifications: Notifications) -> None:
    data = FireEventRequestData_v4(InsertEventRequestData_v4(True, ["file:/a"], ["1"]))
    request: Any = FireEventRequest_v4(True, data, "sales", "t", catName="hive")
    assert notifications.fire_listener_event(NEWER, request) == FireEventResponse([5])
    _, message = newest(notifications)
    assert (message["files"], message["replace"]) == (["file:/a"], "true")


@pytest.mark.parametrize(("replace", "told"), [(None, "true"), (False, "false")])
def test_an_insert_of_4_replaces_unless_it_says_no(
    notifications: Notifications, replace: bool | None, told: str
) -> None:
    data = FireEventRequestData_v4(InsertEventRequestData_v4(replace, ["file:/a"]))
    notifications.fire_listener_event(NEWER, FireEventRequest_v4(True, data, "sales", "t"))
    assert newest(notifications)[1]["replace"] == told


def test_inserts_and_reloads_of_several_partitions(notifications: Notifications) -> None:
    parts = [InsertEventRequestData_v4(False, [f"file:/{value}"], partitionVal=[value]) for value in ("1", "2")]
    request: Any = FireEventRequest_v4(True, FireEventRequestData_v4(insertDatas=parts), "sales", "t")
    assert notifications.fire_listener_event(NEWER, request) == FireEventResponse([5, 6])
    reload: Any = FireEventRequest_v4(True, FireEventRequestData_v4(refreshEvent=True), "sales", "t")
    assert notifications.fire_listener_event(NEWER, reload) == FireEventResponse([7])
    reload.batchPartitionValsForRefresh = [["1"], ["2"]]
    assert notifications.fire_listener_event(NEWER, reload) == FireEventResponse([8, 9])
    assert newest(notifications)[0] == "RELOAD"


@pytest.mark.parametrize("codec_name", ["tjson", "binary", "compact"])
def test_a_newer_shape_where_the_older_is_expected(notifications: Notifications, codec_name: str) -> None:
    codec = getattr(make_codecs(Limits()), codec_name)
    data = FireEventRequestData_v4(InsertEventRequestData_v4(True, ["file:/a"], ["1"]))
    sent = FireEventRequest_v4(True, data, "sales", "t")
    newer = methods_of(Dialect.HIVE_4)["fire_listener_event"].arguments(sent)
    received: Any = decoded(codec, "fire_listener_event", newer)
    notifications.fire_listener_event(CALL, received.rqst)
    assert newest(notifications)[1]["files"] == ["file:/a"]


def test_what_cannot_be_fired(notifications: Notifications) -> None:
    insert = FireEventRequestData(InsertEventRequestData(["a"]))
    for request, error in [
        (FireEventRequest(True, FireEventRequestData(), "sales", "t"), MetaException),
        (FireEventRequest(True, None, "sales", "t"), MetaException),
        (FireEventRequest(True, insert, None, "t"), MetaException),
        (FireEventRequest(True, insert, "sales", None), MetaException),
        (FireEventRequest(True, insert, "sales", "missing"), NoSuchObjectException),
        (FireEventRequest(True, insert, "sales", "t", ["1", "2"]), MetaException),
        (FireEventRequest(True, insert, "sales", "t", catName="spark"), NoSuchObjectException),
        (None, MetaException),
    ]:
        assert type(refusal(lambda request=request: notifications.fire_listener_event(CALL, request))) is error
    assert notifications.get_current_notificationEventId(CALL).eventId == 4


def test_writes_of_transactions_are_inserts(notifications: Notifications) -> None:
    request = WriteNotificationLogRequest(1, 2, "sales", "t", InsertEventRequestData_v4(True, ["file:/a"]), ["2024"])
    notifications.add_write_notification_log(NEWER, request)
    event_type, message = newest(notifications)
    assert (event_type, message["files"], message["partKeyVals"]) == ("INSERT", ["file:/a"], {"ds": "2024"})
    batch = WriteNotificationLogBatchRequest("hive", "sales", "t", [request, request])
    notifications.add_write_notification_log_in_batch(NEWER, batch)
    assert notifications.get_current_notificationEventId(CALL).eventId == 7
    batch = WriteNotificationLogBatchRequest("spark", "sales", "t", [request])
    refused = refusal(lambda: notifications.add_write_notification_log_in_batch(NEWER, batch))
    assert isinstance(refused, NoSuchObjectException)


def test_recycling_does_nothing(notifications: Notifications) -> None:
    notifications.cm_recycle(CALL, CmRecycleRequest("file:/a", True))
    assert isinstance(refusal(lambda: notifications.cm_recycle(CALL, CmRecycleRequest("", True))), MetaException)
