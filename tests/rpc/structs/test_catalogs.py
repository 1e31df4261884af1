"""Keys of databases in other catalogs: made of arguments, taken apart in answers (semantics §1.4)."""

from typing import Any

import pytest

from hms_gateway.rpc.structs import (
    METHODS,
    AddPartitionsRequest,
    AllTableConstraintsResponse,
    CreateTableRequest,
    CreationMetadata,
    Database,
    GetDatabaseObjectsRequest,
    GetTableRequest,
    GetTableResult,
    HiveObjectPrivilege,
    HiveObjectRef,
    Partition,
    PrivilegeBag,
    SQLAllTableConstraints,
    SQLForeignKey,
    SQLPrimaryKey,
    Table,
)
from hms_gateway.rpc.structs.catalogs import (
    InvalidCatalogMarker,
    catalog_of,
    database_key,
    fold,
    key_of_qualified,
    key_within,
    plain_name,
    prefix_of,
    shown_text,
    unfolder,
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sales", "sales"),
        (None, None),
        ("", ""),
        ("a#b", "a#b"),
        ("@hive#Sales", "Sales"),
        ("@HIVE#", None),
        ("@hive#!", ""),
        ("@hive#def*|a#b", "def*|a#b"),
        ("@lake#sales", "@lake#sales"),
        ("@ LAKE # Sales ", "@lake#Sales"),
        ("@lake#", "@lake#"),
        ("@#sales", "@#sales"),
        ("@lake#a#b", "@lake#a#b"),
        (" @lake#a", "# @lake#a"),
    ],
)
def test_a_database_has_one_key(text: str | None, key: str | None) -> None:
    assert database_key(text) == key
    if key is not None and not key.startswith(("@", "#")):
        assert (prefix_of(key), plain_name(key), catalog_of(key)) == ("", key, "hive")


def test_a_key_is_its_own_key_and_is_taken_apart() -> None:
    assert database_key("@lake#sales") == key_within(" Lake ", "sales") == key_within("hive", "@lake#sales")
    assert (prefix_of("@lake#sales"), plain_name("@lake#sales"), catalog_of("@lake#sales")) == (
        "@lake#",
        "sales",
        "lake",
    )
    assert key_of_qualified("lake.sales") == "@lake#sales"
    assert key_of_qualified("x.lake.sales") == "@lake#sales"
    assert key_of_qualified("hive.sales") == key_of_qualified("sales") == "sales"


def test_a_marker_without_separator_is_refused() -> None:
    with pytest.raises(InvalidCatalogMarker) as refused:
        database_key("@lake")
    assert str(refused.value) == (
        "@lake is prepended with the catalog marker but does not appear to have a catalog name in it"
    )


def test_texts_say_catalog_and_database() -> None:
    assert shown_text("@lake#sales.t table not found", ["@lake#sales.t"]) == "lake.sales.t table not found"
    assert shown_text("@lake#sales", ["@lake#sales"]) == "sales"
    text = "Partition(dbName:@lake#sales, tableName:t)"
    assert shown_text(text, ["@lake#sales.t"]) == "Partition(dbName:sales, tableName:t)"
    assert shown_text("no @lake#sales.t", ["lake.sales.t"]) == "no lake.sales.t"
    assert shown_text("no @lake#sales.t", ["mine.lake.sales.t"]) == "no lake.sales.t"
    assert shown_text("no @lake#sales.t", ["a.@lake#b.c"]) == "no @lake#sales.t"
    assert shown_text(text, ["sales.t"]) == text
    assert shown_text("a@b and c#d", ["@b#x"]) == "a@b and c#d"


def folded(method: str, *values: Any) -> Any:
    arguments = METHODS[method].arguments(*values)
    fold(arguments)
    return arguments


def test_fields_beside_a_catalog_become_keys() -> None:
    assert folded("get_table_req", GetTableRequest("Sales", "t", catName="Lake")).req.dbName == "@lake#Sales"
    assert folded("get_table_req", GetTableRequest("Sales", "t", catName="HIVE")).req.dbName == "Sales"
    assert folded("get_table_req", GetTableRequest("@lake#s", "t", catName="hive")).req.dbName == "@lake#s"
    assert folded("get_table_req", GetTableRequest("@hive#s", "t", catName="lake")).req.dbName == "@lake#@hive#s"
    assert folded("get_databases_req", GetDatabaseObjectsRequest("lake", "a*")).request.pattern == "@lake#a*"
    assert folded("create_database", Database("s", catalogName="lake")).database.name == "@lake#s"
    arguments = folded("update_creation_metadata", "lake", "s", "v", CreationMetadata("lake", "s", "v"))
    assert arguments.dbname == arguments.creation_metadata.dbName == "@lake#s"


def test_a_struct_without_a_catalog_is_in_that_around_it() -> None:
    request = AddPartitionsRequest("s", "t", [Partition(dbName="s"), Partition(dbName="s", catName="hive")])
    request.catName = "lake"
    parts = folded("add_partitions_req", request).request.parts
    assert [one.dbName for one in parts] == ["@lake#s", "s"]
    assert folded("alter_table", "@lake#s", "t", Table("t", "s")).new_tbl.dbName == "@lake#s"
    assert folded("alter_table", "@lake#s", "t", Table("t", "s", catName="hive")).new_tbl.dbName == "s"
    assert folded("alter_table", "s", "t", Table("t", "s")).new_tbl.dbName == "s"


def test_constraints_are_in_the_catalog_of_the_new_table() -> None:
    request = CreateTableRequest(Table("t", "s", catName="lake"), primaryKeys=[SQLPrimaryKey("s", "t")])
    request = folded("create_table_req", request).request
    assert (request.table.dbName, request.primaryKeys[0].table_db) == ("@lake#s", "@lake#s")
    arguments = folded("create_table_with_constraints", Table("t", "s", catName="lake"), [SQLPrimaryKey("s", "t")])
    assert arguments.primaryKeys[0].table_db == "@lake#s"


def test_an_element_of_a_list_says_nothing_of_the_next_one() -> None:
    refs = [HiveObjectRef(dbName="s", catName="lake"), HiveObjectRef(dbName="s")]
    bag = PrivilegeBag([HiveObjectPrivilege(ref) for ref in refs])
    folded("grant_privileges", bag)
    assert [ref.dbName for ref in refs] == ["@lake#s", "s"]


def shown(method: str, answer: Any) -> Any:
    show = unfolder(METHODS[method].definition, lists_databases=method == "get_databases")
    assert show is not None
    return show(answer)


def test_answers_have_plain_names_and_catalogs() -> None:
    view = Table("v", "@lake#s", creationMetadata=CreationMetadata("lake", "@lake#s", "v"), catName="hive")
    expected = Table("v", "s", creationMetadata=CreationMetadata("lake", "s", "v"), catName="lake")
    assert shown("get_table", view) == expected
    assert view.dbName == "@lake#s"
    assert shown("get_table_req", GetTableResult(view)) == GetTableResult(expected)
    assert shown("get_databases", ["@lake#a", "@lake#b"]) == ["a", "b"]
    plain = [Table("t", "s", catName="hive")]
    assert shown("get_table_objects_by_name", plain) is plain


def test_the_other_end_in_another_catalog_keeps_its_key() -> None:
    key = SQLForeignKey("@lake#s", "t", fktable_db="@other#s", fktable_name="u")
    answer = AllTableConstraintsResponse(SQLAllTableConstraints(foreignKeys=[key]))
    found = shown("get_all_table_constraints", answer).allTableConstraints.foreignKeys[0]
    assert (found.catName, found.pktable_db, found.fktable_db) == ("lake", "s", "@other#s")
