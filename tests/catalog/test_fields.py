"""The columns of a table (semantics §2.5)."""

import pytest

from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import FieldSchema, MetaException, UnknownTableException
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")


@pytest.fixture
def table(catalog: Catalog) -> Catalog:
    catalog.tables.create(new_table(cols=[FieldSchema("a", "int", "c")], keys=columns("p string")))
    return catalog


@pytest.mark.parametrize("name", ["t", " T ", "t.a", "t.a.b"])
def test_columns_come_without_keys_and_with_them(table: Catalog, name: str) -> None:
    asked = (CALL, "Default", name)
    assert table.fields.get_fields(*asked) == [FieldSchema("a", "int", "c")]
    assert table.fields.get_schema(*asked) == [FieldSchema("a", "int", "c"), FieldSchema("p", "string")]


@pytest.mark.parametrize(
    ("db_name", "tbl_name", "text"),
    [
        ("default", "Nope.x", "default.Nope table not found"),
        ("Nope", "t", "Nope.t table not found"),
        ("default", "", "default. table not found"),
    ],
)
def test_a_missing_table_is_an_unknown_one(table: Catalog, db_name: str, tbl_name: str, text: str) -> None:
    for columns_of in (table.fields.get_fields, table.fields.get_schema):
        with pytest.raises(UnknownTableException) as raised:
            columns_of(CALL, db_name, tbl_name)
        assert raised.value == UnknownTableException(text)


@pytest.mark.parametrize("name", [(None, "t"), ("default", None)])
def test_names_left_out_are_meta_exceptions(table: Catalog, name: tuple[str | None, str | None]) -> None:
    with pytest.raises(MetaException):
        table.fields.get_fields(CALL, *name)
