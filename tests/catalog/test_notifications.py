"""Events that clients fire, and the expiry of the log (semantics §2.20)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.catalog.notifications import Insertion, Notifications, expire_events
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Event, EventId, NewPartition, StoredEvent
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    METHODS,
    Database,
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData_v4,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    Partition,
    ThriftException,
)
from hms_gateway.runtime.limits import Limits
from tests.support.catalog import NOW, Catalog, columns, new_table

CALL = Call("tester")
TABLE = TableName("Default", " T ")


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def insert(catalog: Catalog, name: TableName, *insertions: Insertion) -> list[int]:
    datas = [
        InsertEventRequestData_v4(one.replaces, list(one.files), partitionVal=list(one.partition_values))
        for one in insertions
    ]
    return fire(catalog, name, FireEventRequestData(insertDatas=datas))


def reload(catalog: Catalog, name: TableName, *partitions: list[str]) -> list[int]:
    return fire(catalog, name, FireEventRequestData(refreshEvent=True), batchPartitionValsForRefresh=list(partitions))


def fire(catalog: Catalog, name: TableName, data: FireEventRequestData, **more: Any) -> list[int]:
    request = FireEventRequest(True, data, name.db_name, name.tbl_name, catName="hive", **more)
    return catalog.notifications.fire_listener_event(CALL, request).eventIds or []


def expire(catalog: Catalog) -> int:
    return expire_events(catalog.store, catalog.clock, catalog.settings)


def messages(catalog: Catalog, after: int) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    found = catalog.store.read(lambda snapshot: snapshot.events_after(EventId(after)))
    return [
        (one.event.event_type, one.event.db_name, one.event.table_name, json.loads(one.event.message)) for one in found
    ]


@pytest.fixture
def partitioned(catalog: Catalog) -> int:
    """The newest event's id once there is a table with partition keys ds and hr."""
    catalog.tables.create(new_table(keys=columns("ds string", "hr int")))
    return catalog.store.version()


def test_an_insert_says_which_files_came(catalog: Catalog, partitioned: int) -> None:
    insertion = Insertion(["file:/a", "file:/b"], True)
    assert insert(catalog, TABLE, insertion) == [partitioned + 1]
    [(event_type, db_name, table_name, message)] = messages(catalog, partitioned)
    assert (event_type, db_name, table_name) == ("INSERT", "default", "t")
    assert list(message) == [
        "server", "servicePrincipal", "db", "table", "tableType", "tableObjJson", "timestamp", "replace", "files",
        "partKeyVals",
    ]  # fmt: skip
    assert (message["db"], message["table"], message["timestamp"]) == ("default", "t", NOW)
    assert message["files"] == ["file:/a", "file:/b"]
    assert (message["replace"], message["partKeyVals"]) == ("true", {})


def test_an_insert_into_partitions_names_them(catalog: Catalog, partitioned: int) -> None:
    table = catalog.store.read(TABLE.load)
    stored = Partition(["2024", "1"], "default", "t", sd=table.table.sd, createTime=NOW, parameters={})
    catalog.store.write(lambda tx: tx.insert_partitions(table, [NewPartition("ds=2024/hr=1", stored)]))
    insertions = [Insertion(partition_values=values) for values in (["2024", "1"], ["2025", "1"], ["2026"])]
    assert len(insert(catalog, TABLE, *insertions)) == 3
    known, unknown, partial = (message for *_, message in messages(catalog, partitioned))
    assert partial["partKeyVals"] == {"ds": "2026"}
    assert known["partKeyVals"] == {"ds": "2024", "hr": "1"}
    assert '"1":{"lst":["str",2,"2024","1"]}' in known["ptnObjJson"]
    assert unknown["partKeyVals"] == {"ds": "2025", "hr": "1"}
    assert "ptnObjJson" not in unknown


def test_what_cannot_be_inserted(catalog: Catalog, partitioned: int) -> None:
    for name, values, error in [
        (TableName("default", "Missing"), (), NoSuchObjectException("default.Missing table not found")),
        (TableName("a\0", "t"), (), NoSuchObjectException("a\0.t table not found")),
        (TableName(None, "t"), (), MetaException("database name must not be null")),
        (TableName("default", None), (), MetaException("table name must not be null")),
    ]:
        insertion = Insertion(partition_values=values)
        assert refusal(lambda name=name, insertion=insertion: insert(catalog, name, insertion)) == error
    good = Insertion(partition_values=["2024", "1"])
    for values in (["2024", "1", "2"], ["2024", None], [None]):
        bad = Insertion(partition_values=values)  # type: ignore[arg-type]
        error = refusal(lambda bad=bad: insert(catalog, TABLE, good, bad))
        assert isinstance(error, MetaException)
    assert catalog.store.version() == partitioned


def test_a_reload_is_for_the_table_or_for_partitions(catalog: Catalog, partitioned: int) -> None:
    reload(catalog, TABLE)
    reload(catalog, TABLE, ["2024", "1"], ["2024", "2"])
    found = messages(catalog, partitioned)
    assert [(event_type, db_name, table_name) for event_type, db_name, table_name, _ in found] == [
        ("RELOAD", "default", "t")
    ] * 3
    assert found[0][3]["refreshEvent"] == "true"


@pytest.mark.parametrize(
    ("bytes_max", "limit", "expected"),
    [(1200, None, 120), (40, None, 4), (39, None, 3), (1, None, 1), (1200, 7, 7), (1200, 50, 50), (1200, 100, 100)],
)
def test_a_reply_ends_before_it_is_too_long(catalog: Catalog, bytes_max: int, limit: int | None, expected: int) -> None:
    first = catalog.store.version()
    catalog.store.write(lambda tx: [tx.append_event(Event("INSERT", "a", "b", "0123456789")) for _ in range(120)])
    limits = Limits(event_bytes_per_reply_max=bytes_max)
    notifications = Notifications(catalog.store, catalog.clock, catalog.event_maker, limits)
    found = notifications.get_next_notification(CALL, NotificationEventRequest(first, limit)).events or []
    assert [one.eventId for one in found] == list(range(first + 1, first + 1 + expected))


@pytest.mark.parametrize(("bytes_max", "expected"), [(2_000, 10), (1, 1), (1_000_000, 120)])
def test_events_without_messages_are_bounded_too(catalog: Catalog, bytes_max: int, expected: int) -> None:
    first = catalog.store.version()
    catalog.store.write(lambda tx: [tx.append_event(Event("INSERT", "a", "b", "x" * 10_000)) for _ in range(120)])
    limits = Limits(event_bytes_per_reply_max=bytes_max)
    notifications = Notifications(catalog.store, catalog.clock, catalog.event_maker, limits)
    found = (
        notifications.get_next_notification(CALL, NotificationEventRequest(first, withoutMessages=True)).events or []
    )
    assert [(one.eventId, one.message) for one in found] == [(first + 1 + n, "") for n in range(expected)]


def test_events_expire_by_the_setting(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="a"))
    catalog.clock.advance(86_400)
    catalog.databases.create(Database(name="b"))
    newest = catalog.store.version()
    assert expire(catalog) == 0
    catalog.clock.advance(1)
    assert expire(catalog) == newest - 1
    catalog.clock.advance(1_000_000)
    assert expire(catalog) == 0
    assert [one.event_id for one in catalog.events()] == [newest]
    assert catalog.store.version() == newest


def test_more_than_one_unit_of_work_forgets_at_once(catalog: Catalog) -> None:
    event = catalog.events()[0].event
    catalog.store.write(lambda tx: [tx.append_event(event) for _ in range(2_500)])
    catalog.clock.advance(100_000)
    assert expire(catalog) == 2_500
    assert len(catalog.events()) == 1


class OwnFeed:
    """The store as another replica's cache sees it: it learns of changes only when asked."""

    def __init__(self, catalog: Catalog) -> None:
        self._store = catalog.store

    def data_version(self) -> None:
        return None

    def version_watch(self) -> None:
        return None

    def version(self) -> EventId:
        return self._store.version()

    def changes_since(self, event_id: EventId) -> list[StoredEvent]:
        return self._store.changes_since(event_id)


def test_a_cache_that_slept_through_the_expiry_forgets_everything(catalog: Catalog, partitioned: int) -> None:
    """The event about the table it has a reply about is gone when it asks; the one that stays is about another."""
    cache = ReplyCache(OwnFeed(catalog), Limits())
    key = ("tjson", "2.3", "get_table", b"default.t")
    cache.remember(key, METHODS["get_table"].arguments("default", "t"), b"old", cache.ticket())
    catalog.tables.drop(TABLE, False)
    catalog.clock.advance(100_000)
    catalog.tables.create(new_table("other"))
    assert expire(catalog) > 0

    async def looked_up() -> bytes | None:
        found = cache.lookup(key)
        assert found is not None
        assert not isinstance(found, bytes)
        return await found

    assert asyncio.run(looked_up()) is None
    assert cache.ticket() == catalog.store.version()
