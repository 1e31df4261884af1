"""Values as plain JSON and back."""

import pytest

from hms_gateway.cli.calls.plain_values import PlainValueError, as_json, from_plain, to_plain
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, SetType, StructType
from hms_gateway.rpc.structs import Database, PrincipalType, SkewedInfo

DATABASE = StructType("Database")


def test_a_struct_has_the_fields_that_are_set_and_names_for_enums():
    database = Database(name="sales", parameters={}, ownerType=int(PrincipalType.ROLE))
    plain = {"name": "sales", "parameters": {}, "ownerType": "ROLE"}
    assert to_plain(DATABASE, database) == plain
    assert from_plain(DATABASE, plain, "db") == database


def test_an_enum_number_nobody_knows_stays_a_number():
    assert to_plain(EnumType("PrincipalType"), 77) == 77
    assert from_plain(EnumType("PrincipalType"), 77, "type") == 77


def test_map_keys_that_are_no_text_are_json_text():
    skewed = SkewedInfo(skewedColNames=["a"], skewedColValues=[["x"]], skewedColValueLocationMaps={("x",): "file:/x"})
    plain = to_plain(StructType("SkewedInfo"), skewed)
    assert plain["skewedColValueLocationMaps"] == {'["x"]': "file:/x"}
    assert from_plain(StructType("SkewedInfo"), plain, "skewed") == skewed


def test_sets_binary_and_numbers_round_trip():
    cases = [
        (SetType(BaseType.I64), {3, 1}, [1, 3]),
        (BaseType.BINARY, b"\x00\xff", "AP8="),
        (BaseType.DOUBLE, 1.5, 1.5),
        (MapType(BaseType.I64, BaseType.BINARY), {7: b"x"}, {"7": "eA=="}),
        (BaseType.BOOL, False, False),
    ]
    for kind, value, plain in cases:
        assert to_plain(kind, value) == plain
        assert from_plain(kind, plain, "x") == value


@pytest.mark.parametrize(
    ("kind", "plain", "text"),
    [
        (BaseType.I16, 32768, "max: 32768 does not fit in i16"),
        (BaseType.I32, True, "max: expected a whole number, not true"),
        (BaseType.I32, 1.5, "max: expected a whole number, not 1.5"),
        (BaseType.BOOL, 1, "max: expected true or false, not 1"),
        (BaseType.STRING, 1, "max: expected text, not 1"),
        (ListType(BaseType.STRING), ["a", 2], "max[1]: expected text, not 2"),
        (DATABASE, {"name": "\ud800"}, "max.name: '\\ud800' is not text: surrogates not allowed"),
        (DATABASE, {"nam": "x"}, "max: Database has no field 'nam'; did you mean name?"),
        (EnumType("PrincipalType"), "ROBOT", 'expected one of USER, ROLE, GROUP or its number, not "ROBOT"'),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_place(kind, plain, text):
    with pytest.raises(PlainValueError) as caught:
        from_plain(kind, plain, "max")
    assert text in str(caught.value)


def test_binary_must_be_base64():
    with pytest.raises(PlainValueError, match="base64"):
        from_plain(BaseType.BINARY, "***", "expr")


def test_json_text_keeps_non_ascii_readable():
    assert as_json(ListType(BaseType.STRING), ["größe"]) == '[\n  "größe"\n]'


def test_near_words_are_proposed():
    assert did_you_mean("get_tabel", ["get_table", "drop_table"]).startswith("; did you mean get_table")
    assert did_you_mean("xyzzy", ["get_table"]) == ""
