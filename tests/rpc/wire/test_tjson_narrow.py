"""Reading some fields of structs: the same values, whatever is in the others."""

import pytest

from hms_gateway.rpc.structs import METHODS, FieldSchema, Partition, SerDeInfo, StorageDescriptor
from hms_gateway.rpc.wire import ProtocolError
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.runtime.limits import Limits

RESULT = METHODS["get_partitions_by_names"].result
FIELDS = (("Partition", frozenset(("values", "sd"))), ("StorageDescriptor", frozenset(("location",))))
CODEC = TJsonCodec(Limits())


def reply(*partitions):
    return CODEC.encode(RESULT(success=list(partitions)))


def partition(number):
    columns = [FieldSchema("a", "string", 'a "comment"'), FieldSchema("b", "int", "}{][")]
    serde = SerDeInfo("s", "library", {"x": "y"})
    sd = StorageDescriptor(cols=columns, location=f"file:/p/{number}", compressed=True, serdeInfo=serde)
    return Partition(values=[str(number), "é\n"], dbName="d", createTime=7, sd=sd, parameters={"k": "v"})


def test_named_fields_are_read_and_others_unset():
    found = CODEC.decode_narrow(RESULT, reply(partition(1), partition(2)), FIELDS).success
    assert [(one.values, one.sd.location) for one in found] == [
        (["1", "é\n"], "file:/p/1"),
        (["2", "é\n"], "file:/p/2"),
    ]
    assert found[0] == Partition(values=["1", "é\n"], sd=StorageDescriptor(location="file:/p/1"))


def test_structs_that_are_not_named_are_whole():
    fields = (("StorageDescriptor", frozenset(("serdeInfo",))),)
    (found,) = CODEC.decode_narrow(RESULT, reply(partition(1)), fields).success
    assert found.sd == StorageDescriptor(serdeInfo=SerDeInfo("s", "library", {"x": "y"}))
    assert (found.createTime, found.parameters) == (7, {"k": "v"})


def test_what_is_not_plain_is_read_by_the_scanner():
    text = reply(partition(1)).replace(b'"1":{"lst"', b' "1" : {"lst"').replace(b'{"str":"file:/p/1"}', b'{"i32":1}')
    (found,) = CODEC.decode_narrow(RESULT, text, FIELDS).success
    assert (found.values, found.sd.location) == (["1", "é\n"], None)


def test_an_exception_is_read_as_ever():
    text = b'{"1":{"rec":{"1":{"str":"broken"}}}}'
    assert CODEC.decode_narrow(RESULT, text, FIELDS).o1.message == "broken"


def test_what_cannot_be_read_is_an_error_as_ever():
    with pytest.raises(ProtocolError):
        CODEC.decode_narrow(RESULT, reply(partition(1))[:-9], FIELDS)
