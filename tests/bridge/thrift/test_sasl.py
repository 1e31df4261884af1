"""SASL PLAIN as Hive's client speaks it."""

import pytest

from hms_gateway.bridge.thrift.connection import ThriftConnection
from hms_gateway.bridge.thrift.messages import Unspeakable
from hms_gateway.runtime.limits import Limits
from tests.bridge.thrift_bytes import call, framed

START = b"\x01\x00\x00\x00\x05PLAIN"
RESPONSE = b"\x00alice\x00wonder:land"
COMPLETE = b"\x05\x00\x00\x00\x00"


def negotiation(status: int, payload: bytes) -> bytes:
    return bytes([status]) + framed(payload)


def feed(connection, data, step):
    found, sent = [], b""
    for start in range(0, len(data), step):
        connection.receive_data(data[start : start + step])
        while (message := connection.next_message()) is not None:
            found.append(message)
        sent += connection.data_to_send()
    return found, sent


@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize("status", [2, 5])
def test_user_and_password_arrive_and_calls_follow_in_frames(step, status):
    connection = ThriftConnection(Limits(), "allow")
    body = call("get_table", "sales", "orders")
    found, sent = feed(connection, START + negotiation(status, RESPONSE) + framed(body) * 2, step)
    assert [message.body for message in found] == [body, body]
    assert sent == COMPLETE
    assert (connection.credentials.user, connection.credentials.password) == ("alice", "wonder:land")
    assert connection.wrap(b"reply") == framed(b"reply")
    assert connection.wrap_head(5) == b""
    assert connection.wrap_chunk(b"re") == framed(b"re")


def test_a_message_may_be_cut_over_frames():
    connection = ThriftConnection(Limits(), "require")
    body = call("get_table", "sales", "orders")
    sent = START + negotiation(5, RESPONSE) + framed(body[:9]) + framed(body[9:])
    assert [message.body for message in feed(connection, sent, 1000)[0]] == [body]


@pytest.mark.parametrize(
    ("policy", "sent", "text"),
    [
        ("off", START, "not switched on"),
        ("allow", b"\x01\x00\x00\x00\x06GSSAPI", "only PLAIN"),
        ("allow", START + negotiation(2, b"alice"), "no user and password"),
        ("allow", START + negotiation(2, b"\x00\x00secret"), "no user and password"),
        ("allow", START + negotiation(4, RESPONSE), "no user and password"),
        ("allow", START + negotiation(2, b"\x00\xff\x00x"), "not UTF-8"),
        ("allow", START + b"\x02\x7f\xff\xff\xff", "SASL message of"),
        ("require", call("get_all_databases"), "requires SASL, "),
        ("require", framed(call("get_all_databases")), "requires SASL, "),
    ],
)
def test_other_ways_in_are_closed_with_a_reason(policy, sent, text):
    with pytest.raises(Unspeakable, match=text) as refused:
        feed(ThriftConnection(Limits(), policy), sent, 1000)
    if sent[0] == 1:
        assert refused.value.last_words[0] in (3, 4)
        assert text.encode() in refused.value.last_words


def test_the_password_is_not_shown():
    connection = ThriftConnection(Limits(), "allow")
    feed(connection, START + negotiation(2, RESPONSE), 1000)
    assert "wonder" not in repr(connection.credentials)
