import asyncio
import threading

import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.cache.scopes import is_cacheable, scopes_read
from hms_gateway.metastore.ports.store import Event, EventId, StoredEvent
from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.rpc.structs import METHODS, GetTableRequest
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from tests.support.patience import PATIENCE_SECONDS


class Log:
    """A feed of events that were appended by hand."""

    def __init__(self, *, asks_the_database: bool = False) -> None:
        self.events: list[StoredEvent] = []
        self.reads = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._asks_the_database = asks_the_database
        self._forgotten = 0

    def append(self, event_type: str, db_name: str, table_name: str | None = None, renamed_from=None) -> None:
        event = Event(event_type, db_name, table_name, "", renamed_from)
        self.events.append(StoredEvent(EventId(len(self.events) + 1), 0, event))

    def forget(self, count: int) -> None:
        """Let the oldest events expire."""
        self._forgotten = count

    def data_version(self) -> int | None:
        return None if self._asks_the_database else len(self.events)

    def version_watch(self) -> None:
        return None

    def version(self) -> int:
        return len(self.events)

    def changes_since(self, event_id: int) -> list[StoredEvent]:
        self.reads += 1
        found = self.events[max(event_id, self._forgotten) :]
        self.may_answer.wait(PATIENCE_SECONDS)
        return found


def key(method: str, *values: object) -> tuple[str, str, str, bytes]:
    return ("tjson", "2.3", method, repr(values).encode())


def remember(cache: ReplyCache, method: str, *values: object, payload: bytes = b"reply", ticket: int | None = None):
    arguments = METHODS[method].arguments(*values)
    cache.remember(key(method, *values), arguments, payload, cache.ticket() if ticket is None else ticket)


def test_a_remembered_reply_is_found_again():
    cache = ReplyCache(Log(), Limits())
    assert cache.lookup(key("get_table", "sales", "orders")) is None
    remember(cache, "get_table", "sales", "orders")
    assert cache.lookup(key("get_table", "sales", "orders")) == b"reply"
    assert cache.lookup(key("get_table", "sales", "returns")) is None


@pytest.mark.parametrize(
    ("method", "values", "event", "is_dropped"),
    [
        ("get_table", ("sales", "orders"), ("ALTER_TABLE", "sales", "orders"), True),
        ("get_table", ("@hive#Sales", " ORDERS "), ("ALTER_TABLE", "SALES", "orders"), True),
        ("get_table", ("sales", "orders"), ("ALTER_TABLE", "sales", "returns"), False),
        ("get_table", ("sales", "orders"), ("ALTER_TABLE", "sales", "sold", ("sales", "orders")), True),
        ("get_table", ("sales", "orders"), ("CREATE_DATABASE", "hr"), True),
        ("get_table_req", (GetTableRequest("sales", "orders"),), ("DROP_TABLE", "sales", "orders"), True),
        ("get_partitions", ("sales", "orders", -1), ("ADD_PARTITION", "sales", "orders"), True),
        ("get_partitions", ("sales", "orders", -1), ("ADD_PARTITION", "sales", "returns"), False),
        ("get_all_tables", ("sales",), ("CREATE_TABLE", "sales", "orders"), True),
        ("get_all_tables", ("sales",), ("ADD_PARTITION", "sales", "orders"), False),
        ("get_all_tables", ("hr",), ("ALTER_TABLE", "sales", "orders", ("hr", "orders")), True),
        ("get_table_objects_by_name", ("sales", ["a", "b"]), ("ALTER_TABLE", "sales", "b"), True),
        ("get_all_databases", (), ("CREATE_TABLE", "sales", "orders"), False),
        ("get_all_databases", (), ("DROP_DATABASE", "sales"), True),
        ("get_function", ("sales", "f"), ("CREATE_FUNCTION", "sales"), True),
        ("get_function", ("@hive#Sales", "f"), ("DROP_FUNCTION", "sales"), True),
        ("get_function", ("sales", "f"), ("DROP_FUNCTION", "hr"), False),
        ("get_functions", ("sales", "*"), ("ALTER_FUNCTION", "hr", None, ("sales", "")), True),
        ("get_functions", ("sales", "*"), ("CREATE_TABLE", "sales", "orders"), False),
        ("get_all_functions", (), ("ALTER_FUNCTION", "hr"), True),
        ("get_table", ("sales", "orders"), ("CREATE_FUNCTION", "sales"), False),
        ("get_table", ("sales", "orders"), ("RELOAD", "sales", "orders"), True),
        ("get_table", ("sales", "orders"), ("CREATE_INDEX", "sales"), False),
        ("get_all_databases", (), ("SOMETHING_NEW", "sales", "orders"), True),
    ],
)
def test_an_event_drops_what_was_read_from_the_thing_it_changed(method, values, event, is_dropped):
    log = Log()
    cache = ReplyCache(log, Limits())
    remember(cache, method, *values)
    log.append(*event)
    assert cache.lookup(key(method, *values)) == (None if is_dropped else b"reply")


@pytest.mark.parametrize(("forgotten", "is_dropped"), [(0, False), (1, False), (2, True), (3, True)])
def test_events_that_expired_unseen_may_have_been_about_anything(forgotten, is_dropped):
    log = Log()
    cache = ReplyCache(log, Limits())
    log.append("CREATE_TABLE", "hr", "people")
    assert cache.lookup(key("get_table", "hr", "people")) is None
    remember(cache, "get_table", "sales", "orders")
    remember(cache, "get_table", "sales", "returns")
    assert cache.lookup(key("get_table", "sales", "orders")) == b"reply"  # the cache has seen the event now
    before = cache.ticket()
    for _ in range(3):
        log.append("ALTER_TABLE", "hr", "people")
    log.forget(forgotten)
    assert cache.lookup(key("get_table", "sales", "orders")) == (None if is_dropped else b"reply")
    remember(cache, "get_table", "sales", "lines", ticket=before)
    assert cache.lookup(key("get_table", "sales", "lines")) == (None if is_dropped else b"reply")
    assert cache.ticket() == 4


def test_a_reply_read_before_a_change_is_not_remembered_after_it():
    log = Log()
    cache = ReplyCache(log, Limits())
    remember(cache, "get_table", "sales", "returns")
    before = cache.ticket()
    log.append("ALTER_TABLE", "sales", "orders")
    assert cache.lookup(key("get_table", "sales", "returns")) == b"reply"  # the cache has seen the event now
    remember(cache, "get_table", "sales", "orders", ticket=before)
    assert cache.lookup(key("get_table", "sales", "orders")) is None
    remember(cache, "get_table", "sales", "orders")
    assert cache.lookup(key("get_table", "sales", "orders")) == b"reply"


def test_memory_is_bounded_and_the_oldest_unused_reply_goes_first():
    cache = ReplyCache(Log(), Limits(cache_bytes_max=10_000, cached_reply_bytes_max=4_000))
    remember(cache, "get_table", "d", "huge", payload=b"x" * 4_001)
    assert len(cache) == 0
    for name in ("a", "b"):
        remember(cache, "get_table", "d", name, payload=b"x" * 4_000)
    assert cache.lookup(key("get_table", "d", "a")) is not None
    remember(cache, "get_table", "d", "c", payload=b"x" * 4_000)
    assert cache.lookup(key("get_table", "d", "b")) is None
    assert cache.lookup(key("get_table", "d", "a")) is not None
    assert cache.size_bytes <= 10_000


def test_methods_that_change_things_are_never_remembered():
    assert not any(is_cacheable(name) for name in METHODS if changes_something(name))
    assert scopes_read("get_table", METHODS["get_table"].arguments("@broken", "t")) == ()


def test_waiting_lookups_share_one_question_to_the_database():
    log = Log(asks_the_database=True)
    cache = ReplyCache(log, Limits())
    remember(cache, "get_table", "sales", "orders")

    async def many() -> list[bytes | None]:
        log.may_answer.clear()
        first = asyncio.ensure_future(cache.lookup(key("get_table", "sales", "orders")))
        while log.reads == 0:
            await asyncio.sleep(0)
        later = [asyncio.ensure_future(cache.lookup(key("get_table", "sales", "orders"))) for _ in range(50)]
        await asyncio.sleep(0)
        log.may_answer.set()
        return [await first, *[await each for each in later]]

    assert asyncio.run(many()) == [b"reply"] * 51
    assert log.reads == 2


def test_a_lookup_sees_a_change_that_was_committed_while_an_older_question_was_running():
    log = Log(asks_the_database=True)
    cache = ReplyCache(log, Limits())
    remember(cache, "get_table", "sales", "orders")

    async def race() -> tuple[bytes | None, bytes | None]:
        log.may_answer.clear()
        early = asyncio.ensure_future(cache.lookup(key("get_table", "sales", "orders")))
        while log.reads == 0:
            await asyncio.sleep(0)
        log.append("DROP_TABLE", "sales", "orders")
        late = asyncio.ensure_future(cache.lookup(key("get_table", "sales", "orders")))
        await asyncio.sleep(0)
        log.may_answer.set()
        return await early, await late

    early, late = asyncio.run(race())
    assert early == b"reply"
    assert late is None


def test_a_tag_of_any_length_is_judged():
    """Python refuses to read numbers of thousands of digits."""
    cache = ReplyCache(Log(), Limits())
    codec = make_codecs(Limits()).tjson
    arguments = METHODS["get_table"].arguments("sales", "orders")
    asked = ("tjson", "2.3", "get_table", codec.encode(arguments))
    tag = cache.version_tag("get_table", arguments, cache.ticket())

    def current(tags: bytes):
        return asyncio.run(cache.current(asked, codec, tags))

    assert current(tag).tag == tag
    assert current(tag[:-1] + b"0" * 5_000 + b'"') is None
    assert current(b"%b, %b" % (tag[:-1] + b"9" * 5_000 + b'"', tag)).tag == tag
