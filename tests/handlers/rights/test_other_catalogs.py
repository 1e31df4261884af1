"""Rights in another catalog: those on databases and tables of the same names in one say nothing in the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    AlterCatalogRequest,
    AlterTableRequest,
    Catalog,
    CreateCatalogRequest,
    Database,
    DropCatalogRequest,
    GetCatalogRequest,
    GetTableRequest,
    GetTablesRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    LockComponent,
    LockRequest,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ThriftException,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Settings
from tests.comparison.objects import table
from tests.handlers.peers import Peer
from tests.support.catalog import place_empty_database

RULES = """
[[rule]]
users = ["rita"]
actions = ["select"]
objects = ["sal*", "*_lake", "*.orders"]

[[rule]]
users = ["sam"]
actions = ["select", "create"]
objects = ["@spark#*"]
"""


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    """`sales.orders` in `hive` and in `spark`, granted to bob in the first and to eve in the second."""
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    settings = Settings(
        data_dir=tmp_path,
        file_systems={"file": "ignore"},
        administrators=["ann"],
        authorization="grants",
        authorization_rules_file=rules,
    )
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = build_metastore(settings)
    ann = peer(metastore, "ann")
    warehouse = ann.ask("get_catalog", GetCatalogRequest("hive")).catalog.locationUri
    ann.ask("create_catalog", CreateCatalogRequest(Catalog("spark", None, f"{warehouse}/spark")))
    for catalog, user in (("hive", "bob"), ("spark", "eve")):
        ann.ask("create_database", Database("sales", catalogName=catalog))
        ann.ask("create_table", table("sales", "orders", catName=catalog))
        info = PrivilegeGrantInfo("SELECT", 0, "ann", PrincipalType.USER, False)
        ref = HiveObjectRef(HiveObjectType.DATABASE, "sales", catName=catalog)
        ann.ask("grant_privileges", PrivilegeBag([HiveObjectPrivilege(ref, user, PrincipalType.USER, info, "SQL")]))
    yield metastore
    metastore.store.close()


def peer(metastore: Metastore, user: str) -> Peer:
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, user)


def sees(metastore: Metastore, user: str, catalog: str) -> bool:
    """Whether a user sees the table, by every shape of a call alike."""
    client, key = peer(metastore, user), f"@{catalog}#sales"
    found = []
    for method, *arguments in (
        ("get_table", key, "orders"),
        ("get_table_req", GetTableRequest("sales", "orders", catName=catalog)),
        ("get_table_req", GetTableRequest(key, "orders", catName="hive")),
    ):
        try:
            client.ask(str(method), *arguments)
        except NoSuchObjectException:
            found.append(False)
        else:
            found.append(True)
    found.append(client.ask("get_databases", f"@{catalog}#s*") == ["sales"])
    found.append(client.ask("get_all_tables", key) == ["orders"])
    found.append(bool(client.ask("get_table_meta", f"@{catalog}#*", "*", [])))
    try:
        found.append(
            bool(
                client.ask(
                    "get_table_objects_by_name_req", GetTablesRequest("sales", ["orders"], catName=catalog)
                ).tables
            )
        )
    except ThriftException:
        found.append(False)
    assert len(set(found)) == 1, (user, catalog, found)
    return found[0]


@pytest.mark.parametrize(
    ("user", "catalogs"),
    [
        ("ann", {"hive", "spark"}),
        ("bob", {"hive"}),
        ("eve", {"spark"}),
        ("rita", {"hive"}),
        ("sam", {"spark"}),
        ("mallory", set()),
    ],
)
def test_a_right_is_one_in_its_catalog(metastore: Metastore, user: str, catalogs: set[str]) -> None:
    assert {catalog for catalog in ("hive", "spark") if sees(metastore, user, catalog)} == catalogs


def test_cached_replies_are_of_their_catalog(metastore: Metastore) -> None:
    reply = peer(metastore, "eve").reply("get_table_req", GetTableRequest("sales", "orders", catName="spark"))
    assert "@spark#sales" in repr(reply.arguments)
    assert reply.objects == ("@spark#sales.orders",)


def test_events_are_of_what_is_seen(metastore: Metastore) -> None:
    for user, catalog in (("bob", "hive"), ("eve", "spark")):
        events = peer(metastore, user).ask("get_next_notification", NotificationEventRequest(0, 100)).events
        assert {(one.catName, one.dbName) for one in events if one.tableName} == {(catalog, "sales")}
        assert not any(one.eventType == "CREATE_CATALOG" for one in events)


@pytest.mark.parametrize("user", ["bob", "eve", "sam"])
def test_catalogs_are_for_administrators(metastore: Metastore, user: str) -> None:
    client = peer(metastore, user)
    for method, request in (
        ("create_catalog", CreateCatalogRequest(Catalog("lake", None, "file:/w"))),
        ("alter_catalog", AlterCatalogRequest("spark", Catalog("spark", "mine"))),
        ("drop_catalog", DropCatalogRequest("spark")),
    ):
        with pytest.raises(MetaException, match="Permission denied"):
            client.ask(method, request)
    assert client.ask("get_catalogs").names == ["hive", "spark"]


def test_who_may_create_in_one_may_not_in_the_other(metastore: Metastore) -> None:
    sam = peer(metastore, "sam")
    sam.ask("create_database", Database("new", catalogName="spark"))
    assert sam.ask("get_database", "@spark#new").ownerName == "sam"
    sam.ask("create_table", table("new", "t", catName="spark"))
    place = sam.ask("get_catalog", GetCatalogRequest("spark")).catalog.locationUri
    sam.ask("create_database", Database("placed", locationUri=f"{place}/placed.db", catalogName="spark"))
    with pytest.raises(MetaException, match="Permission denied"):
        sam.ask("create_database", Database("other", locationUri=f"{place}/sales.db", catalogName="spark"))
    for name in ("new", "@hive#new"):
        with pytest.raises(MetaException, match="Permission denied"):
            sam.ask("create_database", Database(name))
    with pytest.raises(InvalidObjectException):
        sam.ask("create_table", table("default", "t", catName="lake"))
    with pytest.raises(ThriftException):
        sam.ask("drop_database", "@spark#sales", True, True)


def test_a_table_is_not_moved_out_of_reach(metastore: Metastore) -> None:
    """Neither the old right nor the new name lets a table change its catalog."""
    for user in ("ann", "eve"):
        request = AlterTableRequest("spark", "sales", "orders", table("sales", "orders", catName="hive"))
        with pytest.raises(ThriftException):
            peer(metastore, user).ask("alter_table_req", request)
    assert peer(metastore, "ann").ask("get_all_tables", "@spark#sales") == ["orders"]


def test_locks_take_a_right_on_the_name_they_say(metastore: Metastore) -> None:
    for user, name in (("bob", "@spark#sales"), ("eve", "sales")):
        request = LockRequest([LockComponent(1, 2, name, "orders")], 0, user, "here")
        reply = peer(metastore, user).reply("lock", request)
        assert reply.type is MessageType.EXCEPTION
        assert isinstance(reply.payload, bytes)
        assert b"Permission denied" in reply.payload
    request = LockRequest([LockComponent(1, 2, "@spark#sales", "orders")], 0, "eve", "here")
    assert peer(metastore, "eve").ask("lock", request).state == 1
