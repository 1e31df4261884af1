"""Bytes in, messages out: every way a client may frame them, cut anywhere, and everything that is no Thrift."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hms_gateway.bridge.thrift.connection import ThriftConnection
from hms_gateway.bridge.thrift.errors import Unspeakable
from hms_gateway.rpc.structs import FieldSchema, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_gateway.rpc.wire import LimitExceeded, MessageType, ProtocolError
from hms_gateway.runtime.limits import Limits
from tests.bridge.thrift_bytes import BINARY, COMPACT, call, framed, old_call

TABLE = Table(
    tableName="orders",
    dbName="sales",
    sd=StorageDescriptor(
        cols=[FieldSchema("id", "bigint", "key"), FieldSchema("day", "date")],
        location="file:/warehouse/orders",
        compressed=True,
        numBuckets=-1,
        serdeInfo=SerDeInfo(None, "org.example.Serde", {"serialization.format": "1"}),
        skewedInfo=SkewedInfo(["id"], [["1"]], {("1",): "file:/x/id=1"}),
    ),
    parameters={"a": "b", "": ""},
    rewriteEnabled=False,
)
SHAPES = {
    "strict": (call("create_table", TABLE, seqid=7), call("create_table", TABLE, seqid=7)),
    "old": (old_call("create_table", TABLE, seqid=7), old_call("create_table", TABLE, seqid=7)),
    "compact": (call("create_table", TABLE, codec=COMPACT, seqid=7),) * 2,
    "framed": (call("create_table", TABLE, seqid=7), framed(call("create_table", TABLE, seqid=7))),
    "framed compact": (
        call("create_table", TABLE, codec=COMPACT, seqid=7),
        framed(call("create_table", TABLE, codec=COMPACT, seqid=7)),
    ),
}


def messages(connection, *pieces):
    found = []
    for piece in pieces:
        connection.receive_data(piece)
        while (message := connection.next_message()) is not None:
            found.append(message)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", [1, 2, 3, 50, 10_000])
def test_messages_come_out_as_they_went_in(shape, step):
    body, sent = SHAPES[shape]
    stream = sent * 3
    connection = ThriftConnection(Limits())
    found = messages(connection, *(stream[start : start + step] for start in range(0, len(stream), step)))
    assert [message.body for message in found] == [body] * 3
    assert {(message.name, message.type, message.seqid) for message in found} == {("create_table", MessageType.CALL, 7)}
    assert connection.is_between_messages


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_cut_anywhere_waits_for_its_rest(shape):
    body, sent = SHAPES[shape]
    for cut in range(len(sent)):
        connection = ThriftConnection(Limits())
        assert messages(connection, sent[:cut]) == []
        assert [message.body for message in messages(connection, sent[cut:])] == [body]


@pytest.mark.parametrize("codec", [BINARY, COMPACT], ids=lambda codec: codec.name)
def test_the_payload_begins_behind_the_header(codec):
    body = call("get_table", "sales", "orders", codec=codec, seqid=-5)
    (message,) = messages(ThriftConnection(Limits()), body)
    assert body[message.payload_begin :] == codec.read_message(body).payload
    assert (message.protocol, message.seqid) == (codec.name, -5)


def test_without_the_c_decoder_the_end_is_found_too(monkeypatch):
    monkeypatch.setattr("hms_gateway.bridge.thrift.struct_scanner.BinaryScanner.decode", None)
    monkeypatch.setattr("hms_gateway.bridge.thrift.struct_scanner.CompactScanner.decode", None)
    for body, sent in SHAPES.values():
        for cut in range(0, len(sent), 7):
            connection = ThriftConnection(Limits())
            assert [m.body for m in messages(connection, sent[:cut], sent[cut:] + sent)] == [body, body]


def test_oneway_is_told():
    (message,) = messages(ThriftConnection(Limits()), call("shutdown", oneway=True))
    assert message.is_oneway


@pytest.mark.parametrize(
    ("beginning", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"POST /x HTTP/1.1\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\x01\x00", b"This port speaks Thrift over TCP without TLS"),
        (b'[1,"get_all_databases",1,0,{}]', b"not a Thrift message"),
        (b"SSH-2.0-OpenSSH_9\r\n", b"not a Thrift message"),
        (b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", b"not a Thrift message"),
    ],
)
def test_what_is_no_thrift_is_told_so(beginning, words):
    with pytest.raises(Unspeakable) as refused:
        messages(ThriftConnection(Limits()), beginning)
    assert words in refused.value.last_words


def claims(prefix: bytes, length: bytes) -> bytes:
    return BINARY.envelope("get_table", MessageType.CALL, 3)[0] + prefix + length


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (claims(b"\x0b\x00\x01", b"\x7f\xff\xff\xff"), "string_bytes_max"),
        (claims(b"\x0f\x00\x01\x0c", b"\x7f\xff\xff\xff"), "container_elements_max"),
        (claims(b"\x0d\x00\x01\x0b\x0b", b"\x7f\xff\xff\xff"), "container_elements_max"),
        (COMPACT.envelope("get_table", MessageType.CALL, 3)[0] + b"\x18\xff\xff\xff\xff\x07", "string_bytes_max"),
        (b"\x7f\xff\xff\xff\x80\x01\x00\x01", "body_bytes_max"),
        (b"\x20\x00\x00\x00\x82\x21\x03\x04", "body_bytes_max"),
    ],
)
def test_two_gigabytes_that_are_only_claimed(sent, limit):
    with pytest.raises(LimitExceeded, match=limit) as refused:
        messages(ThriftConnection(Limits()), sent)
    if sent[:1] in (b"\x80", b"\x82"):
        assert (refused.value.name, refused.value.seqid) == ("get_table", 3)


def test_many_small_values_reach_the_limit_of_the_message_too():
    connection = ThriftConnection(replace(Limits(), body_bytes_max=1000))
    connection.receive_data(BINARY.envelope("get_table", MessageType.CALL, 3)[0])
    with pytest.raises(LimitExceeded, match="body_bytes_max"):
        messages(connection, *([b"\x0b\x00\x01\x00\x00\x00\x10" + b"x" * 16] * 100))


def test_a_struct_in_a_struct_in_a_struct():
    deep = BINARY.envelope("get_table", MessageType.CALL, 3)[0] + b"\x0c\x00\x01" * 200
    with pytest.raises(LimitExceeded, match="nesting_depth_max"):
        messages(ThriftConnection(Limits()), deep)
    with pytest.raises(LimitExceeded, match="nesting_depth_max"):
        messages(ThriftConnection(Limits()), deep + b"\x00" * 201)


def test_a_reply_is_no_call():
    with pytest.raises(ProtocolError, match="expected a call") as refused:
        messages(ThriftConnection(Limits()), BINARY.envelope("get_table", MessageType.REPLY, 3)[0] + b"\x00")
    assert (refused.value.name, refused.value.seqid) == ("get_table", 3)


@pytest.mark.parametrize(
    "head", [b"\x80\x02\x00\x01\x00\x00\x00\x01", b"\x80\x01\x00\x01\x7f\xff\xff\xff", b"\x82\x22"]
)
def test_headers_nobody_writes(head):
    with pytest.raises(ProtocolError):
        messages(ThriftConnection(Limits()), head)


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x80\x01\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x01", b"\x82\x21\x01\x01a"]),
)
def test_garbage_is_refused_or_waits(garbage, head):
    connection = ThriftConnection(Limits(), "allow")
    try:
        messages(connection, head + garbage)
    except (ProtocolError, Unspeakable):
        return
    assert connection.buffered_bytes <= len(head + garbage)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_a_damaged_message_is_the_same_whole_and_in_pieces(chance: random.Random):
    damaged = bytearray(SHAPES[chance.choice(sorted(SHAPES))][1])
    for _ in range(chance.randint(1, 4)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    size = chance.randint(1, 40)
    whole, is_refused_whole = outcome([bytes(damaged)])
    pieces, is_refused_in_pieces = outcome(bytes(damaged[at : at + size]) for at in range(0, len(damaged), size))
    assert whole == pieces
    # At the very end, pieces may still wait for a byte that cannot save them.
    assert is_refused_whole or not is_refused_in_pieces


def outcome(pieces):
    """The messages found, and whether the connection was refused then."""
    connection = ThriftConnection(Limits())
    found = []
    for piece in pieces:
        connection.receive_data(piece)
        try:
            while (message := connection.next_message()) is not None:
                found.append(message.body)
        except (ProtocolError, Unspeakable):
            return found, True
    return found, False


def test_replies_are_framed_like_the_calls():
    connection = ThriftConnection(Limits())
    messages(connection, framed(call("get_all_databases")))
    assert connection.wrap(b"reply") == b"\x00\x00\x00\x05reply"
    assert connection.wrap_head(5) + connection.wrap_chunk(b"re") + connection.wrap_chunk(b"ply") == framed(b"reply")
    bare = ThriftConnection(Limits())
    messages(bare, call("get_all_databases"))
    assert (bare.wrap(b"reply"), bare.wrap_head(5), bare.wrap_chunk(b"re")) == (b"reply", b"", b"re")
