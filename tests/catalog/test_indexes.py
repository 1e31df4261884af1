"""Indexes, row by row of semantics §2.17."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hms_gateway.catalog.indexes import IndexRows
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    Index,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    SerDeInfo,
    StorageDescriptor,
    Table,
    ThriftException,
)
from tests.support.catalog import NOW, Catalog, columns, new_table

CALL = Call("tester")
BASE = ("Default", " T ")
INDEX_TABLE = "default__t_i1__"


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def index(name: str | None = "I1", **fields: Any) -> Index:
    return Index(
        **{
            "indexName": name,
            "indexHandlerClass": "org.example.Handler",
            "dbName": "default",
            "origTableName": "t",
            "indexTableName": INDEX_TABLE,
            "sd": StorageDescriptor(cols=columns("a int"), serdeInfo=SerDeInfo(serializationLib="a.Serde")),
            "parameters": {"k": "v"},
            "deferredRebuild": True,
            **fields,
        }
    )


def table_of_index(name: str = INDEX_TABLE) -> Table:
    return new_table(name, table_type="INDEX_TABLE")


@pytest.fixture
def base(catalog: Catalog) -> Catalog:
    catalog.tables.create(new_table())
    return catalog


def test_an_index_is_made_with_its_table(base: Catalog) -> None:
    returned = base.indexes.add_index(CALL, index(createTime=5), table_of_index())
    assert (returned.indexName, returned.createTime, returned.lastAccessTime) == ("I1", NOW, 0)
    expected = msgspec.structs.replace(returned, indexName="i1")
    assert (expected.sd.cols, expected.sd.bucketCols, expected.sd.compressed) == (columns("a int"), [], False)
    assert expected.parameters == {"k": "v", "transient_lastDdlTime": str(NOW)}
    assert base.indexes.get_index_by_name(CALL, *BASE, " i1") == expected
    assert base.indexes.get_indexes(CALL, *BASE, -1) == [expected]
    table = base.tables.get(TableName("default", INDEX_TABLE))
    assert table.tableType == "INDEX_TABLE"
    assert base.path(table.sd.location).is_dir()
    assert [stored.event.event_type for stored in base.events()[-2:]] == ["CREATE_TABLE", "CREATE_INDEX"]
    _, db_name, table_name, message = base.last_event()
    assert (db_name, table_name) == ("default", "t")
    assert list(message) == ["server", "servicePrincipal", "db", "indexObjJson", "timestamp"]


def test_what_an_index_need_not_say(base: Catalog) -> None:
    base.indexes.add_index(CALL, index(indexHandlerClass=None, parameters=None, deferredRebuild=None), table_of_index())
    found = base.indexes.get_index_by_name(CALL, *BASE, "i1")
    assert (found.indexHandlerClass, found.deferredRebuild) == (None, False)
    assert found.parameters == {"transient_lastDdlTime": str(NOW)}


@pytest.mark.parametrize(
    ("lacking", "named"),
    [
        ({"indexTableName": None}, "index table name"),
        ({"sd": None}, "storage descriptor of the index"),
        ({"sd": StorageDescriptor(cols=columns("a int"))}, "serdeInfo of the index"),
    ],
)
def test_an_index_says_its_table_and_descriptor(base: Catalog, lacking: dict[str, Any], named: str) -> None:
    error = refusal(lambda: base.indexes.add_index(CALL, index(**lacking), table_of_index()))
    assert error == MetaException(f"{named} must not be null")
    assert base.indexes.get_indexes(CALL, *BASE, -1) == []
    assert base.tables.names("default") == ["t"]


def test_an_index_comes_with_its_table(base: Catalog) -> None:
    assert refusal(lambda: base.indexes.add_index(CALL, index(), None)) == MetaException("index table must not be null")


@pytest.mark.parametrize(
    ("named", "db_name", "tbl_name"),
    [("other", "default", "x"), ("", "default", "x"), ("away.x", "default", "x")],
)
def test_an_index_names_the_table_that_is_made(base: Catalog, named: str, db_name: str, tbl_name: str) -> None:
    base.databases.create(Database(name="away"))
    made = new_table(tbl_name, db_name, table_type="INDEX_TABLE")
    assert refusal(lambda: base.indexes.add_index(CALL, index(indexTableName=named), made)) == InvalidObjectException(
        f"Index table {named} is not the table given with it; name {db_name}.{tbl_name} in indexTableName"
    )
    assert base.indexes.get_indexes(CALL, *BASE, -1) == []
    assert (base.tables.names("default"), base.tables.names("away")) == (["t"], [])


@pytest.mark.parametrize("named", ["x", "away.x"])
def test_an_index_has_its_table_in_its_own_database(base: Catalog, named: str) -> None:
    """Hive stores such an index, or says so, and cannot drop it."""
    base.databases.create(Database(name="away"))
    made = new_table("x", "away", table_type="INDEX_TABLE")
    assert refusal(lambda: base.indexes.add_index(CALL, index(indexTableName=named), made)) == InvalidObjectException(
        "Index table away.x is not in the database of its index; make it in default"
    )
    assert (base.tables.names("default"), base.tables.names("away")) == (["t"], [])


@pytest.mark.parametrize("named", ["X", " x", "default.x", "Default.X"])
def test_an_index_spells_its_table_as_it_likes(base: Catalog, named: str) -> None:
    base.indexes.add_index(CALL, index(indexTableName=named), table_of_index("x"))
    base.indexes.drop_index_by_name(CALL, *BASE, "i1", True)
    assert base.tables.names("default") == ["t"]


@pytest.mark.parametrize("drops_base", [False, True])
def test_a_table_that_took_the_name_of_an_index_table_stays(base: Catalog, drops_base: bool) -> None:
    base.indexes.add_index(CALL, index(), table_of_index())
    away = new_table("away", location=f"{base.root}/{INDEX_TABLE}", table_type="INDEX_TABLE")
    base.alterations.alter(TableName("default", INDEX_TABLE), away)
    base.tables.create(new_table(INDEX_TABLE))
    if drops_base:
        base.tables.drop(TableName(*BASE), True)
    else:
        base.indexes.drop_index_by_name(CALL, *BASE, "i1", True)
    assert INDEX_TABLE in base.tables.names("default")
    assert (base.warehouse / INDEX_TABLE).exists()


@pytest.mark.parametrize("named", ["t", "default.t", "kept"])
def test_no_other_table_becomes_that_of_an_index(base: Catalog, named: str) -> None:
    """Dropping the index would drop it."""
    base.tables.create(new_table("kept"))
    error = refusal(lambda: base.indexes.add_index(CALL, index(indexTableName=named), table_of_index()))
    assert isinstance(error, InvalidObjectException)
    assert error.message.startswith(f"Index table {named} is not the table given with it")
    table = table_of_index(named.removeprefix("default."))
    error = refusal(lambda: base.indexes.add_index(CALL, index(indexTableName=named), table))
    assert error == InvalidObjectException("Unable to add index because index table already exists")
    assert isinstance(refusal(lambda: base.indexes.add_index(CALL, index(indexTableName=named), None)), MetaException)
    assert base.tables.names("default") == ["kept", "t"]


def test_what_cannot_be_added(base: Catalog) -> None:
    base.indexes.add_index(CALL, index(), table_of_index())
    error = refusal(lambda: base.indexes.add_index(CALL, index(), table_of_index("other")))
    assert isinstance(error, AlreadyExistsException)
    assert error.message.startswith("Index already exists:Index(indexName:I1, indexHandlerClass:org.example.Handler")
    no_table = "Unable to add index because database or the orginal table do not exist"
    for given in (index(origTableName="missing"), index(dbName="missing"), index(dbName="a\0")):
        error = refusal(lambda given=given: base.indexes.add_index(CALL, given, table_of_index("other")))
        assert error == InvalidObjectException(no_table)
    error = refusal(lambda: base.indexes.add_index(CALL, index("i2"), table_of_index()))
    assert error == InvalidObjectException("Unable to add index because index table already exists")
    other = {"indexTableName": "other"}
    for given in (
        None,
        index(None, **other),
        index(dbName=None, **other),
        index(origTableName=None, **other),
        index("n" * 3000, **other),
        index("a\0b", **other),
    ):
        error = refusal(lambda given=given: base.indexes.add_index(CALL, given, table_of_index("other")))
        assert isinstance(error, MetaException)
    assert base.tables.names("default") == [INDEX_TABLE, "t"]


def test_neither_index_nor_table_when_one_of_them_cannot_be(base: Catalog) -> None:
    refused = index("n" * 3000)
    assert isinstance(refusal(lambda: base.indexes.add_index(CALL, refused, table_of_index())), MetaException)
    bad_table = new_table(INDEX_TABLE, cols=columns("a nonsense"))
    assert isinstance(refusal(lambda: base.indexes.add_index(CALL, index(), bad_table)), InvalidObjectException)
    assert base.indexes.get_indexes(CALL, *BASE, -1) == []
    assert base.tables.names("default") == ["t"]
    assert not (base.warehouse / INDEX_TABLE).exists()


def test_alter_changes_parameters_only(base: Catalog) -> None:
    added = base.indexes.add_index(CALL, index("i1"), table_of_index())
    base.clock.advance(7)
    base.indexes.alter_index(CALL, *BASE, "I1", Index("other", "x", "d", "o", 1, 2, "z", None, {"new": "1"}, False))
    added.parameters = {"new": "1", "transient_lastDdlTime": str(NOW + 7)}
    assert base.indexes.get_index_by_name(CALL, *BASE, "i1") == added
    event_type, _, _, message = base.last_event()
    assert event_type == "ALTER_INDEX"
    assert list(message)[2:] == ["db", "beforeIndexObjJson", "afterIndexObjJson", "timestamp"]
    base.indexes.alter_index(CALL, *BASE, "I1", Index())
    assert base.indexes.get_index_by_name(CALL, *BASE, "i1").parameters == {"transient_lastDdlTime": str(NOW + 7)}


def test_an_index_that_is_missing(base: Catalog) -> None:
    for name, index_name in ((BASE, "Ix"), (BASE, ""), (BASE, "a\0"), (("d", "missing"), "i1")):
        text = f"{TableName(*name)} index={index_name} not found"
        for action in (
            lambda name=name, index_name=index_name: base.indexes.get_index_by_name(CALL, *name, index_name),
            lambda name=name, index_name=index_name: base.indexes.drop_index_by_name(CALL, *name, index_name, True),
        ):
            assert refusal(action) == NoSuchObjectException(text)
        error = refusal(
            lambda name=name, index_name=index_name: base.indexes.alter_index(CALL, *name, index_name, index())
        )
        assert error == MetaException(f"NoSuchObjectException(message:{text})")
    assert base.indexes.get_indexes(CALL, "default", "missing", -1) == []


def test_no_index_of_no_name_is_in_a_table_that_is_missing(base: Catalog) -> None:
    missing = ("default", "missing")
    for action in (
        lambda: base.indexes.get_index_by_name(CALL, *missing, None),
        lambda: base.indexes.drop_index_by_name(CALL, *missing, None, True),
    ):
        assert refusal(action) == NoSuchObjectException("default.missing index=null not found")


def test_a_name_left_out_is_a_meta_exception(base: Catalog) -> None:
    for action in (
        lambda: base.indexes.get_index_by_name(CALL, *BASE, None),
        lambda: base.indexes.get_index_by_name(CALL, None, "t", "i1"),
        lambda: base.indexes.drop_index_by_name(CALL, "default", None, "i1", True),
        lambda: base.indexes.get_indexes(CALL, None, "t", -1),
        lambda: base.indexes.alter_index(CALL, *BASE, "i1", None),
        lambda: base.indexes.alter_index(CALL, *BASE, None, index()),
    ):
        assert isinstance(refusal(action), MetaException)


@pytest.mark.parametrize("delete_data", [True, False])
def test_dropping_an_index_drops_its_table(base: Catalog, delete_data: bool) -> None:
    base.indexes.add_index(CALL, index(indexTableName="Default.X"), table_of_index("x"))
    location = base.path(base.tables.get(TableName("default", "x")).sd.location)
    base.indexes.drop_index_by_name(CALL, *BASE, "I1", delete_data)
    assert base.tables.names("default") == ["t"]
    assert base.indexes.get_indexes(CALL, *BASE, -1) == []
    assert location.exists() is not delete_data
    assert [stored.event.event_type for stored in base.events()[-2:]] == ["DROP_TABLE", "DROP_INDEX"]
    _, db_name, table_name, message = base.last_event()
    assert (db_name, table_name) == ("default", "t")
    assert list(message)[2:] == ["db", "indexName", "origTableName", "indexTableName", "timestamp"]


def test_a_table_of_an_index_cannot_be_dropped_alone(base: Catalog) -> None:
    base.indexes.add_index(CALL, index(), table_of_index())
    error = refusal(lambda: base.tables.drop(TableName("default", INDEX_TABLE), True))
    assert error == MetaException(
        f"java.lang.RuntimeException: The table {INDEX_TABLE} is an index table. Please do drop index instead."
    )


def test_dropping_a_table_drops_its_indexes_and_their_tables(base: Catalog) -> None:
    base.indexes.add_index(CALL, index(), table_of_index())
    base.indexes.add_index(CALL, index("i2", indexTableName="second"), table_of_index("second"))
    location = base.path(base.tables.get(TableName("default", "second")).sd.location)
    base.tables.drop(TableName(*BASE), False)
    assert base.tables.names("default") == []
    assert not location.exists()
    kinds = [stored.event.event_type for stored in base.events()[-5:]]
    assert kinds == ["DROP_TABLE", "DROP_INDEX", "DROP_TABLE", "DROP_INDEX", "DROP_TABLE"]
    base.tables.create(new_table())
    assert base.indexes.get_indexes(CALL, *BASE, -1) == []


def test_indexes_go_with_the_database(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="sales"))
    catalog.tables.create(new_table(db_name="sales"))
    catalog.indexes.add_index(CALL, index(dbName="sales"), new_table(INDEX_TABLE, "sales", table_type="INDEX_TABLE"))
    catalog.databases.drop("sales", True, True)
    assert catalog.indexes.get_indexes(CALL, "sales", "t", -1) == []


@pytest.mark.parametrize("delete_data", [True, False])
def test_an_index_table_in_another_database_goes_with_its_index(catalog: Catalog, delete_data: bool) -> None:
    for name in ("sales", "away"):
        catalog.databases.create(Database(name=name))
    catalog.tables.create(new_table(db_name="sales"))
    catalog.tables.create(new_table("x", "away", table_type="INDEX_TABLE"))
    # As gateways made them before they refused it.
    base = catalog.store.read(lambda snapshot: snapshot.table("sales", "t"))
    assert base is not None
    made = index("i1", dbName="sales", indexTableName="away.x", createTime=NOW, lastAccessTime=0)
    catalog.store.write(lambda tx: IndexRows(tx).insert(base.table_id, made))
    location = catalog.path(catalog.tables.get(TableName("away", "x")).sd.location)
    catalog.databases.drop("sales", delete_data, True)
    assert catalog.tables.names("away") == []
    assert location.exists() is not delete_data
    catalog.databases.drop("away", True, False)


def test_indexes_follow_a_renamed_table(base: Catalog) -> None:
    base.indexes.add_index(CALL, index(), table_of_index())
    location = base.tables.get(TableName(*BASE)).sd.location
    base.alterations.alter(TableName(*BASE), new_table("renamed", location=location))
    assert base.indexes.get_index_by_name(CALL, "default", "renamed", "i1").origTableName == "renamed"
