from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_gateway.rpc.idl import BaseType, ListType, MapType
from hms_gateway.rpc.structs import METHODS, STRUCTS, FieldSchema, SkewedInfo, Table
from hms_gateway.rpc.wire.tjson_shapes import Mismatch, shape_of_struct, shape_of_type


def test_a_shape_is_made_once_also_by_threads_at_the_same_time():
    classes = [method.result for method in METHODS.values()]
    with ThreadPoolExecutor(8) as pool:
        rounds = list(pool.map(lambda _: [shape_of_struct(struct) for struct in classes], range(8)))
    assert all(shapes == rounds[0] for shapes in rounds)


def test_the_deepest_nesting_is_known():
    assert shape_of_struct(FieldSchema).depth == 2
    assert shape_of_type(ListType(BaseType.STRING)).depth == 1
    assert shape_of_type(MapType(BaseType.STRING, BaseType.STRING)).depth == 2
    # a struct, its field, a list, a list in it
    assert shape_of_struct(SkewedInfo).depth == 4
    assert max(shape_of_struct(struct).depth for struct in STRUCTS.values()) < 64


def test_a_field_through_which_a_struct_may_contain_itself_is_left_to_the_scanner():
    shape = shape_of_struct(Table)
    field = next(field for field in Table.definition.fields if field.name == "creationMetadata")
    with pytest.raises(ValueError):
        shape.parse(b'{"%d":{"rec":{}}}' % field.id)
    assert "creationMetadata" in shape.source


def test_what_is_not_plain_is_a_mismatch_or_an_error_of_the_parser():
    shape = shape_of_type(ListType(BaseType.STRING))
    for text in (b'["str",2,"a"]', b'["i32",0]', b"[]", b'["str",1,5]'):
        parsed = shape.parse(text)
        with pytest.raises(Mismatch):
            shape.read(parsed)


@pytest.mark.slow
def test_generated_code_looks_nothing_up_by_name():
    source = shape_of_struct(FieldSchema).source
    assert source.startswith("def read_FieldSchema_")
    assert "getattr" not in source
    assert ".get(" not in source
