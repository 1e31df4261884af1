"""The notification log: what each change writes to it, reading it on, and events that clients fire."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    FireEventRequest,
    FireEventRequestData,
    Index,
    InsertEventRequestData,
    NotificationEventRequest,
)
from tests.comparison.ids import event
from tests.comparison.objects import SOME_KEYS, database, descriptor, external, partition, table, view
from tests.comparison.scripts.functions import function
from tests.comparison.servers import Step, call


def steps() -> Iterator[Step]:
    yield call("get_current_notificationEventId")
    yield call("get_next_notification", NotificationEventRequest(event(0)))
    for number, change in enumerate(_changes()):
        yield change
        yield call("get_next_notification", NotificationEventRequest(event(number)))
    for failing in (call("create_database", database("told")), call("drop_table", "told", "nosuch", True)):
        yield failing
        yield call("get_current_notificationEventId")
    yield from _fired()
    yield from _read_on()
    yield from _indexed()


def _changes() -> Iterator[Step]:
    here = "{warehouse}/told.db/t"
    yield call("create_database", database("told", description="what was told"))
    yield call("create_table", table("told", "t", SOME_KEYS))
    yield call("create_table", external("told", "ext", location="{elsewhere}/ext"))
    yield call("create_table", view("told", "seen"))
    yield call("alter_table", "told", "t", table("told", "t", SOME_KEYS, parameters={"a": "b"}, location=here))
    yield call("add_partition", partition("told", "t", ["a", "1"], createTime=5))
    yield call("add_partitions", [partition("told", "t", [day, "2"]) for day in "bc"])
    yield call("append_partition", "told", "t", ["d", "3"])
    changed = partition("told", "t", ["a", "1"], parameters={"c": "d"}, location=f"{here}/ds=a/hr=1")
    yield call("alter_partition", "told", "t", changed)
    yield call("rename_partition", "told", "t", ["b", "2"], partition("told", "t", ["e", "2"]))
    yield call("drop_partition", "told", "t", ["a", "1"], True)
    yield call("create_function", function("told_function", dbName="told"))
    yield call("drop_function", "told", "told_function")
    yield call("alter_table", "told", "ext", external("told", "moved", location="{elsewhere}/ext"))
    yield call("drop_table", "told", "moved", True)


def _fired() -> Iterator[Step]:
    inserted = FireEventRequestData(InsertEventRequestData(["{elsewhere}/a", "b"]))
    whole = FireEventRequestData(InsertEventRequestData(["a"], ["checksum"]))
    for request in (
        FireEventRequest(True, inserted, "told", "seen"),
        FireEventRequest(True, whole, "TOLD", "T", ["d", "3"]),
        FireEventRequest(False, inserted, "told", "seen"),
        FireEventRequest(True, inserted, "told", "nosuch"),
        FireEventRequest(True, inserted, "nosuch", "t"),
        FireEventRequest(True, inserted),
        FireEventRequest(True, inserted, "told", "t", ["d"]),
        FireEventRequest(True, inserted, "told", "t", ["no", "3"]),
        FireEventRequest(True, FireEventRequestData(), "told", "t"),
        FireEventRequest(None, inserted, "told", "t"),
        None,
    ):
        yield call("fire_listener_event", request)
    yield call("get_next_notification", NotificationEventRequest(event(15)))


def _read_on() -> Iterator[Step]:
    for first, most in ((0, 1), (3, 2), (3, 0), (3, -1), (1_000, None), (2, 100)):
        yield call("get_next_notification", NotificationEventRequest(event(first), most))
    yield call("get_next_notification", NotificationEventRequest())
    yield call("get_next_notification", None)
    yield call("drop_database", "told", True, True)
    yield call("get_next_notification", NotificationEventRequest(event(16)))
    yield call("get_current_notificationEventId")


def _indexed() -> Iterator[Step]:
    """Nothing may follow the end of the index: from there on the events have other numbers."""
    yield call("create_database", database("told_of_indexes"))
    yield call("create_table", table("told_of_indexes", "t"))
    newest = event(26)
    for method, arguments in (
        ("add_index", (index({"a": "b"}), table("told_of_indexes", "idx_table", tableType="INDEX_TABLE"))),
        ("alter_index", ("told_of_indexes", "t", "idx", index({"c": "d"}))),
        ("drop_index_by_name", ("told_of_indexes", "t", "idx", True)),
    ):
        yield call(method, *arguments)
        yield call("get_next_notification", NotificationEventRequest(newest))
    yield call("get_current_notificationEventId")


def index(parameters: dict[str, str]) -> Index:
    return Index("idx", "a.Handler", "told_of_indexes", "t", 0, 0, "idx_table", descriptor(), parameters, True)
