"""Calls nobody should send: answered clearly and in bounded time, whatever is wrong with them.

Nothing of it may change the catalog, reach the client as a traceback, or keep the server from answering the next call;
the `strict` fixture checks that afterwards.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from tests.interop.raw import Answer, assert_readable, connected, post, read_answer, request_head
from tests.support.server import GatewayServer

UNKNOWN_METHOD, PROTOCOL_ERROR = 1, 7
TEST_TABLE = '"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"}'


def assert_exception(answer: Answer, kind: int, name: str, seqid: int, status: int = 200) -> str:
    """A TApplicationException of this kind with the call's name and seqid; its text."""
    assert_readable(answer)
    assert answer.status == status, answer
    message = answer.message
    assert message[:4] == [1, name, 3, seqid], answer.body
    assert message[4]["2"]["i32"] == kind, answer.body
    text: str = message[4]["1"]["str"]
    assert 0 < len(text) < 2_000
    return text


def assert_declared_exception(answer: Answer) -> str:
    """A reply that carries one of the method's own exceptions; its text."""
    assert_readable(answer)
    assert answer.status == 200, answer
    assert answer.message[2] == 2, answer.body
    ((field, value),) = answer.message[4].items()
    assert field != "0", answer.body
    text: str = value["rec"].get("1", {}).get("str", "")
    return text


# ---- not a message

NO_MESSAGES = {
    "empty": b"",
    "text": b"hello",
    "object": b"{}",
    "null": b"null",
    "number": b"1",
    "zero bytes": bytes(100),
    "ones": b"\xff" * 100,
    "page": b"<!DOCTYPE html><html></html>",
    "another HTTP request": b"GET / HTTP/1.1\r\n\r\n",
    "framed Thrift": b"\x00\x00\x00\x20\x80\x01\x00\x01\x00\x00\x00\x11get_all_databases\x00\x00\x00\x01\x00",
    "empty array": b"[]",
    "array of something": b'["get_all_databases"]',
    "open bracket": b"[",
    "brackets": b"[" * 100_000,
    "nested arrays": b"[" * 50_000 + b"]" * 50_000,
    "JSON-RPC": b'{"jsonrpc":"2.0","method":"get_all_databases","id":1}',
    "name is a number": b"[1,2,3,4,{}]",
}


@pytest.mark.parametrize("body", NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_body_that_is_no_message(strict: GatewayServer, body: bytes) -> None:
    answer = post(strict, body)
    assert_readable(answer)
    assert answer.status == 400, answer
    assert 0 < len(answer.body) < 2_000


@pytest.mark.parametrize("body", [NO_MESSAGES["text"], NO_MESSAGES["empty array"]])
def test_body_that_is_no_message_on_the_other_path(strict: GatewayServer, body: bytes) -> None:
    assert post(strict, body, "/metastore").status == 400


# ---- messages that say nonsense

BROKEN_MESSAGES = {
    "wrong version": b'[2,"get_all_databases",1,5,{}]',
    "version zero": b'[0,"get_all_databases",1,5,{}]',
    "payload is an array": b'[1,"get_all_databases",1,5,[]]',
    "payload is text": b'[1,"get_all_databases",1,5,"x"]',
    "something behind": b'[1,"get_all_databases",1,5,{}]{}',
    "one element more": b'[1,"get_all_databases",1,5,{},{}]',
    "a reply": b'[1,"get_all_databases",2,5,{}]',
    "message type 9": b'[1,"get_all_databases",9,5,{}]',
    "unknown type": b'[1,"get_database",1,5,{"1":{"uuuu":"a"}}]',
    "field id is a word": b'[1,"get_database",1,5,{"name":{"str":"a"}}]',
    "string is a number": b'[1,"get_database",1,5,{"1":{"str":17}}]',
    "string is an object": b'[1,"get_database",1,5,{"1":{"str":{}}}]',
    "lone high surrogate": rb'[1,"get_database",1,5,{"1":{"str":"a\ud800"}}]',
    "lone low surrogate": rb'[1,"get_database",1,5,{"1":{"str":"\udc00b"}}]',
    "invalid UTF-8": b'[1,"get_database",1,5,{"1":{"str":"\xff\xfe"}}]',
    "overlong UTF-8": b'[1,"get_database",1,5,{"1":{"str":"\xc0\xaf"}}]',
    "unknown escape": rb'[1,"get_database",1,5,{"1":{"str":"\q"}}]',
    "i16 too large": b'[1,"get_partition_names",1,5,{"1":{"str":"d"},"2":{"str":"t"},"3":{"i16":32768}}]',
    "i16 is NaN": b'[1,"get_partition_names",1,5,{"1":{"str":"d"},"2":{"str":"t"},"3":{"i16":NaN}}]',
    "i16 is 1.5": b'[1,"get_partition_names",1,5,{"1":{"str":"d"},"2":{"str":"t"},"3":{"i16":1.5}}]',
    "i16 is 1e999": b'[1,"get_partition_names",1,5,{"1":{"str":"d"},"2":{"str":"t"},"3":{"i16":1e999}}]',
    "i64 is 2^63": b'[1,"get_table_req",1,5,{"1":{"rec":{"6":{"i64":9223372036854775808}}}}]',
    "i64 below -2^63": b'[1,"get_table_req",1,5,{"1":{"rec":{"6":{"i64":-9223372036854775809}}}}]',
    "i64 with 100,000 digits": b'[1,"get_table_req",1,5,{"1":{"rec":{"6":{"i64":' + b"9" * 100_000 + b"}}}}]",
    "missing required field": b'[1,"get_table_req",1,5,{"1":{"rec":{"1":{"str":"default"}}}}]',
    "count too large": b'[1,"get_table_objects_by_name",1,5,{"1":{"str":"d"},"2":{"lst":["str",2147483647,"a"]}}]',
    "count beyond 64 bits": b'[1,"get_table_objects_by_name",1,5,{"2":{"lst":["str",99999999999999999999,"a"]}}]',
    "negative count": b'[1,"get_table_objects_by_name",1,5,{"1":{"str":"d"},"2":{"lst":["str",-1]}}]',
    "count too small": b'[1,"get_table_objects_by_name",1,5,{"1":{"str":"d"},"2":{"lst":["str",1,"a","b"]}}]',
    "list without a count": b'[1,"get_table_objects_by_name",1,5,{"1":{"str":"d"},"2":{"lst":["str"]}}]',
    "unknown field nested deeply": b'[1,"get_database",1,5,{"9":'
    + b'{"rec":{"9":' * 10_000
    + b'{"i32":1}'
    + b"}}" * 10_000
    + b"}]",
    "lists nested deeply": b'[1,"get_database",1,5,{"9":{"lst":'
    + b'["lst",1,' * 20_000
    + b'["i32",0]'
    + b"]" * 20_000
    + b"}}]",
}


def name_of(body: bytes) -> str:
    return body.split(b'"')[1].decode()


@pytest.mark.parametrize("body", BROKEN_MESSAGES.values(), ids=BROKEN_MESSAGES)
def test_message_that_breaks_a_rule(strict: GatewayServer, body: bytes) -> None:
    answer = post(strict, body)
    if body.startswith(b'[1,"get_all_databases",2') or b",9,5," in body:
        # Not a call: INVALID_MESSAGE_TYPE says so more exactly.
        assert_readable(answer)
        assert answer.message[4]["2"]["i32"] in (2, PROTOCOL_ERROR), answer.body
    else:
        is_envelope = answer.status == 400
        assert is_envelope is (not body.startswith(b"[1,") or not body.split(b",", 4)[4].startswith(b"{"))
        assert_exception(answer, PROTOCOL_ERROR, name_of(body), seqid=5, status=400 if is_envelope else 200)


@pytest.mark.parametrize("field", ["{}", '{"str":"a","i32":1}', '{"i32":1,"str":"a"}'])
def test_field_without_one_type_is_answered_either_way(strict: GatewayServer, field: str) -> None:
    # No client writes such a field. Reading what can be understood of it and refusing it are both fine.
    answer = post(strict, f'[1,"get_database",1,5,{{"1":{field}}}]'.encode())
    assert_readable(answer)
    assert answer.status == 200
    assert "0" not in answer.message[4]


def test_missing_required_field_is_named(strict: GatewayServer) -> None:
    answer = post(strict, BROKEN_MESSAGES["missing required field"])
    text = assert_exception(answer, PROTOCOL_ERROR, "get_table_req", 5)
    assert text.startswith("Required field 'tblName' is unset! Struct:GetTableRequest")


@pytest.mark.parametrize(
    "name", ["no_such_method", "", "__init__", "get_table\\u0000", "x" * 10_000, "ünïcode", "../etc"]
)
def test_unknown_method(strict: GatewayServer, name: str) -> None:
    answer = post(strict, f'[1,"{name}",1,-3,{{}}]'.encode())
    assert_readable(answer)
    if answer.status == 200:
        assert answer.message[2:4] == [3, -3]
        assert answer.message[4]["2"]["i32"] in (UNKNOWN_METHOD, PROTOCOL_ERROR)
    if name == "no_such_method":
        assert assert_exception(answer, UNKNOWN_METHOD, name, -3) == "Invalid method name: 'no_such_method'"


@pytest.mark.parametrize("seqid", ["2147483648", "-2147483649", "99999999999999999999", '"x"', "null", "1.5", "{}"])
def test_seqid_out_of_range(strict: GatewayServer, seqid: str) -> None:
    answer = post(strict, f'[1,"get_all_databases",1,{seqid},{{}}]'.encode())
    assert_readable(answer)
    assert answer.status in (200, 400)
    if answer.status == 200:
        assert answer.message[2] == 3


# ---- readable calls with impossible arguments


def batch_of(*values: list[str], location: str | None = None) -> str:
    """add_partitions of the demo table; the location is the last one's."""
    descriptor: dict[str, Any] = {"1": {"lst": ["rec", 0]}, "7": {"rec": {}}}
    partitions: list[dict[str, Any]] = [
        {
            "1": {"lst": ["str", len(one), *one]},
            "2": {"str": "hmshttptestdatabase"},
            "3": {"str": "test_table"},
            "6": {"rec": dict(descriptor)},
        }
        for one in values
    ]
    if location is not None:
        partitions[-1]["6"]["rec"]["2"] = {"str": location}
    return json.dumps([1, "add_partitions", 1, 1, {"1": {"lst": ["rec", len(partitions), *partitions]}}])


IMPOSSIBLE_CALLS = {
    "no name": '[1,"get_database",1,1,{}]',
    "name of another type": '[1,"get_database",1,1,{"1":{"i32":7}}]',
    "name is null": '[1,"get_database",1,1,{"1":{"str":null}}]',
    "no table struct": '[1,"create_table",1,1,{}]',
    "empty table struct": '[1,"create_table",1,1,{"1":{"rec":{}}}]',
    "table without columns": '[1,"create_table",1,1,{"1":{"rec":{"1":{"str":"t"},"2":{"str":"default"}}}}]',
    "no database struct": '[1,"create_database",1,1,{}]',
    "database without a name": '[1,"create_database",1,1,{"1":{"rec":{}}}]',
    "NUL in a database name": '[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"a\\u0000b"}}}}]',
    "NUL in a name to look up": '[1,"get_table",1,1,{"1":{"str":"default"},"2":{"str":"a\\u0000b"}}]',
    "slash in a database name": '[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"../up"}}}}]',
    "very long name": f'[1,"create_database",1,1,{{"1":{{"rec":{{"1":{{"str":"{"x" * 100_000}"}}}}}}}}]',
    "database location that climbs": (
        '[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"climber"},"3":{"str":"file:/tmp/../../etc"}}}}]'
    ),
    "no partition": '[1,"add_partition",1,1,{}]',
    "partition of no table": (
        '[1,"add_partition",1,1,{"1":{"rec":{"1":{"lst":["str",1,"x"]},"2":{"str":"default"},"3":{"str":"none"}}}}]'
    ),
    "too many partition values": (f'[1,"get_partition",1,1,{{{TEST_TABLE},"3":{{"lst":["str",2,"a","b"]}}}}]'),
    "batch with a partition that has too many values": batch_of(["x1"], ["x2"], ["x3", "y"]),
    "batch with a partition that is there already": batch_of(["x1"], ["x2"], ["black"]),
    "batch with the same partition twice": batch_of(["x1"], ["x2"], ["x1"]),
    "batch with a NUL in a value": batch_of(["x1"], ["a\0b"]),
    "batch with a location that climbs": batch_of(["x1"], ["x2"], location="file:/tmp/../../etc"),
    "filter that is no filter": (
        '[1,"get_partitions_by_filter",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"},"3":{"str":"((("},"4":{"i16":-1}}]'
    ),
    "filter of parentheses": (
        '[1,"get_partitions_by_filter",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"},'
        f'"3":{{"str":"{"(" * 50_000}"}},"4":{{"i16":-1}}}}]'
    ),
    "filter that wants to be SQL": (
        '[1,"get_partitions_by_filter",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"},'
        '"3":{"str":"hair_color = \\"x\\"; drop table tables"},"4":{"i16":-1}}]'
    ),
}


def table_at(location: str, name: str = "climber") -> str:
    """create_table with this location."""
    columns = '"1":{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]}'
    serde = '"7":{"rec":{"2":{"str":"s"},"3":{"map":["str","str",0,{}]}}}'
    sd = f'{{{columns},"2":{{"str":{json.dumps(location)}}},{serde}}}'
    owner = '"3":{"str":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}'
    table = f'{{"1":{{"str":"{name}"}},{owner},"2":{{"str":"default"}},"7":{{"rec":{sd}}}}}'
    return f'[1,"create_table",1,1,{{"1":{{"rec":{table}}}}}]'


@pytest.mark.parametrize("body", IMPOSSIBLE_CALLS.values(), ids=IMPOSSIBLE_CALLS)
def test_call_with_impossible_arguments(strict: GatewayServer, body: str) -> None:
    answer = post(strict, body.encode())
    assert_readable(answer)
    assert answer.status == 200, answer
    if answer.message[2] == 3:
        assert answer.message[4]["2"]["i32"] == PROTOCOL_ERROR, answer.body
    else:
        assert_declared_exception(answer)


@pytest.mark.parametrize(
    "location",
    [
        "file:/tmp/../../etc/climber",
        "../climber",
        "file:///tmp/a/../../b",
        "/tmp/%2e%2e/../x",
        "file:/tmp/a\u0000b",
        "nosuch://x/y",
    ],
)
def test_location_that_climbs_or_cannot_be(strict: GatewayServer, location: str) -> None:
    answer = post(strict, table_at(location).encode())
    if location.startswith("nosuch:"):
        # A scheme nobody manages here may be stored, as with a real metastore, or refused.
        assert_readable(answer)
        post(strict, b'[1,"drop_table",1,1,{"1":{"str":"default"},"2":{"str":"climber"},"3":{"tf":0}}]')
        return
    assert_declared_exception(answer)


def test_partition_values_stay_below_the_table(strict: GatewayServer, tmp_path: Path) -> None:
    value = "../../../../../../../../../../../../tmp/hms-gateway-climber"
    body = (
        '[1,"append_partition",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"},'
        f'"3":{{"lst":["str",1,{json.dumps(value)}]}}}}]'
    )
    answer = post(strict, body.encode())
    assert_readable(answer)
    assert not Path("/tmp/hms-gateway-climber").exists()
    if answer.message[2] == 2 and "0" in answer.message[4]:
        location = answer.message[4]["0"]["rec"]["6"]["rec"]["2"]["str"]
        assert ".." not in location.split("/")
        drop = body.replace("append_partition", "drop_partition").replace("]}}]", ']},"4":{"tf":0}}]')
        assert post(strict, drop.encode()).message[4] == {"0": {"tf": 1}}


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a*)*b", "(a|a)*b", "(a|aa)+$x", ".*" * 14 + "b", "*" * 200 + "b", "["])
def test_pattern_that_would_take_for_ever(strict: GatewayServer, pattern: str) -> None:
    table = "a" * 100
    assert post(strict, table_at("", table).encode()).message[4] == {}
    try:
        arguments = {"1": {"str": "default"}, "2": {"str": pattern}}
        assert post(strict, json.dumps([1, "get_tables", 1, 1, arguments]).encode()).message[2] == 2
        arguments = {"1": {"str": "default"}, "2": {"str": f'hive_filter_field_owner__ like "{pattern}"'}}
        assert post(strict, json.dumps([1, "get_table_names_by_filter", 1, 1, arguments]).encode()).message[2] == 2
    finally:
        drop = {"1": {"str": "default"}, "2": {"str": table}, "3": {"tf": 1}}
        assert post(strict, json.dumps([1, "drop_table", 1, 1, drop]).encode()).message[4] == {}


@pytest.mark.parametrize("method", ["get_all_databases", "no_such_method", "drop_database", "shutdown"])
def test_oneway_message_is_not_answered(strict: GatewayServer, method: str) -> None:
    answer = post(strict, f'[1,"{method}",4,1,{{}}]'.encode())
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "0"


# ---- bytes cut off


def binary_call(protocol: type[TProtocolBase]) -> bytes:
    """get_table of the demo table."""
    buffer = TMemoryBuffer()
    writer = protocol(buffer)
    writer.writeMessageBegin("get_table", TMessageType.CALL, 1)
    writer.writeStructBegin("get_table_args")
    for number, text in enumerate(("hmshttptestdatabase", "test_table"), start=1):
        writer.writeFieldBegin("", TType.STRING, number)
        writer.writeString(text)
        writer.writeFieldEnd()
    writer.writeFieldStop()
    writer.writeStructEnd()
    writer.writeMessageEnd()
    return bytes(buffer.getvalue())


CUT_REQUESTS = {
    "get_table": b'[1,"get_table",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"test_table"}}]',
    "create_database": b'[1,"create_database",1,1,{"1":{"rec":{"2":{"str":"\\u00e9"}}}}]',
    "binary": binary_call(TBinaryProtocol),
    "compact": binary_call(TCompactProtocol),
}


@pytest.mark.parametrize("request_body", CUT_REQUESTS.values(), ids=CUT_REQUESTS)
def test_bytes_cut_at_every_position(strict: GatewayServer, request_body: bytes) -> None:
    with connected(strict) as connection:
        for length in range(len(request_body)):
            body = request_body[:length]
            connection.sendall(request_head(strict, f"Content-Length: {length}") + body)
            answer = read_answer(connection)
            assert_readable(answer)
            assert answer.status in (200, 400), answer
            if answer.headers.get("connection", "").lower() == "close":
                connection.close()
                return


@pytest.mark.parametrize("size", [2**31 - 1, 2**24, -1, -(2**31)])
def test_binary_with_absurd_sizes(strict: GatewayServer, size: int) -> None:
    head = b"\x80\x01\x00\x01\x00\x00\x00\x0cget_database\x00\x00\x00\x05"
    elements = {TType.STRING: b"", TType.LIST: b"\x0b", TType.SET: b"\x0c", TType.MAP: b"\x0b\x0b"}
    for field_type, element_types in elements.items():
        # As the argument itself, and as a field nobody knows.
        for field in (1, 99):
            body = head + bytes([field_type, 0, field]) + element_types + size.to_bytes(4, "big", signed=True)
            answer = post(strict, body)
            assert_readable(answer)
            assert answer.status in (200, 400), answer
    name_too_long = b"\x80\x01\x00\x01" + size.to_bytes(4, "big", signed=True) + b"get_database"
    assert post(strict, name_too_long).status in (200, 400)


@pytest.mark.parametrize(
    "size", [b"\xff\xff\xff\xff\x07", b"\xff" * 10, b"\x80" * 100], ids=["2^31", "70 bits", "endless"]
)
def test_compact_with_absurd_sizes(strict: GatewayServer, size: bytes) -> None:
    head = b"\x82\x21\x05\x0cget_database"
    for field in (b"\x18", b"\x19\xf8", b"\x1b", b"\x9b"):
        answer = post(strict, head + field + size)
        assert_readable(answer)
        assert answer.status in (200, 400), answer
    assert post(strict, b"\x82\x21\x05" + size + b"get_database").status in (200, 400)


def test_binary_nested_deeply(strict: GatewayServer) -> None:
    head = b"\x80\x01\x00\x01\x00\x00\x00\x0cget_database\x00\x00\x00\x05"
    for nested in (b"\x0c\x00\x09" * 50_000, b"\x0f\x00\x09" + b"\x0f\x00\x00\x00\x01" * 40_000):
        answer = post(strict, head + nested)
        assert_readable(answer)
        assert answer.status in (200, 400), answer
    compact = b"\x82\x21\x05\x0cget_database" + b"\x9c" * 100_000
    assert_readable(post(strict, compact))
