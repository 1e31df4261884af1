"""The Thrift methods on databases."""

from collections.abc import Callable

import pytest

from hms_gateway.catalog.tables.databases import Databases
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AlterDatabaseRequest,
    AsyncOperationResp,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseRequest,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    ThriftException,
)
from tests.support.catalog import NOW, Catalog

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)


@pytest.fixture
def databases(catalog: Catalog) -> Databases:
    return catalog.databases.methods


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def test_both_ways_to_create_one(databases: Databases) -> None:
    databases.create_database(CALL, Database(name="a", description="d"))
    databases.create_database(CALL, Database(name="b", catalogName="hive"))
    databases.create_database_req(
        CALL, CreateDatabaseRequest("c", description="d", parameters={"k": "v"}, ownerName="o", catalogName="hive")
    )
    assert databases.get_all_databases(CALL) == ["a", "b", "c", "default"]
    assert databases.get_database(CALL, "b").catalogName is None
    stored = databases.get_database(CALL, "c")
    assert (stored.description, stored.parameters, stored.ownerName) == ("d", {"k": "v"}, "o")


def test_another_catalog_has_nothing(databases: Databases) -> None:
    error = InvalidObjectException("No such catalog spark")
    assert refusal(lambda: databases.create_database(CALL, Database(name="x", catalogName="spark"))) == error
    assert refusal(lambda: databases.get_database(CALL, "@spark#default")) == NoSuchObjectException("@spark#default")
    assert databases.get_databases(CALL, "@spark#*") == []


def test_the_catalog_is_shown_to_newer_callers_only(databases: Databases) -> None:
    assert databases.get_database(CALL, "default").catalogName is None
    assert databases.get_database(NEWER, "default").catalogName == "hive"
    assert databases.get_database(CALL, "@hive#default").catalogName == "hive"
    assert databases.get_database_req(CALL, GetDatabaseRequest("default")).catalogName == "hive"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["a", "default"]),
        ("*", ["a", "default"]),
        ("@hive#", ["a", "default"]),
        ("@hive#a*", ["a"]),
        ("@hive#!", []),
    ],
)
def test_patterns_may_name_the_catalog(databases: Databases, pattern: str | None, names: list[str]) -> None:
    databases.create_database(CALL, Database(name="a"))
    assert databases.get_databases(CALL, pattern) == names


def test_objects_by_request(databases: Databases) -> None:
    databases.create_database(CALL, Database(name="a"))
    everything = databases.get_databases_req(CALL, GetDatabaseObjectsRequest(catalogName="hive")).databases
    assert [database.name for database in everything] == ["a", "default"]
    some = databases.get_databases_req(CALL, GetDatabaseObjectsRequest("hive", "a|b")).databases
    assert [(database.name, database.catalogName) for database in some] == [("a", "hive")]


def test_what_alter_changes_depends_on_the_generation(databases: Databases) -> None:
    databases.create_database(CALL, Database(name="a"))
    databases.alter_database(CALL, "a", Database(description="1"))
    assert databases.get_database(CALL, "a").description is None
    databases.alter_database(NEWER, "a", Database(description="2"))
    assert databases.get_database(CALL, "a").description == "2"
    databases.alter_database(CALL, "@hive#a", Database(description="3"))
    assert databases.get_database(CALL, "a").description == "3"
    databases.alter_database_req(CALL, AlterDatabaseRequest("a", Database(description="4")))
    assert databases.get_database(CALL, "a").description == "4"


def test_the_time_of_creation_is_the_server_s_and_shown_to_newer_callers(databases: Databases) -> None:
    databases.create_database(NEWER, Database(name="a", createTime=7))
    databases.create_database_req(CALL, CreateDatabaseRequest("b", createTime=7))
    for name in ("a", "b"):
        assert databases.get_database(NEWER, name).createTime == NOW
        assert databases.get_database_req(CALL, GetDatabaseRequest(name)).createTime == NOW
        assert databases.get_database(CALL, name).createTime is None


def test_both_ways_to_drop_one(databases: Databases) -> None:
    databases.create_database(CALL, Database(name="a"))
    databases.drop_database(CALL, "@hive#a", 1, 0)
    request = DropDatabaseRequest("a", "hive", False, True, False)
    assert refusal(lambda: databases.drop_database_req(CALL, request)) == NoSuchObjectException("a")
    request.ignoreUnknownDb = True
    assert databases.drop_database_req(CALL, request) == AsyncOperationResp(id="", finished=True)


def test_a_request_left_out_is_a_meta_exception(databases: Databases) -> None:
    for method in (
        databases.create_database,
        databases.create_database_req,
        databases.get_database_req,
        databases.drop_database_req,
        databases.get_databases_req,
        databases.alter_database_req,
    ):
        assert isinstance(refusal(lambda method=method: method(CALL, None)), MetaException)
