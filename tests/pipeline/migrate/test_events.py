"""What the notification log says has to be read again."""

import base64
import gzip
import json

import msgspec
import pytest

from hms_gateway.client.in_catalog import call_in_catalog
from hms_gateway.pipeline.events import Changes, partition_names
from hms_gateway.rpc.structs import METHODS, NotificationEvent, NotificationEventRequest, NotificationEventResponse


def event(kind, table="t", database="d", **message):
    return NotificationEvent(eventType=kind, dbName=database, tableName=table, message=json.dumps(message))


def changes(*events):
    found = Changes()
    found.note(events)
    return found


def test_tables_are_touched_as_a_whole():
    found = changes(event("CREATE_TABLE"), event("DROP_TABLE", "U"), event("ADD_PRIMARYKEY", "v"))
    assert found.tables == {("d", "t"): None, ("d", "u"): None, ("d", "v"): None}


def test_a_rename_touches_both_names():
    before, after = (json.dumps({"1": {"str": name}, "2": {"str": "d"}}) for name in ("Old", "new"))
    renamed = event("ALTER_TABLE", "new", tableObjBeforeJson=before, tableObjAfterJson=after)
    assert set(changes(renamed).tables) == {("d", "new"), ("d", "old")}


def test_events_of_other_catalogs_touch_nothing():
    told = [
        msgspec.structs.replace(event("CREATE_TABLE", "spark"), catName="spark"),
        event("CREATE_TABLE", "spark", "@spark#d"),
        event("DROP_CATALOG", None, "@spark#"),
        msgspec.structs.replace(event("CREATE_TABLE", "hive"), catName="hive"),
        event("CREATE_TABLE", "hive"),
        event("CREATE_DATABASE", None, "@spark#e"),
    ]
    asked = METHODS["get_next_notification"].arguments(NotificationEventRequest(0, 10))
    for catalog, databases in (("hive", set()), ("spark", {"e"}), ("lake", set())):
        answer = NotificationEventResponse([msgspec.structs.replace(one) for one in told])
        if catalog != "hive":
            call_in_catalog(lambda name, rqst, answer=answer: answer, catalog, "get_next_notification", asked)
        found = changes(*answer.events)
        assert (set(found.tables), found.databases) == ({("d", catalog)} - {("d", "lake")}, databases)


def test_partitions_are_touched_by_name():
    found = changes(
        event("ADD_PARTITION", partitions=[{"ds": "1", "k": "a/b"}, {"ds": "2", "k": "c"}]),
        event("DROP_PARTITION", partitions=[{"ds": "3", "k": "c"}]),
        event("ALTER_PARTITION", keyValues={"ds": "4", "k": "d"}),
        event("INSERT", partKeyVals={"ds": "5", "k": "e"}),
        event("UPDATE_PARTITION_COLUMN_STAT", partName="ds=6/k=f"),
    )
    assert found.tables == {("d", "t"): {"ds=1/k=a%2Fb", "ds=2/k=c", "ds=3/k=c", "ds=4/k=d", "ds=5/k=e", "ds=6/k=f"}}


@pytest.mark.parametrize("message", [{}, {"partitions": []}, {"partitions": ["x"]}, {"partitions": [{}]}])
def test_a_message_that_names_none_touches_the_table(message):
    assert changes(event("ADD_PARTITION", **message)).tables == {("d", "t"): None}


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "[" * 100_000])
def test_what_cannot_be_read_touches_the_table(text):
    unreadable = NotificationEvent(eventType="ALTER_PARTITION", dbName="d", tableName="t", message=text)
    assert changes(unreadable).tables == {("d", "t"): None}


def test_the_table_stays_touched_as_a_whole():
    found = changes(event("ALTER_TABLE"), event("ADD_PARTITION", partitions=[{"ds": "1"}]))
    assert found.tables == {("d", "t"): None}


def test_a_renamed_partition_has_two_names():
    objects = {f"partitionObj{when}Json": json.dumps({"1": {"lst": ["str", 1, when]}}) for when in ("Before", "After")}
    renamed = event("ALTER_PARTITION", keyValues={"ds": "1"}, **objects)
    assert partition_names(renamed) == ["ds=Before", "ds=After"]
    assert partition_names(event("ALTER_PARTITION", **objects)) is None
    same = dict.fromkeys(objects, json.dumps({"1": {"lst": ["str", 1, "x"]}}))
    assert partition_names(event("ALTER_PARTITION", keyValues={"ds": "x"}, **same)) == ["ds=x"]


def test_messages_of_hive_4_are_compressed():
    packed = base64.b64encode(gzip.compress(json.dumps({"partitions": [{"ds": "1"}]}).encode())).decode()
    assert partition_names(NotificationEvent(eventType="ADD_PARTITION", message=packed)) == ["ds=1"]


def test_everything_without_a_table_is_of_its_database():
    found = changes(event("CREATE_DATABASE", None), event("DROP_FUNCTION", None, "e"), event("OPEN_TXN", None, None))
    assert (found.databases, bool(found), bool(changes())) == ({"d", "e"}, True, False)
