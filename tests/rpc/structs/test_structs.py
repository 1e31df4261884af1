import copy
import gc
from pathlib import Path

import pytest

from hms_gateway.rpc import structs
from tools.stubs import stub_path, stub_text


def test_fields_are_unset_until_given():
    table = structs.Table(tableName="t")
    assert table.tableName == "t"
    assert table.dbName is None
    assert table.temporary is None


def test_structs_compare_by_value_and_copy():
    one = structs.FieldSchema("a", "int")
    assert one == structs.FieldSchema(name="a", type="int")
    assert one != structs.FieldSchema("a", "string")
    assert copy.deepcopy(structs.Table(partitionKeys=[one])).partitionKeys == [one]


def test_structs_stay_out_of_the_collectors_sight():
    assert not gc.is_tracked(structs.FieldSchema("a", "int"))


def test_exceptions_can_be_raised_and_carry_their_fields():
    with pytest.raises(structs.NoSuchObjectException) as caught:
        raise structs.NoSuchObjectException("sales.orders table not found")
    assert caught.value.message == "sales.orders table not found"
    assert str(caught.value) == "NoSuchObjectException(message:sales.orders table not found)"
    assert caught.value == structs.NoSuchObjectException(message="sales.orders table not found")
    assert caught.value != structs.MetaException("sales.orders table not found")


def test_enums_are_their_numbers():
    assert structs.PrincipalType.ROLE == 2


def test_methods_know_their_arguments_and_results():
    method = structs.METHODS["get_table"]
    assert [field.name for field in method.arguments.definition.fields] == ["dbname", "tbl_name"]
    results = method.result.definition.fields
    assert [(field.id, field.name) for field in results] == [(0, "success"), (1, "o1"), (2, "o2")]
    assert structs.METHODS["shutdown"].oneway
    assert [field.name for field in structs.METHODS["drop_table"].result.definition.fields] == ["o1", "o3"]


def test_field_names_never_shadow_what_the_base_class_offers():
    own = {"definition", "thrift_spec"}
    for name, struct in structs.STRUCTS.items():
        assert not own & {field.name for field in struct.definition.fields}, name


@pytest.mark.slow
def test_the_stub_is_up_to_date():
    assert Path(stub_path()).read_text("utf-8") == stub_text(structs.IDL), "run `python -m tools stubs`"
