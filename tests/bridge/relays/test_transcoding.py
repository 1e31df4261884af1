"""Clients in binary, a far side that knows only TJSON."""

import pytest
import uvloop

from hms_gateway.bridge.relays.transcoding import IN_LOOP_BYTES_MAX, with_locations
from hms_gateway.rpc.structs import METHODS, FieldSchema, Partition, SkewedInfo, StorageDescriptor, Table
from hms_gateway.rpc.wire import ApplicationErrorType
from tests.bridge.canned_upstream import CannedUpstream, answering, http
from tests.bridge.thrift_bytes import BINARY, CODECS, COMPACT, bridge, call, client, framed, result_of

LOCATIONS = {("1",): "file:/x/id=1", ("2", 'q"\\\u00e9\n'): "file:/x/id=2"}
EMPTY = '"3":{"map":["lst","str",0,{}]}'


def table(name: str, locations: dict | None) -> Table:
    skewed = SkewedInfo(["id"], [["1"]], locations)
    return Table(
        tableName=name,
        sd=StorageDescriptor(cols=[FieldSchema("id", "bigint", EMPTY)], skewedInfo=skewed),
        parameters={"text": EMPTY, "field.delim": "\x01"},
    )


def run(work, *actions, results=None, **settings):
    async def scenario():
        upstream = CannedUpstream(results or {})
        upstream.actions.extend(actions)
        settings["encoding"] = "tjson"
        async with upstream.running(), bridge(upstream.url, **settings) as server, client(server) as peer:
            await work(peer, upstream)

    uvloop.run(scenario())


@pytest.mark.parametrize("codec", [BINARY, COMPACT], ids=lambda codec: codec.name)
def test_calls_go_out_as_tjson_and_replies_come_back_as_they_came(codec):
    async def work(peer, upstream):
        assert (await peer.ask(call("get_table", "sales", "orders", codec=codec, seqid=9), codec)).success == table(
            "orders", {}
        )
        (request,) = upstream.requests
        assert request.body == b'[1,"get_table",1,9,{"1":{"str":"sales"},"2":{"str":"orders"}}]'
        assert request.headers["content-type"] == "application/vnd.apache.thrift.json"

    run(work, results={"get_table": table("orders", {})})


def test_frames_around_it():
    async def work(peer, upstream):
        await peer.send(framed(call("get_all_databases")))
        size = int.from_bytes(await peer.reader.readexactly(4), "big")
        assert result_of(await peer.reader.readexactly(size)).success == ["a"]

    run(work, results={"get_all_databases": ["a"]})


def test_the_seqid_of_the_caller_is_restored():
    async def work(peer, _upstream):
        await peer.send(call("get_all_databases", seqid=5))
        assert BINARY.read_message(await peer.receive()).seqid == 5

    run(work, answering(http(b'[1,"get_all_databases",2,1,{"0":{"lst":["str",1,"a"]}}]')))


@pytest.mark.slow
def test_a_long_message_both_ways():
    names = [f"table_{number}" for number in range(IN_LOOP_BYTES_MAX // 4)]

    async def work(peer, upstream):
        result = await peer.ask(call("get_table_objects_by_name", "sales", names))
        assert [found.tableName for found in result.success] == names
        assert upstream.requests[0].method == "get_table_objects_by_name"

    run(work, results={"get_table_objects_by_name": [Table(tableName=name) for name in names]})


def test_declared_and_application_exceptions_come_through():
    declared = b'[1,"get_table",2,1,{"2":{"rec":{"1":{"str":"sales.orders table not found"}}}}]'
    unknown = b"""[1,"get_table",3,1,{"1":{"str":"Invalid method name: 'get_table'"},"2":{"i32":1}}]"""

    async def work(peer, _upstream):
        assert (await peer.ask(call("get_table", "sales", "orders"))).o2.message == "sales.orders table not found"
        result = await peer.ask(call("get_table", "sales", "orders"))
        assert (result.message, result.type) == ("Invalid method name: 'get_table'", 1)

    run(work, answering(http(declared)), answering(http(unknown)))


def test_a_method_the_idl_does_not_know_is_refused_by_the_far_side():
    unknown = b"""[1,"frobnicate",3,1,{"1":{"str":"Invalid method name: 'frobnicate'"},"2":{"i32":1}}]"""

    async def work(peer, upstream):
        result = await peer.ask(BINARY.envelope("frobnicate", 1, 1)[0] + b"\x08\x00\x01\x00\x00\x00\x05\x00")
        assert result.type == ApplicationErrorType.UNKNOWN_METHOD
        assert upstream.requests[0].body == b'[1,"frobnicate",1,1,{}]'

    run(work, answering(http(unknown)))


def test_the_text_of_an_exception_behind_an_error_status():
    body = b'[1,"get_table",3,1,{"1":{"str":"the warehouse burns"},"2":{"i32":6}}]'

    async def work(peer, _upstream):
        result = await peer.ask(call("get_table", "sales", "orders"))
        assert "the warehouse burns" in result.o1.message

    run(work, answering(http(body, "500 Internal Server Error")))


@pytest.mark.parametrize("body", [b"", b"<html>", b'[1,"get_table",2,1,{"0":{"rec":{"1":', b"\x80\x01\x00\x02"])
def test_what_is_no_tjson_is_an_exception(body):
    async def work(peer, _upstream):
        assert (await peer.ask(call("get_table", "sales", "orders"))).o1.message

    run(work, answering(http(body)))


def test_arguments_that_cannot_be_read_are_not_sent():
    async def work(peer, upstream):
        sent = BINARY.envelope("get_table", 1, 1)[0] + b"\x0b\x00\x01\x00\x00\x00\x01\xff\x00"
        assert "UTF-8" in (await peer.ask(sent)).o1.message
        assert upstream.requests == []

    run(work)


def test_locations_of_skewed_values_go_out_in_apaches_form():
    async def work(peer, upstream):
        await peer.ask(call("create_table", table("orders", LOCATIONS)))
        body = upstream.requests[0].body
        assert b'{"map":["lst","str",2,{["str",1,"1"]:"file:/x/id=1",' in body
        payload = CODECS.tjson.read_message(body).payload
        assert CODECS.tjson.decode(METHODS["create_table"].arguments, payload).tbl == table("orders", LOCATIONS)

    run(work)


def test_locations_find_their_own_struct():
    maps = [{}, LOCATIONS, None, {("3",): "file:/x/id=3"}]
    partitions = [Partition(sd=table(str(number), locations).sd) for number, locations in enumerate(maps)]
    arguments = METHODS["add_partitions"].arguments(partitions)
    text = with_locations(arguments, CODECS.tjson.encode(arguments))
    assert CODECS.tjson.decode(METHODS["add_partitions"].arguments, text) == arguments
