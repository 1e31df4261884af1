"""The one catalog, and what it answers to those who want another (semantics §1.4, §10.3)."""

from collections.abc import Callable

import pytest

from hms_gateway.handlers.service import Catalogs
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    DropCatalogRequest,
    GetCatalogRequest,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    ThriftException,
)

CALL = Call("tester")


@pytest.fixture
def catalogs() -> Catalogs:
    return Catalogs("file:/warehouse")


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def test_there_is_one(catalogs: Catalogs) -> None:
    assert catalogs.get_catalogs(CALL).names == ["hive"]
    expected = Catalog("hive", "Default catalog for Hive", "file:/warehouse")
    assert catalogs.get_catalog(CALL, GetCatalogRequest(" HIVE ")).catalog == expected
    assert refusal(lambda: catalogs.get_catalog(CALL, GetCatalogRequest("spark"))) == NoSuchObjectException(
        "No catalog spark"
    )


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Hive", AlreadyExistsException("Catalog Hive already exists")),
        ("", InvalidObjectException(" is not a valid catalog name")),
        ("a b", InvalidObjectException("a b is not a valid catalog name")),
        ("spark\0", InvalidObjectException("spark\0 is not a valid catalog name")),
        ("spark", MetaException("Can not create catalog spark: this server has one catalog, hive")),
    ],
)
def test_no_other_can_be_made(catalogs: Catalogs, name: str, error: ThriftException) -> None:
    assert refusal(lambda: catalogs.create_catalog(CALL, CreateCatalogRequest(Catalog(name)))) == error


def test_it_stays_as_it_is(catalogs: Catalogs) -> None:
    catalogs.alter_catalog(CALL, AlterCatalogRequest("hive", Catalog("HIVE", locationUri="file:/warehouse")))
    catalogs.alter_catalog(
        CALL, AlterCatalogRequest("hive", catalogs.get_catalog(CALL, GetCatalogRequest("hive")).catalog)
    )
    for new in (Catalog("other"), Catalog("hive", "words"), Catalog("hive", locationUri="file:/b")):
        request = AlterCatalogRequest("hive", new)
        error = InvalidOperationException("Catalog hive cannot be changed")
        assert refusal(lambda request=request: catalogs.alter_catalog(CALL, request)) == error
    request = AlterCatalogRequest("spark", Catalog("spark"))
    assert refusal(lambda: catalogs.alter_catalog(CALL, request)) == NoSuchObjectException("No catalog spark")


def test_it_cannot_be_dropped(catalogs: Catalogs) -> None:
    error = MetaException("Can not drop default catalog")
    assert refusal(lambda: catalogs.drop_catalog(CALL, DropCatalogRequest("hive"))) == error
    error = NoSuchObjectException("No catalog spark")
    assert refusal(lambda: catalogs.drop_catalog(CALL, DropCatalogRequest("spark"))) == error


def test_what_is_left_out_is_a_meta_exception(catalogs: Catalogs) -> None:
    for action in (
        lambda: catalogs.get_catalog(CALL, None),
        lambda: catalogs.get_catalog(CALL, GetCatalogRequest()),
        lambda: catalogs.create_catalog(CALL, None),
        lambda: catalogs.create_catalog(CALL, CreateCatalogRequest()),
        lambda: catalogs.create_catalog(CALL, CreateCatalogRequest(Catalog())),
        lambda: catalogs.alter_catalog(CALL, None),
        lambda: catalogs.alter_catalog(CALL, AlterCatalogRequest("hive")),
        lambda: catalogs.drop_catalog(CALL, None),
        lambda: catalogs.drop_catalog(CALL, DropCatalogRequest()),
    ):
        assert isinstance(refusal(action), MetaException)
