"""Catalogs, and objects of the same names in two of them (semantics §1.4, §10.3)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hms_gateway.catalog.tables.catalogs import Catalogs
from hms_gateway.catalog.tables.databases import Databases
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AllTableConstraintsRequest,
    AlreadyExistsException,
    AlterCatalogRequest,
    AlterTableRequest,
    Catalog,
    CreateCatalogRequest,
    CreateDatabaseRequest,
    CreationMetadata,
    Database,
    DropCatalogRequest,
    Function,
    GetCatalogRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseRequest,
    GetFunctionsRequest,
    GetPartitionsRequest,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    LockComponent,
    LockRequest,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    Partition,
    PartitionsByExprRequest,
    PrimaryKeysRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ShowLocksRequest,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    Table,
    TableStatsRequest,
    ThriftException,
)
from hms_gateway.runtime.settings import Settings
from tests.comparison.objects import SOME_KEYS, descriptor, table
from tests.handlers.peers import Peer, metastore_in
from tests.support import catalog as whole_catalog
from tests.support.catalog import place_empty_database

CALL = Call("tester")


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


@pytest.fixture
def place(metastore: Metastore, newer: Peer) -> str:
    """The location of the catalog `spark`, which is there."""
    warehouse = newer.ask("get_catalog", GetCatalogRequest("hive")).catalog.locationUri
    newer.ask("create_catalog", CreateCatalogRequest(Catalog("Spark", "words", f"{warehouse}/spark")))
    return f"{warehouse}/spark"


def test_the_default_one_is_always_there(newer: Peer) -> None:
    assert newer.ask("get_catalogs").names == ["hive"]
    found = newer.ask("get_catalog", GetCatalogRequest(" HIVE ")).catalog
    assert (found.name, found.description, found.createTime) == ("hive", "Default catalog for Hive", None)
    newer.ask("alter_catalog", AlterCatalogRequest("hive", found))
    newer.ask("alter_catalog", AlterCatalogRequest("hive", Catalog("HIVE", locationUri=found.locationUri)))
    for new in (Catalog("other"), Catalog("hive", "words"), Catalog("hive", locationUri="file:/b")):
        error = refusal(lambda new=new: newer.ask("alter_catalog", AlterCatalogRequest("hive", new)))
        assert error == InvalidOperationException("Catalog hive cannot be changed")
    error = refusal(lambda: newer.ask("drop_catalog", DropCatalogRequest("Hive")))
    assert error == MetaException("Can not drop hive catalog")


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (Catalog("Hive", None, "file:/w"), AlreadyExistsException("Catalog Hive already exists")),
        (Catalog("SPARK", None, "file:/w"), AlreadyExistsException("Catalog SPARK already exists")),
        (Catalog("", None, "file:/w"), InvalidObjectException(" is not a valid catalog name")),
        (Catalog("a#b", None, "file:/w"), InvalidObjectException("a#b is not a valid catalog name")),
        (Catalog("@a", None, "file:/w"), InvalidObjectException("@a is not a valid catalog name")),
        (Catalog("a\0", None, "file:/w"), InvalidObjectException("a\0 is not a valid catalog name")),
        (Catalog("lake"), InvalidObjectException("You must specify a path for the catalog")),
        (Catalog("lake", None, ""), InvalidObjectException("You must specify a path for the catalog")),
    ],
)
def test_what_is_no_new_catalog_is_refused(newer: Peer, place: str, new: Catalog, error: ThriftException) -> None:
    if new.locationUri:
        new = msgspec.structs.replace(new, locationUri=f"{place}/x")
    assert refusal(lambda: newer.ask("create_catalog", CreateCatalogRequest(new))) == error
    assert newer.ask("get_catalogs").names == ["hive", "spark"]


def test_a_catalog_comes_with_its_default_database_and_goes_with_it(newer: Peer, place: str) -> None:
    found = newer.ask("get_database", "@spark#default")
    assert (found.name, found.catalogName, found.locationUri) == ("default", "spark", place)
    assert found.description == "Default database for catalog Spark"
    newer.ask("create_table", table("default", "t", catName="spark"))
    dropping = lambda: newer.ask("drop_catalog", DropCatalogRequest("spark"))  # noqa: E731
    text = "There are still objects in the default database for catalog spark"
    assert refusal(dropping) == InvalidOperationException(text)
    newer.ask("drop_table", "@spark#default", "t", True)
    newer.ask("create_database", Database("sales", catalogName="spark"))
    text = "There are non-default databases in the catalog spark so it cannot be dropped."
    assert refusal(dropping) == InvalidOperationException(text)
    newer.ask("drop_database", "@spark#sales", True, False)
    dropping()
    assert newer.ask("get_catalogs").names == ["hive"]
    assert newer.ask("get_databases", "@spark#") == []
    assert refusal(dropping) == NoSuchObjectException("No catalog spark")
    error = refusal(lambda: newer.ask("create_database", Database("sales", catalogName="spark")))
    assert error == InvalidObjectException("No such catalog spark")


def test_a_changed_location_is_that_of_new_databases(newer: Peer, place: str) -> None:
    newer.ask("create_database", Database("early", catalogName="spark"))
    newer.ask("alter_catalog", AlterCatalogRequest("spark", Catalog("spark", "new words", f"{place}/later")))
    found = newer.ask("get_catalog", GetCatalogRequest("spark")).catalog
    assert (found.description, found.locationUri) == ("new words", f"{place}/later")
    newer.ask("create_database", Database("late", catalogName="spark"))
    places = [newer.ask("get_database", f"@spark#{name}").locationUri for name in ("early", "late")]
    assert places == [f"{place}/early.db", f"{place}/later/late.db"]
    error = refusal(lambda: newer.ask("alter_catalog", AlterCatalogRequest("spark", Catalog("SPARK"))))
    assert error == InvalidOperationException("You cannot change a catalog's name")
    error = refusal(lambda: newer.ask("alter_catalog", AlterCatalogRequest("lake", Catalog("lake"))))
    assert error == NoSuchObjectException("No catalog lake")


def test_what_is_left_out_is_a_meta_exception(newer: Peer) -> None:
    for method, request in (
        ("get_catalog", None),
        ("get_catalog", GetCatalogRequest()),
        ("create_catalog", None),
        ("create_catalog", CreateCatalogRequest()),
        ("create_catalog", CreateCatalogRequest(Catalog())),
        ("alter_catalog", None),
        ("alter_catalog", AlterCatalogRequest("hive")),
        ("drop_catalog", None),
        ("drop_catalog", DropCatalogRequest()),
    ):
        assert isinstance(refusal(lambda method=method, request=request: newer.ask(method, request)), MetaException)


def test_a_catalog_outside_of_the_roots_is_refused(tmp_path: Path) -> None:
    with whole_catalog.open_catalog(tmp_path) as catalog:
        parts = (catalog.store, catalog.files, catalog.clock, catalog.settings, catalog.event_maker)
        new = CreateCatalogRequest(Catalog("spark", None, "file:/elsewhere"))
        error = refusal(lambda: Catalogs(*parts).create_catalog(CALL, new))
        assert isinstance(error, MetaException)
        assert "file:/elsewhere is outside the directories this server manages" in (error.message or "")
        assert Catalogs(*parts).get_catalogs(CALL).names == ["hive"]


def test_directories_of_a_catalog_come_and_go(tmp_path: Path) -> None:
    with whole_catalog.open_catalog(tmp_path) as catalog:
        parts = (catalog.store, catalog.files, catalog.clock, catalog.settings, catalog.event_maker)
        catalogs, folder = Catalogs(*parts), catalog.warehouse / "spark"
        catalogs.create_catalog(CALL, CreateCatalogRequest(Catalog("spark", None, f"file:{folder}")))
        assert folder.is_dir()
        (folder / "kept").write_text("of others")
        catalogs.drop_catalog(CALL, DropCatalogRequest("spark"))
        assert (folder / "kept").read_text() == "of others"
        (folder / "kept").unlink()
        catalogs.create_catalog(CALL, CreateCatalogRequest(Catalog("spark", None, f"file:{folder}")))
        catalogs.drop_catalog(CALL, DropCatalogRequest("spark"))
        assert not folder.exists()


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Peer]:
    """A client of a metastore that makes and deletes directories, in `warehouse`."""
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = build_metastore(Settings(data_dir=tmp_path, administrators=["ann"]))
    yield Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)
    metastore.store.close()


def fill(peer: Peer, folder: Path, catalog: str) -> Path:
    """A catalog in `folder` with the database sales, in which there is a table; its file."""
    peer.ask("create_catalog", CreateCatalogRequest(Catalog(catalog, None, f"file:{folder}")))
    peer.ask("create_database", Database("sales", catalogName=catalog))
    peer.ask("create_table", table("sales", "orders", catName=catalog))
    file = folder / "sales.db" / "orders" / "data"
    file.write_text("rows")
    return file


def test_a_drop_keeps_the_data_of_a_catalog_inside(stored: Peer, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    kept = [fill(stored, warehouse / name, name.partition(".")[0]) for name in ("spark", "lake.db")]
    here = {"location": f"file:{warehouse}/spark/"}
    stored.ask("create_table", table("default", "named", **here))
    stored.ask("drop_table", "default", "named", True)
    stored.ask("create_database", Database("mine", locationUri=f"file:{warehouse}/lake.db"))
    stored.ask("create_table", table("mine", "around", location=f"file:{warehouse}/spark"))
    stored.ask("drop_database", "mine", True, True)
    assert [file.read_text() for file in kept] == ["rows", "rows"]


def test_a_drop_keeps_the_data_of_a_database_inside(stored: Peer, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    kept = []
    for name in ("x.db", "y"):
        stored.ask("create_database", Database(f"in_{name[0]}", locationUri=f"file:{warehouse}/{name}"))
        stored.ask("create_table", table(f"in_{name[0]}", "orders"))
        kept.append(warehouse / name / "orders" / "data")
        kept[-1].write_text("rows")
    stored.ask("create_database", Database("x"))
    stored.ask("drop_database", "x", True, True)
    stored.ask("create_table", table("default", "y"))
    stored.ask("drop_table", "default", "y", True)
    assert [file.read_text() for file in kept] == ["rows", "rows"]


def test_default_places_are_apart_from_other_catalogs(newer: Peer, place: str) -> None:
    warehouse = place.removesuffix("/spark")
    newer.ask("create_catalog", CreateCatalogRequest(Catalog("lake", None, f"{warehouse}/lake.db")))
    newer.ask("create_catalog", CreateCatalogRequest(Catalog("pond", None, f"{warehouse}/deep/pond")))
    newer.ask("create_table", table("default", "t"))
    for method, *arguments in (
        ("create_table", table("default", "spark")),
        ("create_table", table("default", "Spark", location=f"{place}/")),
        ("create_table", table("default", "deep")),
        ("create_database", Database("lake")),
        ("create_database", Database("lake", locationUri=f"{warehouse}/lake.db")),
    ):
        error = refusal(lambda method=method, arguments=arguments: newer.ask(method, *arguments))
        assert isinstance(error, MetaException)
        assert "overlaps with the location of catalog" in (error.message or "")
    assert newer.ask("get_all_tables", "default") == ["t"]
    assert newer.ask("get_databases", "*") == ["default"]
    newer.ask("create_table", table("default", "spark", catName="spark"))
    newer.ask("create_table", table("default", "sparks"))
    newer.ask("create_database", Database("lake", catalogName="lake"))


def test_a_rename_stays_apart_from_other_catalogs(stored: Peer, tmp_path: Path) -> None:
    place = tmp_path / "warehouse" / "spark"
    stored.ask("create_catalog", CreateCatalogRequest(Catalog("spark", None, f"file:{place}")))
    stored.ask("create_table", table("default", "t"))
    place.rmdir()
    found = stored.ask("get_table", "default", "t")
    error = refusal(lambda: stored.ask("alter_table", "default", "t", with_name(found, "spark")))
    assert "overlaps with the location of catalog spark" in (error.message or "")
    stored.ask("alter_table", "default", "t", with_name(found, "u"))
    assert (tmp_path / "warehouse" / "u").is_dir()


def with_name(table: Table, name: str) -> Table:
    return msgspec.structs.replace(table, tableName=name)


@pytest.mark.parametrize("inside", ["", "/x.db", "/x.db/below", "/t", "/t/below", "/far", "/y", "/spark", "/spark/x"])
def test_a_place_where_another_catalog_has_something_is_refused(newer: Peer, place: str, inside: str) -> None:
    warehouse = place.removesuffix("/spark")
    newer.ask("create_database", Database("x"))
    newer.ask("create_table", table("default", "t"))
    newer.ask("create_table", table("x", "far", location=f"{warehouse}/far/away", parameters={"EXTERNAL": "TRUE"}))
    newer.ask("create_database", Database("y", catalogName="spark", locationUri=f"{warehouse}/y"))
    new = Catalog("lake", None, f"{warehouse}{inside}")
    error = refusal(lambda: newer.ask("create_catalog", CreateCatalogRequest(new)))
    assert "overlaps with the location of" in (error.message or "")
    newer.ask("create_catalog", CreateCatalogRequest(Catalog("lake", None, f"{warehouse}/fa")))
    error = refusal(lambda: newer.ask("alter_catalog", AlterCatalogRequest("lake", new)))
    assert "overlaps with the location of" in (error.message or "")
    assert ("database spark.y, " in (error.message or "")) == (inside == "/y")
    assert newer.ask("get_catalog", GetCatalogRequest("lake")).catalog.locationUri == f"{warehouse}/fa"
    newer.ask("alter_catalog", AlterCatalogRequest("spark", Catalog("spark", None, f"{place}/deeper")))


def test_the_directory_of_a_second_creation_goes(tmp_path: Path) -> None:
    with whole_catalog.open_catalog(tmp_path) as catalog:
        parts = (catalog.files, catalog.clock, catalog.settings, catalog.event_maker)
        first = CreateCatalogRequest(Catalog("spark", None, f"file:{catalog.warehouse}/one"))
        second = CreateCatalogRequest(Catalog("spark", None, f"file:{catalog.warehouse}/two"))
        catalogs = Catalogs(catalog.store, *parts)
        store: Any = _DropsFirst(catalog.store, lambda: catalogs.create_catalog(CALL, first))
        error = refusal(lambda: Catalogs(store, *parts).create_catalog(CALL, second))
        assert isinstance(error, AlreadyExistsException)
        assert [one.name for one in catalog.warehouse.iterdir()] == ["one"]


class _DropsFirst:
    """A store through which another call changes something just before the first change."""

    def __init__(self, store: Any, drop: Callable[[], None]) -> None:
        self._store, self._drop = store, [drop]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, work: Any) -> Any:
        while self._drop:
            self._drop.pop()()
        return self._store.write(work)


def test_a_database_of_a_catalog_that_goes_meanwhile_is_refused(tmp_path: Path) -> None:
    with whole_catalog.open_catalog(tmp_path) as catalog:
        parts = (catalog.files, catalog.clock, catalog.settings, catalog.event_maker)
        catalogs, folder = Catalogs(catalog.store, *parts), catalog.warehouse / "spark"
        catalogs.create_catalog(CALL, CreateCatalogRequest(Catalog("spark", None, f"file:{folder}")))
        store: Any = _DropsFirst(catalog.store, lambda: catalogs.drop_catalog(CALL, DropCatalogRequest("spark")))
        new = Database("sales", catalogName="spark")
        error = refusal(lambda: Databases(store, *parts).create_database(CALL, new))
        assert error == InvalidObjectException("No such catalog spark")
        assert not (folder / "sales.db").exists()
        assert catalog.store.read(lambda snapshot: snapshot.database_names()) == ["default"]


# The same objects in two catalogs, and calls about them in every shape.


def make(peer: Peer, catalog: str) -> None:
    """A database with a table, partitions, constraints, a function and a schema, the same in each catalog."""
    peer.ask("create_database", Database("sales", "words", f"file:/w/{catalog}", {"k": "v"}, catalogName=catalog))
    key = SQLPrimaryKey("sales", "orders", "id", 1, "pk", catName=catalog)
    needed = SQLNotNullConstraint(catalog, "sales", "orders", "name", "nn")
    new = table("sales", "orders", SOME_KEYS, catName=catalog, location=f"file:/w/{catalog}/orders")
    peer.ask("create_table_with_constraints", new, [key], None, None, [needed])
    parts = [
        Partition(["a", "1"], "sales", "orders", 0, 0, descriptor(location=f"file:/w/{catalog}/{hour}"), {})
        for hour in ("1",)
    ]
    request = AddPartitionsRequest("sales", "orders", parts, False, catName=catalog)
    peer.ask("add_partitions_req", request)
    peer.ask("create_function", Function("f", "sales", "x.Y", "bob", 1, 0, 1, [], catName=catalog))
    peer.ask("create_ischema", ISchema(1, "events", catalog, "sales", 1, 1, True))
    info = PrivilegeGrantInfo("SELECT", 0, "ann", PrincipalType.USER, False)
    ref = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", catName=catalog)
    peer.ask("grant_privileges", PrivilegeBag([HiveObjectPrivilege(ref, "bob", PrincipalType.USER, info, "SQL")]))


# Methods and their arguments, by the catalog and by the database's name with its catalog before it.
CALLS: list[tuple[str, Callable[[str, str], tuple[Any, ...]]]] = [
    ("get_database", lambda cat, db: (db,)),
    ("get_database_req", lambda cat, db: (GetDatabaseRequest("sales", cat),)),
    ("get_databases", lambda cat, db: (f"{db}*|no",)),
    ("get_databases_req", lambda cat, db: (GetDatabaseObjectsRequest(cat, "s*"),)),
    ("get_all_tables", lambda cat, db: (db,)),
    ("get_tables", lambda cat, db: (db, "o*")),
    ("get_tables_by_type", lambda cat, db: (db, "*", "MANAGED_TABLE")),
    ("get_table_meta", lambda cat, db: (db, "*", None)),
    ("get_tables_ext", lambda cat, db: (GetTablesExtRequest(cat, "sales", "*", 2),)),
    ("get_table", lambda cat, db: (db, "orders")),
    ("get_table", lambda cat, db: (db, "missing")),
    ("get_table_req", lambda cat, db: (GetTableRequest("sales", "orders", catName=cat),)),
    ("get_table_req", lambda cat, db: (GetTableRequest("sales", "missing", catName=cat),)),
    ("get_table_objects_by_name", lambda cat, db: (db, ["orders"])),
    ("get_table_objects_by_name_req", lambda cat, db: (GetTablesRequest("sales", ["orders"], catName=cat),)),
    ("get_table_names_by_filter", lambda cat, db: (db, 'hive_filter_field_owner__ = "somebody"', -1)),
    ("get_fields", lambda cat, db: (db, "orders")),
    ("get_schema", lambda cat, db: (db, "orders")),
    ("get_partition", lambda cat, db: (db, "orders", ["a", "1"])),
    ("get_partition_by_name", lambda cat, db: (db, "orders", "ds=a/hr=1")),
    ("get_partitions", lambda cat, db: (db, "orders", -1)),
    ("get_partitions_pspec", lambda cat, db: (db, "orders", -1)),
    ("get_partitions_ps", lambda cat, db: (db, "orders", ["a"], -1)),
    ("get_partitions_by_filter", lambda cat, db: (db, "orders", 'ds = "a"', -1)),
    ("get_partitions_by_names", lambda cat, db: (db, "orders", ["ds=a/hr=1"])),
    ("get_partition_names", lambda cat, db: (db, "orders", -1)),
    ("get_partitions_by_expr", lambda cat, db: (PartitionsByExprRequest("sales", "orders", b"ds = 'a'", catName=cat),)),
    ("get_partitions_with_specs", lambda cat, db: (GetPartitionsRequest(cat, "sales", "orders"),)),
    ("get_primary_keys", lambda cat, db: (PrimaryKeysRequest("sales", "orders", catName=cat),)),
    ("get_primary_keys", lambda cat, db: (PrimaryKeysRequest(db, "orders"),)),
    ("get_all_table_constraints", lambda cat, db: (AllTableConstraintsRequest("sales", "orders", cat),)),
    ("get_table_statistics_req", lambda cat, db: (TableStatsRequest("sales", "orders", ["id"], cat),)),
    ("get_function", lambda cat, db: (db, "f")),
    ("get_functions", lambda cat, db: (db, "*")),
    ("get_functions_req", lambda cat, db: (GetFunctionsRequest("sales", cat, "*", returnNames=False),)),
    ("get_ischema", lambda cat, db: (ISchemaName(cat, "sales", "events"),)),
    (
        "list_privileges",
        lambda cat, db: ("bob", 1, HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", catName=cat)),
    ),
    (
        "get_privilege_set",
        lambda cat, db: (HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", catName=cat), "bob", []),
    ),
    ("get_notification_events_count", lambda cat, db: (NotificationEventsCountRequest(0, "sales", cat),)),
    ("drop_table", lambda cat, db: (db, "missing", False)),
]
_VARYING = frozenset({"id", "createTime", "priority", "tableId"})


def shown(peer: Peer, method: str, arguments: tuple[Any, ...], catalog: str) -> Any:
    """The answer or refusal as plain values, with `{catalog}` for the catalog's name."""
    try:
        answer = peer.ask(method, *arguments)
    except ThriftException as error:
        text = (error.message or "").replace(f"{catalog}.sales", "sales")
        return type(error).__name__, text
    return _plain(answer, catalog)


def _plain(value: Any, catalog: str) -> Any:
    if isinstance(value, list):
        return [_plain(one, catalog) for one in value]
    if isinstance(value, dict):
        return {key: "now" if key == "transient_lastDdlTime" else _plain(one, catalog) for key, one in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in _VARYING}
        return {name: _plain(one, catalog) for name, one in fields.items()}
    if isinstance(value, str):
        return "{catalog}" if value == catalog else value.replace(f"file:/w/{catalog}", "file:/w")
    return value


@pytest.fixture
def twins(newer: Peer, place: str) -> Peer:
    for catalog in ("hive", "spark"):
        make(newer, catalog)
    return newer


def test_every_read_answers_alike_in_both_catalogs(twins: Peer, metastore: Metastore) -> None:
    older = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
    for peer in (twins, older):
        for method, arguments in CALLS:
            answers = [shown(peer, method, arguments(cat, f"@{cat}#sales"), cat) for cat in ("hive", "spark")]
            assert answers[0] == answers[1], (method, peer is older)
            assert "@" not in repr(answers), method


def test_what_is_changed_in_one_stays_in_the_other(twins: Peer) -> None:
    changed = table("sales", "orders", SOME_KEYS, location="file:/w/spark/orders", parameters={"changed": "yes"})
    twins.ask("alter_table", "@spark#sales", "orders", changed)
    twins.ask("append_partition", "@spark#sales", "orders", ["b", "2"])
    twins.ask("drop_function", "@spark#sales", "f")
    assert "changed" in twins.ask("get_table", "@spark#sales", "orders").parameters
    assert "changed" not in twins.ask("get_table", "sales", "orders").parameters
    assert twins.ask("get_partition_names", "sales", "orders", -1) == ["ds=a/hr=1"]
    assert twins.ask("get_functions", "sales", "*") == ["f"]
    twins.ask("drop_database", "@spark#sales", False, True)
    assert twins.ask("get_all_tables", "sales") == ["orders"]
    assert twins.ask("get_databases", "@spark#") == ["default"]


def test_a_pattern_stays_in_its_catalog(twins: Peer) -> None:
    twins.ask("create_database", Database("only_hive"))
    twins.ask("create_database", Database("only_spark", catalogName="spark"))
    for pattern, names in {
        "*": ["default", "only_hive", "sales"],
        ".*": ["default", "only_hive", "sales"],
        "*#*": [],
        ".spark#*": [],
        "only*|@spark#*": ["only_hive"],
        "@spark#*": ["default", "only_spark", "sales"],
        "@spark#no|only*": ["only_spark"],
        "@SPARK#": ["default", "only_spark", "sales"],
        "@spark#!": [],
        "@spark#@spark#*": [],
        "@#*": [],
        "@missing#*": [],
        "@spar.#*": [],
        "@*#*": [],
    }.items():
        assert twins.ask("get_databases", pattern) == names, pattern
        metas = twins.ask("get_table_meta", pattern, "*", None)
        assert {one.catName for one in metas} <= {"spark" if pattern.startswith("@") else "hive"}, pattern
    assert twins.ask("get_all_databases") == ["default", "only_hive", "sales"]


def test_names_with_markers_reach_no_other_catalog(twins: Peer) -> None:
    for name in ("spark#sales", "spark.sales", " @spark#sales", "#spark#sales"):
        assert isinstance(refusal(lambda name=name: twins.ask("get_table", name, "orders")), NoSuchObjectException)
        assert isinstance(
            refusal(lambda name=name: twins.ask("create_table", table(name, "t"))), InvalidObjectException
        )
        request = GetTableRequest(name, "orders", catName="hive")
        assert isinstance(refusal(lambda request=request: twins.ask("get_table_req", request)), NoSuchObjectException)
    for name in ("@spark#new", "spark#new", "a@b", "@hive#@spark#new"):
        for catalog in (None, "hive"):
            new, request = Database(name, catalogName=catalog), CreateDatabaseRequest(name, catalogName=catalog)
            for method, one in (("create_database", new), ("create_database_req", request)):
                error = refusal(lambda method=method, one=one: twins.ask(method, one))
                assert isinstance(error, InvalidObjectException), (name, catalog, method)
    error = refusal(lambda: twins.ask("create_table", table("sales", "@spark#t")))
    assert isinstance(error, InvalidObjectException)
    assert twins.ask("get_databases", "@spark#") == ["default", "sales"]


def test_partitions_of_a_catalog_that_is_missing_are_refused(twins: Peer) -> None:
    new = Partition(["b", "1"], "sales", "orders", 0, 0, descriptor(), {}, catName="other")
    for method in ("add_partition", "add_partitions"):
        with pytest.raises(InvalidObjectException, match="because "):
            twins.ask(method, [new] if method == "add_partitions" else new)
    assert twins.ask("get_partition_names", "sales", "orders", -1) == ["ds=a/hr=1"]


def test_a_table_stays_in_its_catalog(twins: Peer) -> None:
    here = {"location": "file:/w/spark/orders"}
    twins.ask("alter_table", "@spark#sales", "orders", table("sales", "sold", SOME_KEYS, **here))
    assert twins.ask("get_all_tables", "@spark#sales") == ["sold"]
    assert twins.ask("get_all_tables", "sales") == ["orders"]
    moved = table("sales", "sold", SOME_KEYS, catName="hive", **here)
    text = "Tables cannot be moved between catalogs, old catalogspark, new catalog hive"
    error = refusal(lambda: twins.ask("alter_table", "@spark#sales", "sold", moved))
    assert error == InvalidOperationException(text)
    request = AlterTableRequest("spark", "sales", "sold", moved)
    assert refusal(lambda: twins.ask("alter_table_req", request)) == InvalidOperationException(text)


def test_partitions_stay_in_their_catalog(twins: Peer) -> None:
    twins.ask("create_table", table("sales", "archive", SOME_KEYS))
    moving = ({"ds": "a", "hr": "1"}, "@spark#sales", "orders", "sales", "archive")
    for method in ("exchange_partition", "exchange_partitions"):
        error = refusal(lambda method=method: twins.ask(method, *moving))
        assert error == MetaException("You cannot move a partition across catalogs")
    assert twins.ask("get_partition_names", "@spark#sales", "orders", -1) == ["ds=a/hr=1"]


def test_a_text_of_the_caller_is_said_as_it_is(twins: Peer) -> None:
    error = refusal(lambda: twins.ask("get_table", "sales", "a@b#c"))
    assert error.message == "sales.a@b#c table not found"
    error = refusal(lambda: twins.ask("get_table", "@spark#sales", "a@b#c"))
    assert error.message == "spark.sales.a@b#c table not found"


def test_a_marker_without_catalog_in_a_qualified_name_is_refused(twins: Peer, metastore: Metastore) -> None:
    view = table("sales", "mv", tableType="MATERIALIZED_VIEW")
    metadata = CreationMetadata("hive", "sales", "mv", {"@x.t"})
    view.creationMetadata = metadata
    for method, *arguments in (
        ("create_table", view),
        ("get_valid_write_ids", GetValidWriteIdsRequest(["@x.t"])),
    ):
        for principal in ("ann", "rita"):
            peer = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, principal)
            error = refusal(lambda method=method, arguments=arguments, peer=peer: peer.ask(method, *arguments))
            assert error.message == (
                "@x is prepended with the catalog marker but does not appear to have a catalog name in it"
            )
            assert isinstance(error, MetaException), method


def test_events_say_their_catalog(twins: Peer, metastore: Metastore) -> None:
    def events(peer: Peer, catalog: str | None = None) -> Iterator[tuple[str | None, str, str | None]]:
        for one in peer.ask("get_next_notification", NotificationEventRequest(0, 1000, catName=catalog)).events:
            assert "@" not in one.message
            yield one.catName, one.eventType, one.dbName

    every = list(events(twins))
    assert ("spark", "CREATE_CATALOG", None) in every
    assert ("spark", "CREATE_DATABASE", "default") in every
    assert ("spark", "ADD_PARTITION", "sales") in every
    assert ("hive", "ADD_PARTITION", "sales") in every
    for catalog in ("hive", "spark"):
        assert list(events(twins, catalog)) == [one for one in every if one[0] == catalog]
    older = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
    told = [(None, kind, name if catalog == "hive" else f"@spark#{name or ''}") for catalog, kind, name in every]
    assert list(events(older)) == told


def test_lists_of_everything_say_the_catalog_or_leave_others_out(twins: Peer, metastore: Metastore) -> None:
    everything = HiveObjectRef()
    granted = twins.ask("list_privileges", "bob", PrincipalType.USER, everything)
    assert [(one.hiveObject.catName, one.hiveObject.dbName) for one in granted] == [
        ("hive", "sales"),
        ("spark", "sales"),
    ]
    granted = twins.ask("list_privileges", "bob", PrincipalType.USER, HiveObjectRef(catName="spark"))
    assert [one.hiveObject.catName for one in granted] == ["spark"]
    older = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
    assert len(older.ask("list_privileges", "bob", PrincipalType.USER, everything)) == 1
    assert [one.catName for one in twins.ask("get_all_functions").functions] == ["hive"]


def test_a_lock_is_on_the_name_that_it_says(twins: Peer) -> None:
    """Hive's requests of locks have no field for the catalog."""
    component = LockComponent(3, 2, "@spark#sales", "orders")
    held = twins.ask("lock", LockRequest([component], 0, "ann", "here"))
    other = LockComponent(3, 2, "sales", "orders")
    assert twins.ask("lock", LockRequest([other], 0, "ann", "here")).state == held.state == 1
    names = [one.dbname for one in twins.ask("show_locks", ShowLocksRequest()).locks]
    assert sorted(names) == ["@spark#sales", "sales"]


def test_catalogs_outlive_a_restart(tmp_path: Path) -> None:
    metastore = metastore_in(tmp_path)
    peer = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)
    warehouse = peer.ask("get_catalog", GetCatalogRequest("hive")).catalog.locationUri
    peer.ask("create_catalog", CreateCatalogRequest(Catalog("spark", None, f"{warehouse}/spark")))
    metastore.store.close()
    again = metastore_in(tmp_path)
    peer = Peer(again, again.codecs.binary, Dialect.HIVE_4)
    assert peer.ask("get_catalogs").names == ["hive", "spark"]
    assert isinstance(peer.ask("get_database", "@spark#default"), Database)
    again.store.close()


def test_keys_stay_with_tables_of_old_clients(twins: Peer, metastore: Metastore) -> None:
    """A client of 2.3 reads a table of another catalog, and writes back what it knows of it."""
    older = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
    found: Table = older.ask("get_table", "@spark#sales", "orders")
    back = msgspec.structs.replace(found, catName=None, owner="carol")
    older.ask("alter_table", "@spark#sales", "orders", back)
    assert older.ask("get_table", "@spark#sales", "orders").owner == "carol"
    assert older.ask("get_table", "sales", "orders").owner == "somebody"
