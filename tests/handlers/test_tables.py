"""The Thrift methods on tables: spellings of the services' operations, catalogs in names, answers by generation."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AlterTableRequest,
    AlterTableResponse,
    AsyncOperationResp,
    CreateTableRequest,
    Database,
    DropTableRequest,
    EnvironmentContext,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    SQLPrimaryKey,
    ThriftException,
    TruncateTableRequest,
)
from tests.handlers.peers import Peer
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)


@pytest.fixture
def tables(catalog: Catalog) -> SimpleNamespace:
    handlers = (catalog.tables.methods, catalog.alterations.methods, catalog.truncations.methods)
    return SimpleNamespace(**{name: getattr(one, name) for one in handlers for name in dir(one) if name[0] != "_"})


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def test_every_way_to_create_one(tables: SimpleNamespace) -> None:
    tables.create_table(CALL, new_table("a"))
    tables.create_table_with_environment_context(CALL, new_table("b"), None)
    tables.create_table_with_environment_context(CALL, new_table("c"), EnvironmentContext({}))
    tables.create_table_with_constraints(CALL, new_table("d"), None, None, None, None, None, None)
    tables.create_table_with_constraints(CALL, new_table("e"), [], [], [], [], [], [])
    tables.create_table_req(CALL, CreateTableRequest(new_table("f", "@hive#default")))
    tables.create_table(CALL, new_table("g", catName="hive"))
    assert tables.get_all_tables(CALL, "default") == list("abcdefg")


def test_a_table_comes_with_its_constraints_or_not_at_all(tables: SimpleNamespace, catalog: Catalog) -> None:
    keys, wrong = [SQLPrimaryKey(column_name="a")], [SQLPrimaryKey(column_name="x")]
    for number, create in enumerate(
        (
            lambda keys: tables.create_table_with_constraints(CALL, new_table(), keys, None, None, None, None, None),
            lambda keys: tables.create_table_req(CALL, CreateTableRequest(new_table("u"), primaryKeys=keys)),
        )
    ):
        error = refusal(lambda create=create: create(wrong))
        assert error == InvalidObjectException("Parent column not found: x")
        assert len(tables.get_all_tables(CALL, "default")) == number
        create(keys)
    names = {event.event.event_type for event in catalog.events()}
    assert names == {"CREATE_DATABASE", "CREATE_TABLE", "ADD_PRIMARYKEY"}


def test_another_catalog_has_nothing(tables: SimpleNamespace) -> None:
    tables.create_table(CALL, new_table())
    assert refusal(lambda: tables.create_table(CALL, new_table("u", catName="spark"))) == InvalidObjectException(
        "@spark#default"
    )
    assert refusal(lambda: tables.get_table(CALL, "@spark#default", "t")) == NoSuchObjectException(
        "@spark#default.t table not found"
    )
    assert tables.get_all_tables(CALL, "@spark#default") == []
    assert tables.get_table_meta(CALL, "@spark#*", "*", []) == []


def test_a_name_with_a_marker_but_no_catalog(tables: SimpleNamespace) -> None:
    assert refusal(lambda: tables.get_table(CALL, "@default", "t")) == MetaException(
        "@default is prepended with the catalog marker but does not appear to have a catalog name in it"
    )


def test_the_catalog_is_shown_to_newer_callers_only(tables: SimpleNamespace) -> None:
    tables.create_table(CALL, new_table())
    assert tables.get_table(CALL, "default", "t").catName is None
    assert tables.get_table(NEWER, "default", "t").catName == "hive"
    assert tables.get_table(CALL, "default", "t").id is None
    assert tables.get_table(NEWER, "default", "t").id > 0
    assert tables.get_table(CALL, "@hive#default", "t").catName == "hive"
    assert tables.get_table_req(CALL, GetTableRequest("default", "t")).table.catName is None
    assert tables.get_table_req(CALL, GetTableRequest("default", "t", catName="hive")).table.catName == "hive"
    assert [table.catName for table in tables.get_table_objects_by_name(NEWER, "default", ["t"])] == ["hive"]
    assert [meta.catName for meta in tables.get_table_meta(CALL, "*", "*", [])] == [None]
    assert [meta.catName for meta in tables.get_table_meta(CALL, "@hive#*", "*", [])] == ["hive"]


def test_texts_have_plain_names(tables: SimpleNamespace) -> None:
    error = NoSuchObjectException("default.t table not found")
    assert refusal(lambda: tables.get_table(CALL, "@hive#default", "t")) == error
    assert refusal(lambda: tables.get_table_req(CALL, GetTableRequest("default", "t", catName="hive"))) == error
    assert refusal(lambda: tables.drop_table(CALL, "@hive#default", "t", True)) == error


@pytest.mark.parametrize("way", ["plain", "context", "request"])
def test_every_way_to_drop_one(tables: SimpleNamespace, catalog: Catalog, way: str) -> None:
    tables.create_table(CALL, new_table())
    if way == "plain":
        tables.drop_table(CALL, "@hive#default", "T", 1)
    elif way == "context":
        tables.drop_table_with_environment_context(CALL, "default", "t", True, EnvironmentContext({"ifPurge": "TRUE"}))
    else:
        request = DropTableRequest(catalogName="hive", dbName="default", tableName="t", deleteData=True, id="7")
        assert tables.drop_table_req(CALL, request) == AsyncOperationResp(id="7", finished=True)
    assert tables.get_all_tables(CALL, "default") == []
    assert not (catalog.warehouse / "t").exists()


def test_data_stays_when_the_caller_says_nothing(tables: SimpleNamespace, catalog: Catalog) -> None:
    tables.create_table(CALL, new_table())
    tables.drop_table(CALL, "default", "t", None)
    assert (catalog.warehouse / "t").is_dir()


def test_every_way_to_alter_one(tables: SimpleNamespace) -> None:
    tables.create_table(CALL, new_table(keys=columns("p int")))

    def changed(value: str, key: str = "k") -> object:
        return new_table(keys=columns("p int"), parameters={key: value})

    def stored() -> dict[str, str]:
        return tables.get_table(CALL, "default", "t").parameters

    tables.alter_table(CALL, "@hive#default", "t", changed("1"))
    assert stored()["k"] == "1"
    tables.alter_table_with_environment_context(CALL, "default", "t", changed("2"), None)
    assert stored()["k"] == "2"
    tables.alter_table_with_cascade(CALL, "default", "t", changed("3"), True)
    assert stored()["k"] == "3"
    context = EnvironmentContext({"expected_parameter_key": "k", "expected_parameter_value": "3"})
    tables.alter_table_with_environment_context(CALL, "default", "t", changed("4"), context)
    assert stored()["k"] == "4"
    request = AlterTableRequest(
        catName="hive",
        dbName="default",
        tableName="t",
        table=changed("5"),
        expectedParameterKey="k",
        expectedParameterValue="4",
    )
    assert tables.alter_table_req(CALL, request) == AlterTableResponse()
    assert stored()["k"] == "5"
    assert refusal(lambda: tables.alter_table_req(CALL, request)) == MetaException(
        "The table has been modified. The parameter value for key 'k' is '5'. The expected was value was '4'"
    )


def test_every_way_to_read_names(tables: SimpleNamespace) -> None:
    tables.create_table(CALL, new_table("a"))
    tables.create_table(CALL, new_table("v", table_type="VIRTUAL_VIEW"))
    assert tables.get_all_tables(CALL, "@hive#default") == ["a", "v"]
    assert tables.get_tables(CALL, "default", "*") == ["a", "v"]
    assert tables.get_tables(CALL, "default", None) == ["a", "v"]
    assert tables.get_tables_by_type(CALL, "default", "*", "VIRTUAL_VIEW") == ["v"]
    assert tables.get_table_names_by_filter(CALL, "default", 'hive_filter_field_owner__ = "nobody"', -1) == ["a", "v"]
    assert [meta.tableName for meta in tables.get_table_meta(CALL, "*", "*", ["VIRTUAL_VIEW"])] == ["v"]
    request = GetTablesExtRequest(catalog="hive", database="default", tableNamePattern="*", requestedFields=1)
    assert [info.tblName for info in tables.get_tables_ext(CALL, request)] == ["a", "v"]


def test_objects_by_request(tables: SimpleNamespace) -> None:
    for name in ("a", "b"):
        tables.create_table(CALL, new_table(name))

    def names(request: GetTablesRequest) -> list[str]:
        return [table.tableName for table in tables.get_table_objects_by_name_req(CALL, request).tables]

    assert names(GetTablesRequest("default", ["b", "x"])) == ["b"]
    assert names(GetTablesRequest("default", [])) == []
    assert names(GetTablesRequest("default", None, catName="hive", tablesPattern="a*")) == ["a"]
    assert [table.tableName for table in tables.get_table_objects_by_name(CALL, "default", ["a"])] == ["a"]


def test_truncating(tables: SimpleNamespace, catalog: Catalog) -> None:
    tables.create_table(CALL, new_table())
    for truncate in (
        lambda: tables.truncate_table(CALL, "@hive#default", "t", None),
        lambda: tables.truncate_table_req(CALL, TruncateTableRequest("default", "t")),
    ):
        (catalog.warehouse / "t/file").write_text("x")
        truncate()
        assert list((catalog.warehouse / "t").iterdir()) == []


def test_a_dry_run_changes_nothing(tables: SimpleNamespace) -> None:
    table = tables.translate_table_dryrun(CALL, CreateTableRequest(new_table("T")))
    assert (table.tableName, table.catName) == ("t", "hive")
    assert tables.get_all_tables(CALL, "default") == []


def test_a_request_left_out_is_a_meta_exception(tables: SimpleNamespace) -> None:
    for method in (
        tables.create_table_req,
        tables.drop_table_req,
        tables.truncate_table_req,
        tables.get_tables_ext,
        tables.get_table_req,
        tables.get_table_objects_by_name_req,
        tables.alter_table_req,
        tables.translate_table_dryrun,
        tables.create_table,
    ):
        assert isinstance(refusal(lambda method=method: method(CALL, None)), MetaException)


def test_a_bucketing_column_must_be_a_column_for_newer_callers_only(tables: SimpleNamespace) -> None:
    for name in ("old", "new"):
        tables.create_table(CALL, new_table(name))
        changed = new_table(name)
        changed.sd.location = tables.get_table(CALL, "default", name).sd.location
        changed.sd.bucketCols, changed.sd.numBuckets = ["A", "Gone"], 2
        if name == "old":
            tables.alter_table(CALL, "default", name, changed)
            assert tables.get_table(CALL, "default", name).sd.bucketCols == ["A", "Gone"]
            continue
        error = InvalidOperationException("Bucket columns - [gone] doesn't match with any table columns")
        for alter in (
            lambda table: tables.alter_table(NEWER, "default", "new", table),
            lambda table: tables.alter_table_with_environment_context(NEWER, "default", "new", table, None),
            lambda table: tables.alter_table_with_cascade(CALL, "@hive#default", "new", table, True),
            lambda table: tables.alter_table_req(CALL, AlterTableRequest("hive", "default", "new", table)),
        ):
            assert refusal(lambda alter=alter, table=changed: alter(table)) == error
        assert tables.get_table(CALL, "default", name).sd.bucketCols == []
        changed.sd.bucketCols = ["A"]
        tables.alter_table_req(CALL, AlterTableRequest("hive", "default", name, changed))
        assert tables.get_table(CALL, "default", name).sd.bucketCols == ["A"]


def test_an_id_that_is_sent_is_not_the_table_s(tables: SimpleNamespace) -> None:
    tables.create_table(NEWER, new_table("first", id=7_000))
    tables.create_table_req(NEWER, CreateTableRequest(new_table("second", id=7_000)))
    ids = {tables.get_table(NEWER, "default", name).id for name in ("first", "second")}
    assert len(ids) == 2
    assert 7_000 not in ids


def test_newer_callers_may_have_hyphens_in_names(newer: Peer, older: Peer) -> None:
    """PyIceberg's own tests use such names; Hive 4 takes them, and Hive 2.3 does not."""
    newer.ask("create_database", Database(name="my-sales"))
    newer.ask("create_table", new_table("my-orders", "my-sales"))
    with pytest.raises(InvalidObjectException, match="my-own is not a valid database name"):
        older.ask("create_database", Database(name="my-own"))
    with pytest.raises(InvalidObjectException, match="my-own is not a valid object name"):
        older.ask("create_table", new_table("my-own", "my-sales"))
    # Older callers work with what is there, and give no such name.
    table = older.ask("get_table", "my-sales", "my-orders")
    table.parameters["changed"] = "yes"
    older.ask("alter_table", "my-sales", "my-orders", table)
    with pytest.raises(InvalidOperationException, match="my-own is not a valid object name"):
        older.ask("alter_table", "my-sales", "my-orders", new_table("my-own", "my-sales", location=table.sd.location))
    newer.ask("alter_table", "my-sales", "my-orders", new_table("my-own", "my-sales", location=table.sd.location))
    assert older.ask("get_all_tables", "my-sales") == ["my-own"]
    older.ask("drop_database", "my-sales", True, True)
    assert older.ask("get_all_databases") == ["default"]
