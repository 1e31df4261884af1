"""Serdes and the schema registry, as a client of Hive 4 calls them."""

import pytest

from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    AlterISchemaRequest,
    Database,
    DropDatabaseRequest,
    FieldSchema,
    FindSchemasByColsRqst,
    GetSerdeRequest,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    MetaException,
    NoSuchObjectException,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
    SetSchemaVersionStateRequest,
)
from tests.handlers.peers import Peer

NAME = ISchemaName("hive", "default", "orders")
SCHEMA = ISchema(
    SchemaType.AVRO, "orders", "hive", "default", SchemaCompatibility.BOTH, SchemaValidation.ALL, True, "shop", "sold"
)
FIRST = SchemaVersionDescriptor(NAME, 1)


def version(number: int, *columns: FieldSchema) -> SchemaVersion:
    return SchemaVersion(NAME, number, 77, list(columns), description=f"number {number}", schemaText="{}")


@pytest.fixture
def registry(newer: Peer) -> Peer:
    newer.ask("create_ischema", SCHEMA)
    newer.ask("add_schema_version", version(1, FieldSchema("Id", "int", "com.shop")))
    newer.ask("add_schema_version", version(12, FieldSchema("id", "bigint", "com.shop"), FieldSchema("name", "string")))
    return newer


def test_a_serde_is_kept_once(newer: Peer) -> None:
    serde = SerDeInfo("csv", "org.example.Csv", {"a": "b"}, "comma", "s", "d", 1)
    newer.ask("add_serde", serde)
    assert newer.ask("get_serde", GetSerdeRequest("csv")) == serde
    with pytest.raises(AlreadyExistsException, match="Serde with name csv already exists"):
        newer.ask("add_serde", serde)
    with pytest.raises(NoSuchObjectException, match="No serde named CSV exists"):
        newer.ask("get_serde", GetSerdeRequest("CSV"))
    with pytest.raises(MetaException):
        newer.ask("add_serde", SerDeInfo(""))


def test_a_schema_comes_back_under_any_case(registry: Peer) -> None:
    assert registry.ask("get_ischema", ISchemaName("hive", "DEFAULT", " Orders ")) == SCHEMA
    with pytest.raises(AlreadyExistsException):
        registry.ask("create_ischema", SCHEMA)
    for database in ("nowhere", "a\0", "@spark#d"):
        with pytest.raises(NoSuchObjectException):
            registry.ask("create_ischema", ISchema(name="x", dbName=database))
    with pytest.raises(NoSuchObjectException, match=r"No schema named default\.x exists"):
        registry.ask("get_ischema", ISchemaName("hive", "default", "x"))


def test_what_of_a_schema_can_be_altered(registry: Peer) -> None:
    changed = ISchema(
        SchemaType.HIVE, "other", "hive", "x", SchemaCompatibility.NONE, SchemaValidation.LATEST, False, "g", "d"
    )
    registry.ask("alter_ischema", AlterISchemaRequest(NAME, changed))
    found = registry.ask("get_ischema", NAME)
    assert (found.name, found.dbName, found.schemaType) == ("orders", "default", SchemaType.AVRO)
    assert (found.compatibility, found.canEvolve, found.description) == (SchemaCompatibility.NONE, False, "d")
    with pytest.raises(NoSuchObjectException):
        registry.ask("alter_ischema", AlterISchemaRequest(ISchemaName("hive", "default", "x"), changed))


def test_versions_are_found_by_number_and_the_highest_is_the_latest(registry: Peer) -> None:
    registry.ask("add_schema_version", version(2, FieldSchema("id", "int")))
    assert registry.ask("get_schema_version", FIRST) == version(1, FieldSchema("Id", "int", "com.shop"))
    assert registry.ask("get_schema_latest_version", NAME).version == 12
    assert [one.version for one in registry.ask("get_schema_all_versions", NAME)] == [12, 2, 1]
    with pytest.raises(AlreadyExistsException):
        registry.ask("add_schema_version", version(2, FieldSchema("id", "int")))
    with pytest.raises(NoSuchObjectException):
        registry.ask("get_schema_version", SchemaVersionDescriptor(NAME, 3))


def test_a_schema_without_versions(newer: Peer) -> None:
    newer.ask("create_ischema", SCHEMA)
    for method in ("get_schema_latest_version", "get_schema_all_versions"):
        with pytest.raises(NoSuchObjectException, match=r"No versions of schema default\.orders exist"):
            newer.ask(method, NAME)


def test_versions_are_found_by_a_column(registry: Peer) -> None:
    def found(*wanted: str | None) -> list[int]:
        answer = registry.ask("get_schemas_by_cols", FindSchemasByColsRqst(*wanted))
        assert all(one.schema == NAME for one in answer.schemaVersions)
        return [one.version for one in answer.schemaVersions]

    assert found("ID", None, None) == [1, 12]
    assert found("id", None, "bigint") == [12]
    assert found(None, "com.shop", None) == [1, 12]
    assert found("name", "com.shop", None) == []
    with pytest.raises(MetaException):
        found(None, None, "int")


def test_a_version_gets_a_serde_and_a_state(registry: Peer) -> None:
    registry.ask("add_serde", SerDeInfo("csv", "org.example.Csv"))
    registry.ask("map_schema_version_to_serde", MapSchemaVersionToSerdeRequest(FIRST, "csv"))
    registry.ask("set_schema_version_state", SetSchemaVersionStateRequest(FIRST, SchemaVersionState.ENABLED))
    found = registry.ask("get_schema_version", FIRST)
    assert (found.serDe.serializationLib, found.state) == ("org.example.Csv", SchemaVersionState.ENABLED)
    with pytest.raises(NoSuchObjectException):
        registry.ask("map_schema_version_to_serde", MapSchemaVersionToSerdeRequest(FIRST, "none"))
    with pytest.raises(MetaException):
        registry.ask("set_schema_version_state", SetSchemaVersionStateRequest(FIRST, 99))


def test_a_schema_goes_when_its_versions_are_gone(registry: Peer) -> None:
    with pytest.raises(InvalidOperationException, match="cannot be dropped, it has at least one valid version"):
        registry.ask("drop_ischema", NAME)
    for number in (1, 12):
        registry.ask("drop_schema_version", SchemaVersionDescriptor(NAME, number))
    registry.ask("drop_ischema", NAME)
    with pytest.raises(NoSuchObjectException):
        registry.ask("drop_ischema", NAME)
    with pytest.raises(NoSuchObjectException):
        registry.ask("drop_schema_version", FIRST)


def test_schemas_go_with_their_database(newer: Peer) -> None:
    newer.ask("create_database", Database("shop", None, "file:/warehouse/shop"))
    name = ISchemaName("hive", "shop", "s")
    newer.ask("create_ischema", ISchema(name="s", dbName="shop"))
    newer.ask("add_schema_version", SchemaVersion(name, 1, 1, [FieldSchema("a", "int")]))
    newer.ask("drop_database_req", DropDatabaseRequest("shop", None, False, False, True))
    assert newer.ask("get_schemas_by_cols", FindSchemasByColsRqst("a")).schemaVersions == []


def test_names_may_have_any_characters_and_any_length(newer: Peer) -> None:
    for odd in ("a\0b", "größe☃", "n" * 5_000):
        newer.ask("add_serde", SerDeInfo(odd))
        assert newer.ask("get_serde", GetSerdeRequest(odd)).name == odd
        newer.ask("create_ischema", ISchema(name=odd, dbName="default"))
        assert newer.ask("get_ischema", ISchemaName(None, "default", odd)).name == odd
