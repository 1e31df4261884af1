import pytest

from hms_gateway.rpc.idl import BaseType, ListType, MapType, SetType, StructType
from hms_gateway.rpc.structs import FieldSchema
from hms_gateway.rpc.wire import LimitExceeded, ProtocolError
from hms_gateway.rpc.wire.tjson_scan import scan_struct, scan_value
from hms_gateway.runtime.limits import Limits

STRINGS = ListType(BaseType.STRING)


def scan(type, text, **limits):
    return scan_value(type, text.encode(), Limits(**limits))


def test_white_space_between_all_tokens():
    assert scan(MapType(BaseType.STRING, STRINGS), ' [ "str" , "lst" , 1 , { "a" : [ "str" , 1 , "b" ] } ] ') == {
        "a": ["b"]
    }


def test_what_is_inside_a_key_becomes_hashable():
    assert scan(MapType(STRINGS, BaseType.I32), '["lst","i32",1,{["str",2,"a","b"]:5}]') == {("a", "b"): 5}
    keys = SetType(BaseType.I32)
    assert scan(MapType(keys, BaseType.I32), '["set","i32",1,{["i32",2,1,2]:5}]') == {frozenset((1, 2)): 5}


@pytest.mark.parametrize("key", [StructType("FieldSchema"), MapType(BaseType.STRING, BaseType.STRING)])
def test_structs_and_maps_cannot_be_keys(key):
    tag = "rec" if isinstance(key, StructType) else "map"
    with pytest.raises(ProtocolError, match="cannot be a map key"):
        scan(MapType(key, BaseType.I32), f'["{tag}","i32",1,{{{{}}:5}}]')


def test_the_place_of_a_fault_is_named_in_characters():
    with pytest.raises(ProtocolError, match="',' was expected, found '}' at character 6"):
        scan(STRINGS, '["str"}')
    with pytest.raises(ProtocolError, match="found the end"):
        scan(STRINGS, '["str",')


def test_fields_of_an_unknown_number_are_skipped_whatever_is_in_them():
    for value in ("5", '"x"', "null", "NaN", "{}", "[]", '{"foo":[{"a":{}},[[]]]}', '{["k"]:{1:2}}', "-000001"):
        text = f'{{"77":{value},"1":{{"str":"a"}}}}'.encode()
        assert scan_struct(FieldSchema, text, Limits()) == FieldSchema("a")


def test_limits_count_from_the_value_itself():
    assert scan(ListType(STRINGS), '["lst",1,["str",0]]', nesting_depth_max=2) == [[]]
    with pytest.raises(LimitExceeded, match="nesting_depth_max = 1"):
        scan(ListType(STRINGS), '["lst",1,["str",0]]', nesting_depth_max=1)
    with pytest.raises(LimitExceeded, match="string_bytes_max = 2"):
        scan(BaseType.STRING, '"éé"', string_bytes_max=2)
