import pytest

from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, SetType, StructType
from hms_gateway.rpc.structs import FieldSchema, StorageDescriptor
from hms_gateway.rpc.wire import ProtocolError
from hms_gateway.rpc.wire import tjson_codec as tjson

STRING = BaseType.STRING


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        (MapType(STRING, STRING), {"a": "b"}, b'["str","str",1,{"a":"b"}]'),
        (MapType(STRING, STRING), {}, b'["str","str",0,{}]'),
        (MapType(BaseType.I64, STRING), {5: "x", -6: "y"}, b'["i64","str",2,{"5":"x","-6":"y"}]'),
        (MapType(STRING, ListType(STRING)), {"a": ["b"]}, b'["str","lst",1,{"a":["str",1,"b"]}]'),
        (ListType(STRING), ["a", "é"], '["str",2,"a","é"]'.encode()),
        (ListType(ListType(STRING)), [["a"], []], b'["lst",2,["str",1,"a"],["str",0]]'),
        (ListType(BaseType.BOOL), [True, False], b'["tf",2,1,0]'),
        (ListType(BaseType.DOUBLE), [1.5, float("inf")], b'["dbl",2,1.5,"Infinity"]'),
        (ListType(BaseType.BINARY), [b"\xfa"], b'["str",1,"+g=="]'),
        (SetType(BaseType.I64), {7}, b'["i64",1,7]'),
        (SetType(BaseType.I32), {7}, b'["i32",1,7]'),
        (ListType(StructType("FieldSchema")), [FieldSchema("a")], b'["rec",1,{"1":{"str":"a"}}]'),
        (
            StructType("StorageDescriptor"),
            StorageDescriptor([], compressed=True),
            b'{"1":{"lst":["rec",0]},"5":{"tf":1}}',
        ),
        (EnumType("PrincipalType"), 2, b"2"),
        (STRING, 'a"b', b'"a\\"b"'),
        (BaseType.I64, 2**63 - 1, b"9223372036854775807"),
        (BaseType.BOOL, True, b"1"),
        (BaseType.BINARY, b"\xfa\xfb", b'"+vs="'),
        (BaseType.DOUBLE, 0.1, b"0.1"),
    ],
    ids=repr,
)
def test_bare_values(type, value, text):
    assert tjson.encode_value(type, value) == text
    assert tjson.decode_value(type, text) == value


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (MapType(BaseType.BOOL, BaseType.I32), b'["tf","i32",2,{"1":1,"0":0}]', {True: 1, False: 0}),
        (MapType(BaseType.DOUBLE, STRING), b'["dbl","str",1,{"-Infinity":"x"}]', {float("-inf"): "x"}),
        (MapType(ListType(STRING), STRING), b'["lst","str",1,{["str",1,"a"]:"x"}]', {("a",): "x"}),
        (SetType(ListType(STRING)), b'["lst",1,["str",1,"a"]]', {("a",)}),
        (SetType(SetType(STRING)), b'["set",1,["str",1,"a"]]', {frozenset("a")}),
    ],
    ids=repr,
)
def test_types_that_are_in_no_idl_of_ours(type, text, value):
    assert tjson.decode_value(type, text) == value


def test_other_map_keys_are_written():
    assert tjson.encode_value(MapType(BaseType.BOOL, STRING), {True: "x"}) == b'["tf","str",1,{"1":"x"}]'
    assert tjson.encode_value(MapType(BaseType.DOUBLE, STRING), {1.5: "x"}) == b'["dbl","str",1,{"1.5":"x"}]'


def test_what_is_no_value_of_the_type_is_refused():
    for text in (b"", b"[]", b'["str","str",1,{}]', b'["str","str",0,{}]x'):
        with pytest.raises(ProtocolError, match="value: "):
            tjson.decode_value(MapType(STRING, STRING), text)
