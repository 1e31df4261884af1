"""The text of notification messages (semantics §2.20)."""

from hms_gateway.metastore.changes.events import EventMaker, event_message
from hms_gateway.rpc.structs import Database
from tests.support.catalog import new_table, to_tjson
from tests.support.manual_clock import ManualClock


def test_a_message_is_compact_and_keeps_its_order() -> None:
    text = event_message({"z": [], "a": {"k": "v"}, "n": 1, "b": False, "none": None})
    assert text == '{"server":"","servicePrincipal":"","z":[],"a":{"k":"v"},"n":1,"b":false,"none":null}'


def test_text_in_a_message_is_escaped_as_json() -> None:
    assert event_message({"k": 'a"\\\n\u0001é😀'}) == (
        '{"server":"","servicePrincipal":"","k":"a\\"\\\\\\n\\u0001é😀"}'
    )


def test_the_names_that_nobody_configures_come_first() -> None:
    events = EventMaker(ManualClock(5), to_tjson)
    event = events.create_database(Database(name="d"))
    assert (event.event_type, event.db_name, event.table_name) == ("CREATE_DATABASE", "d", None)
    assert event.message.startswith('{"server":"","servicePrincipal":"","db":"d","dbJson":"{')


def test_an_object_in_a_message_is_text() -> None:
    events = EventMaker(ManualClock(5), to_tjson)
    for event in (events.create_table(new_table()), events.drop_table(new_table())):
        assert '"tableObjJson":"{\\"1\\":{\\"str\\":\\"t\\"}' in event.message


def test_half_of_a_surrogate_pair_is_left_to_whoever_stores_the_message() -> None:
    assert event_message({"k": "\ud800"}) == '{"server":"","servicePrincipal":"","k":"\ud800"}'
