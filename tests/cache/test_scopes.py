"""Which part of the catalog a reply depends on."""

import pytest

from app.cache.scopes import scopes_read
from app.structs import METHODS


@pytest.mark.parametrize("method", ["get_fields", "get_schema"])
@pytest.mark.parametrize("name", ["t", "T.column", "t.column.field"])
def test_columns_depend_on_their_table_however_it_is_named(method: str, name: str) -> None:
    arguments = METHODS[method].arguments(db_name="@hive#D", table_name=name)
    assert scopes_read(method, arguments) == (("table", "d", "t"),)
