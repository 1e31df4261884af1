"""Indexes and catalogs: what there is to read while none can be created."""

import pytest

from app.handlers.catalogs import Catalogs
from app.handlers.indexes import Indexes
from app.rpc.call import Call
from app.structs import (
    GetCatalogRequest,
    MetaException,
    NoSuchObjectException,
)

CALL = Call("tester")


def test_there_are_no_indexes() -> None:
    indexes = Indexes()
    assert indexes.get_indexes(CALL, "default", "t", -1) == []
    assert indexes.get_index_names(CALL, "default", "t", -1) == []
    for action in (
        lambda: indexes.get_index_by_name(CALL, "d", "t", "i"),
        lambda: indexes.drop_index_by_name(CALL, "d", "t", "i", True),
    ):
        with pytest.raises(NoSuchObjectException) as raised:
            action()
        assert raised.value == NoSuchObjectException("d.t index=i not found")


def test_there_is_one_catalog() -> None:
    catalogs = Catalogs("file:/warehouse")
    assert catalogs.get_catalogs(CALL).names == ["hive"]
    catalog = catalogs.get_catalog(CALL, GetCatalogRequest("HIVE")).catalog
    assert (catalog.name, catalog.description, catalog.locationUri) == (
        "hive", "Default catalog for Hive", "file:/warehouse",
    )  # fmt: skip
    with pytest.raises(NoSuchObjectException):
        catalogs.get_catalog(CALL, GetCatalogRequest("spark"))
    with pytest.raises(MetaException):
        catalogs.get_catalog(CALL, None)
