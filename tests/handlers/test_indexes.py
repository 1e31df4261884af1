"""The Thrift methods on indexes."""

import pytest

from hms_gateway.catalog.indexes import Indexes
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import Index, MetaException, NoSuchObjectException
from tests.support.catalog import Catalog, new_table

CALL = Call("tester")


@pytest.fixture
def indexes(catalog: Catalog) -> Indexes:
    catalog.tables.create(new_table())
    return catalog.indexes


def index(name: str) -> Index:
    return Index(name, "org.example.Handler", "@hive#default", "t", indexTableName=f"{name}_table", sd=new_table().sd)


@pytest.mark.parametrize("db_name", ["default", "@hive#default"])
def test_the_life_of_an_index(indexes: Indexes, db_name: str) -> None:
    assert indexes.get_indexes(CALL, db_name, "t", -1) == []
    assert indexes.add_index(CALL, index("I2"), new_table("i2_table")).dbName == "default"
    indexes.add_index(CALL, index("I1"), new_table("i1_table"))
    assert indexes.get_index_names(CALL, db_name, "t", 1) == ["i1", "i2"]
    assert [found.indexName for found in indexes.get_indexes(CALL, db_name, "t", 0)] == ["i1", "i2"]
    indexes.alter_index(CALL, db_name, "t", "i1", Index(parameters={"a": "b"}))
    assert indexes.get_index_by_name(CALL, db_name, "t", "i1").parameters["a"] == "b"
    assert indexes.drop_index_by_name(CALL, db_name, "t", "i1", 1) is True
    assert indexes.get_index_names(CALL, db_name, "t", -1) == ["i2"]


def test_hive_asks_for_indexes_of_tables_that_are_missing(indexes: Indexes) -> None:
    assert indexes.get_indexes(CALL, "default", "missing", -1) == []
    assert indexes.get_index_names(CALL, "missing", "t", -1) == []
    for action in (
        lambda: indexes.get_index_by_name(CALL, "@hive#d", "t", "i"),
        lambda: indexes.drop_index_by_name(CALL, "d", "t", "i", True),
    ):
        with pytest.raises(NoSuchObjectException) as raised:
            action()
        assert raised.value == NoSuchObjectException("d.t index=i not found")


def test_an_index_left_out_is_a_meta_exception(indexes: Indexes) -> None:
    with pytest.raises(MetaException):
        indexes.add_index(CALL, None, None)
