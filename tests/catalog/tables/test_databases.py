"""Databases on the real store and real directories, row by row of semantics §2.3."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_gateway.catalog.tables.databases import create_default_database
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    Function,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    ThriftException,
)
from tests.support.catalog import NOW, Catalog, new_table, open_catalog_of


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def test_the_default_database_exists_from_the_start(catalog: Catalog) -> None:
    assert catalog.databases.get("default") == Database(
        name="default",
        description="Default Hive database",
        locationUri=catalog.root,
        parameters={},
        ownerName="public",
        ownerType=PrincipalType.ROLE,
    )
    assert catalog.warehouse.is_dir()


def test_starting_again_leaves_the_default_database_alone(catalog: Catalog) -> None:
    catalog.databases.alter("default", Database(parameters={"a": "b"}, ownerName="x"), changes_place=False)
    create_default_database(catalog.store, catalog.files, catalog.clock, catalog.settings, catalog.event_maker)
    assert catalog.databases.get("default").parameters == {"a": "b"}


def test_a_new_database_has_the_default_place_and_a_directory(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="Sales", description="d", ownerName="o"))
    assert catalog.databases.get("sales") == Database(
        name="sales",
        description="d",
        locationUri=f"{catalog.root}/sales.db",
        parameters={},
        ownerName="o",
        ownerType=PrincipalType.USER,
        createTime=NOW,
    )
    assert (catalog.warehouse / "sales.db").is_dir()


def test_names_are_found_however_they_are_spelled(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="Sales"))
    assert catalog.databases.get("  SALES ").name == "sales"


def test_a_location_is_normalised(catalog: Catalog, tmp_path: Path) -> None:
    catalog.databases.create(Database(name="d", locationUri=f"file://{tmp_path}//own//"))
    assert catalog.databases.get("d").locationUri == f"file:{tmp_path}/own"
    assert (tmp_path / "own").is_dir()


def test_a_location_elsewhere_is_stored_and_left_alone(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", locationUri="hdfs://nn:8020/x//y/"))
    assert catalog.databases.get("d").locationUri == "hdfs://nn:8020/x/y"


@pytest.mark.parametrize(
    ("database", "kind", "text"),
    [
        (Database(name="default"), AlreadyExistsException, "Database default already exists"),
        (Database(name="DEFAULT"), AlreadyExistsException, "Database DEFAULT already exists"),
        (Database(name="a-b"), InvalidObjectException, "a-b is not a valid database name"),
        (Database(name=""), InvalidObjectException, " is not a valid database name"),
        (Database(name="größe"), InvalidObjectException, "größe is not a valid database name"),
        (Database(name="../x"), InvalidObjectException, "../x is not a valid database name"),
        (Database(name="a\0b"), InvalidObjectException, "a\0b is not a valid database name"),
        (Database(name="@spark#x"), InvalidObjectException, "@spark#x is not a valid database name"),
        (
            Database(name="d", locationUri=""),
            MetaException,
            "java.lang.IllegalArgumentException: Can not create a Path from an empty string",
        ),
        (
            Database(name="d", locationUri="file:a/b"),
            MetaException,
            "java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute URI: file:a/b",
        ),
        (
            Database(name="d", locationUri="x://h/a"),
            MetaException,
            'Got exception: org.apache.hadoop.fs.UnsupportedFileSystemException No FileSystem for scheme "x"',
        ),
    ],
)
def test_what_is_no_database_is_refused(
    catalog: Catalog, database: Database, kind: type[ThriftException], text: str
) -> None:
    assert refusal(lambda: catalog.databases.create(database)) == kind(text)
    assert catalog.databases.names() == ["default"]


@pytest.mark.parametrize("database", [None, Database(), Database(name=None, description="d")])
def test_what_is_missing_is_a_meta_exception(catalog: Catalog, database: Database | None) -> None:
    assert isinstance(refusal(lambda: catalog.databases.create(database)), MetaException)


@pytest.mark.parametrize("location", ["file:/a/../b", "/../etc", "hdfs://nn/a/.."])
def test_a_way_up_in_a_location_is_refused(catalog: Catalog, location: str) -> None:
    error = refusal(lambda: catalog.databases.create(Database(name="d", locationUri=location)))
    assert isinstance(error, MetaException)
    assert "must not contain '..'" in str(error)


def test_the_place_of_managed_tables_is_normalised_too(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", managedLocationUri=f"{catalog.root}//b/"))
    assert catalog.databases.get("d").managedLocationUri == f"{catalog.root}/b"
    up = Database(name="e", managedLocationUri="file:/a/../b")
    assert isinstance(refusal(lambda: catalog.databases.create(up)), MetaException)


def test_a_file_in_the_way_is_named(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    location = f"file:{tmp_path}/taken"
    error = refusal(lambda: catalog.databases.create(Database(name="d", locationUri=location)))
    assert error == MetaException(f"Unable to create database path {location}, failed to create database d")


def test_a_directory_that_is_there_is_used_and_stays(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("x")
    catalog.databases.create(Database(name="d", locationUri=f"file:{tmp_path}/there"))
    assert (tmp_path / "there/file").exists()


def test_text_that_cannot_be_stored_leaves_nothing_behind(catalog: Catalog) -> None:
    error = refusal(lambda: catalog.databases.create(Database(name="d", description="a\0b")))
    assert isinstance(error, MetaException)
    assert not (catalog.warehouse / "d.db").exists()


def test_creating_is_an_event(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="Sales"))
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("CREATE_DATABASE", "sales", None)
    assert list(message) == ["server", "servicePrincipal", "db", "dbJson", "timestamp"]
    assert json.loads(message["dbJson"])["1"] == {"str": "sales"}


@pytest.mark.parametrize(("name", "message"), [("missing", "missing"), ("", None), ("a\0b", "a\0b")])
def test_a_missing_database_is_named_as_asked_for(catalog: Catalog, name: str, message: str | None) -> None:
    assert refusal(lambda: catalog.databases.get(name)) == NoSuchObjectException(message)


def test_no_name_is_a_meta_exception(catalog: Catalog) -> None:
    for action in (
        lambda: catalog.databases.get(None),
        lambda: catalog.databases.drop(None, True, True),
        lambda: catalog.databases.alter(None, Database(), changes_place=True),
        lambda: catalog.databases.alter("default", None, changes_place=True),
    ):
        assert isinstance(refusal(action), MetaException)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["default", "other", "s1", "s_2"]),
        ("*", ["default", "other", "s1", "s_2"]),
        (".*", ["default", "other", "s1", "s_2"]),
        ("S*", ["s1", "s_2"]),
        (" s* ", ["s1", "s_2"]),
        ("s.", ["s1"]),
        ("s_2|default", ["default", "s_2"]),
        ("s_1", []),
        ("", []),
        ("|", []),
        ("x?", []),
        ("s%", []),
        ("'", []),
        ("\\", []),
        ("a\0b", []),
    ],
)
def test_patterns_of_names(catalog: Catalog, pattern: str | None, names: list[str]) -> None:
    for name in ("s1", "s_2", "other"):
        catalog.databases.create(Database(name=name))
    assert catalog.databases.names(pattern) == names
    assert [database.name for database in catalog.databases.objects(pattern)] == names


def test_2_3_changes_parameters_and_owner_only(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", description="old", ownerName="o", parameters={"a": "1"}))
    change = Database(
        name="e",
        description="new",
        locationUri="file:/elsewhere",
        parameters={"b": "2"},
        ownerName="p",
        ownerType=PrincipalType.GROUP,
    )
    catalog.databases.alter("D", change, changes_place=False)
    assert catalog.databases.get("d") == Database(
        name="d",
        description="old",
        locationUri=f"{catalog.root}/d.db",
        parameters={"b": "2"},
        ownerName="p",
        ownerType=PrincipalType.GROUP,
        createTime=NOW,
    )
    assert catalog.databases.names() == ["d", "default"]


def test_an_owner_that_is_not_sent_is_gone(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", ownerName="o", ownerType=PrincipalType.ROLE))
    catalog.databases.alter("d", Database(), changes_place=False)
    assert catalog.databases.get("d").ownerName is None
    assert catalog.databases.get("d").ownerType == PrincipalType.ROLE
    assert catalog.databases.get("d").parameters == {}


def test_3_1_changes_description_and_location_too(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", description="old"))
    elsewhere = f"{catalog.root}/elsewhere"
    catalog.databases.alter("d", Database(description="new", locationUri=f"{elsewhere}/"), changes_place=True)
    assert catalog.databases.get("d").description == "new"
    assert catalog.databases.get("d").locationUri == elsewhere
    catalog.databases.alter("d", Database(description="", locationUri=""), changes_place=True)
    assert catalog.databases.get("d").description == "new"
    assert catalog.databases.get("d").locationUri == elsewhere


def test_altering_a_missing_database_is_an_error(catalog: Catalog) -> None:
    error = refusal(lambda: catalog.databases.alter("Nope", Database(), changes_place=False))
    assert error == NoSuchObjectException("Nope")


def test_altering_is_an_event_with_both_states(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.databases.alter("d", Database(parameters={"k": "v"}), changes_place=False)
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("ALTER_DATABASE", "d", None)
    assert list(message) == ["server", "servicePrincipal", "db", "dbObjBeforeJson", "dbObjAfterJson", "timestamp"]
    assert '"4":{"map":["str","str",1,{"k":"v"}]}' in message["dbObjAfterJson"]
    assert '"4":{"map":["str","str",0,{}]}' in message["dbObjBeforeJson"]


@pytest.mark.parametrize("name", ["default", " Default"])
def test_the_default_database_cannot_be_dropped(catalog: Catalog, name: str) -> None:
    assert refusal(lambda: catalog.databases.drop(name, True, True)) == MetaException("Can not drop default database")


def test_dropping_a_missing_database_is_an_error(catalog: Catalog) -> None:
    assert refusal(lambda: catalog.databases.drop("Nope", True, True)) == NoSuchObjectException("Nope")


def test_a_database_with_a_table_is_not_dropped(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d"))
    assert refusal(lambda: catalog.databases.drop("D", True, False)) == InvalidOperationException(
        "Database d is not empty. One or more tables exist."
    )
    assert (catalog.warehouse / "d.db/t").is_dir()


def test_an_empty_database_goes_with_its_directory(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.databases.drop("d", True, False)
    assert catalog.databases.names() == ["default"]
    assert not (catalog.warehouse / "d.db").exists()
    kind, db_name, _, message = catalog.last_event()
    assert (kind, db_name, message["db"]) == ("DROP_DATABASE", "d", "d")


def test_data_stays_unless_asked_for(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d"))
    catalog.databases.drop("d", False, True)
    assert (catalog.warehouse / "d.db/t").is_dir()


def test_cascade_takes_managed_tables_wherever_they_lie(catalog: Catalog, tmp_path: Path) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("inside", "d"))
    catalog.tables.create(new_table("outside", "d", location=f"file:{tmp_path}/outside"))
    catalog.databases.drop("d", True, True)
    assert catalog.databases.names() == ["default"]
    assert not (catalog.warehouse / "d.db").exists()
    assert not (tmp_path / "outside").exists()
    catalog.databases.create(Database(name="d"))
    assert catalog.tables.names("d") == []


def test_cascade_keeps_external_data_even_inside_the_database(catalog: Catalog, tmp_path: Path) -> None:
    catalog.databases.create(Database(name="d"))
    external = {"EXTERNAL": "TRUE"}
    catalog.tables.create(new_table("managed", "d"))
    catalog.tables.create(new_table("inside", "d", table_type="EXTERNAL_TABLE", parameters=external))
    away = new_table("away", "d", table_type="EXTERNAL_TABLE", parameters=external, location=f"file:{tmp_path}/away")
    catalog.tables.create(away)
    catalog.databases.drop("d", True, True)
    assert (catalog.warehouse / "d.db/inside").is_dir()
    assert not (catalog.warehouse / "d.db/managed").exists()
    assert (tmp_path / "away").is_dir()


def test_a_database_around_the_warehouse_takes_only_its_own_tables(catalog: Catalog) -> None:
    catalog.tables.create(new_table("precious"))
    catalog.databases.create(Database(name="greedy", locationUri=catalog.root))
    catalog.tables.create(new_table("own", "greedy"))
    catalog.databases.drop("greedy", True, True)
    assert (catalog.warehouse / "precious").is_dir()
    assert not (catalog.warehouse / "own").exists()


def test_a_database_around_another_one_takes_only_its_own_tables(catalog: Catalog, tmp_path: Path) -> None:
    catalog.databases.create(Database(name="outer", locationUri=f"file:{tmp_path}/place"))
    catalog.databases.create(Database(name="inner", locationUri=f"file:{tmp_path}/place/inner"))
    catalog.tables.create(new_table("t", "inner"))
    catalog.tables.create(new_table("t", "outer"))
    catalog.databases.drop("outer", True, True)
    assert (tmp_path / "place/inner/t").is_dir()
    assert not (tmp_path / "place/t").exists()
    assert catalog.tables.get(TableName("inner", "t")).tableName == "t"


def test_one_of_many_creates_the_database_and_its_directory_stays(catalog: Catalog) -> None:
    def create(number: int) -> bool:
        try:
            catalog.databases.create(Database(name="d", description=str(number)))
        except AlreadyExistsException:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(create, range(8))).count(True) == 1
    assert (catalog.warehouse / "d.db").is_dir()
    assert [event.event.event_type for event in catalog.events()].count("CREATE_DATABASE") == 2


def test_what_a_dropped_database_held_is_told_too(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    for name in ("b", "a"):
        catalog.tables.create(new_table(name, "d"))
    catalog.functions.create_function(Call("tester"), Function("f", "d", "a.B", ownerType=PrincipalType.USER))
    newest = catalog.events()[-1].event_id
    catalog.databases.drop("d", True, True)
    told = [event.event for event in catalog.events() if event.event_id > newest]
    assert [(event.event_type, event.table_name) for event in told] == [
        ("DROP_FUNCTION", None),
        ("DROP_TABLE", "a"),
        ("DROP_TABLE", "b"),
        ("DROP_DATABASE", None),
    ]


def test_event_ids_are_dense_and_refused_changes_have_none(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    for _ in range(3):
        refusal(lambda: catalog.databases.create(Database(name="d")))
    catalog.databases.drop("d", True, False)
    assert [event.event_id for event in catalog.events()] == [1, 2, 3]


def test_two_servers_on_one_file_agree_about_the_default_database(tmp_path: Path) -> None:
    with open_catalog_of(tmp_path) as first, open_catalog_of(tmp_path) as second:
        second.databases.create(Database(name="d"))
        assert first.databases.names() == ["d", "default"]
        assert len(first.events()) == 2
