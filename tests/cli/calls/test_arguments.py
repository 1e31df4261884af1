"""Words of the command line become typed arguments."""

import re
import shlex

import pytest

from hms_gateway.cli.calls.arguments import ArgumentError, parse_arguments
from hms_gateway.cli.calls.explaining import example_call
from hms_gateway.rpc.structs import METHODS, Database, GetTableRequest


def parsed(name, *words, stdin=b""):
    return parse_arguments(METHODS[name], words, lambda: stdin)


def test_words_fill_the_arguments_in_order():
    assert parsed("get_partition_names", "sales", "orders", "-1") == {
        "db_name": "sales",
        "tbl_name": "orders",
        "max_parts": -1,
    }


def test_names_and_order_may_be_mixed():
    assert parsed("get_partition_names", "max_parts=5", "sales", "tbl_name=orders") == {
        "max_parts": 5,
        "db_name": "sales",
        "tbl_name": "orders",
    }


def test_text_is_taken_as_it_stands():
    assert parsed("get_partition_by_name", "d", "t", "ds=2024-01-01")["part_name"] == "ds=2024-01-01"
    assert parsed("get_table", "@hive#d", "123") == {"dbname": "@hive#d", "tbl_name": "123"}
    assert parsed("get_database", "") == {"name": ""}


def test_structs_are_json_with_field_names():
    assert parsed("create_database", '{"name": "sales", "ownerType": "USER"}') == {
        "database": Database(name="sales", ownerType=1)
    }


def test_fields_of_the_only_struct_may_be_given_by_name():
    assert parsed("get_table_req", "dbName=sales", "tblName=orders") == {
        "req": GetTableRequest(dbName="sales", tblName="orders")
    }
    with pytest.raises(ArgumentError, match="not both"):
        parsed("get_table_req", '{"dbName": "sales"}', "tblName=orders")


def test_json_comes_from_files_and_standard_input(tmp_path):
    file = tmp_path / "db.json"
    file.write_text('{"name": "größe"}')
    assert parsed("create_database", f"@{file}") == {"database": Database(name="größe")}
    assert parsed("create_database", "-", stdin=b'{"name": "piped"}') == {"database": Database(name="piped")}
    with pytest.raises(ArgumentError, match="cannot read"):
        parsed("create_database", f"@{tmp_path / 'missing.json'}")


def test_a_single_word_is_a_list_of_one():
    assert parsed("get_partition", "d", "t", "black")["part_vals"] == ["black"]
    assert parsed("get_partition", "d", "t", '["a", "b"]')["part_vals"] == ["a", "b"]


@pytest.mark.parametrize(("word", "value"), [("true", True), ("No", False), ("1", True), ("0", False)])
def test_booleans_have_several_spellings(word, value):
    assert parsed("drop_table", "d", "t", word)["deleteData"] is value


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("get_table", ("d", "t", "more"), "get_table has no argument left for 'more'"),
        ("get_table", ("d", "dbname=d"), "dbname is given twice"),
        ("drop_table", ("d", "t", "maybe"), "deleteData: expected true or false, not 'maybe'"),
        ("get_partition_names", ("d", "t", "many"), "max_parts: 'many' is not valid JSON"),
        ("get_partition_names", ("d", "t", "40000"), "max_parts: 40000 does not fit in i16"),
        ("get_role_grants_for_principal", ("principal_type=--1",), "principal_type: expected one of USER"),
        ("create_database", ("{name: x}",), "database: '{name: x}' is not valid JSON"),
    ],
)
def test_words_that_do_not_fit_are_refused(name, words, text):
    with pytest.raises(ArgumentError) as caught:
        parsed(name, *words)
    assert text in str(caught.value)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(ArgumentError, match="not UTF-8"):
        parsed("get_partition", "d", "t", "-", stdin=b"\xff")
    with pytest.raises(ArgumentError, match="not valid JSON"):
        parsed("create_database", "-", stdin=b"\xff")


def test_enums_are_names_or_numbers():
    for word in ("ROLE", "2"):
        request = parsed("get_role_grants_for_principal", "principal_name=a", f"principal_type={word}")["request"]
        assert request.principal_type == 2


def test_the_example_of_every_method_can_be_read():
    for name, method in METHODS.items():
        words = shlex.split(example_call(method))
        assert words[:3] == ["hms-gateway", "call", name]
        parse_arguments(method, words[3:])


def test_null_is_null_where_it_cannot_be_a_text():
    assert parse_arguments(METHODS["get_table_meta"], ["a*", "*", "null"])["tbl_types"] is None
    assert parse_arguments(METHODS["get_database"], ["null"]) == {"name": "null"}


@pytest.mark.parametrize(
    ("method", "words", "meant"),
    [
        ("get_partition_names", ["d", "t", "max_part=3"], "has no argument max_part; did you mean max_parts"),
        ("get_partition_names", ["db_nam=d"], "has no argument db_nam; did you mean db_name"),
        ("get_table_req", ["dbNam=d"], "has no argument dbNam; did you mean dbName"),
    ],
)
def test_a_misspelt_argument_is_named(method, words, meant):
    with pytest.raises(ArgumentError, match=re.escape(meant)):
        parse_arguments(METHODS[method], words)


def test_a_text_with_an_equals_sign_is_a_text():
    assert parse_arguments(METHODS["get_partition_by_name"], ["d", "t", "ds=1"])["part_name"] == "ds=1"
