"""Creating, reading and dropping tables on the real store and real directories (semantics §2.6, §3)."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    EnvironmentContext,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Order,
    PrincipalPrivilegeSet,
    PrincipalType,
    SkewedInfo,
    StorageDescriptor,
    Table,
    TableMeta,
    ThriftException,
    UnknownDBException,
)
from tests.support.catalog import NOW, Catalog, columns, new_table

ORC_IN = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ORC_OUT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
EXTERNAL = {"EXTERNAL": "TRUE"}


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def get(catalog: Catalog, name: str = "t", db_name: str = "default") -> Table:
    return catalog.tables.get(TableName(db_name, name))


def with_sd(table: Table, **changed: Any) -> Table:
    return msgspec.structs.replace(table, sd=msgspec.structs.replace(table.sd, **changed))


def test_a_table_is_stored_complete(catalog: Catalog) -> None:
    catalog.tables.create(
        Table(
            tableName="T",
            dbName="Default",
            sd=StorageDescriptor(cols=columns("A int"), serdeInfo=new_table().sd.serdeInfo),
        )
    )
    assert get(catalog) == Table(
        tableName="t",
        dbName="default",
        createTime=NOW,
        lastAccessTime=0,
        retention=0,
        sd=StorageDescriptor(
            cols=[FieldSchema("a", "int", None)],
            location=f"{catalog.root}/t",
            compressed=False,
            numBuckets=0,
            serdeInfo=msgspec.structs.replace(new_table().sd.serdeInfo, parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
            skewedInfo=SkewedInfo([], [], {}),
            storedAsSubDirectories=False,
        ),
        partitionKeys=[],
        parameters={"transient_lastDdlTime": str(NOW)},
        tableType="MANAGED_TABLE",
        rewriteEnabled=False,
    )
    assert (catalog.warehouse / "t").is_dir()


def test_what_clients_feed_back_survives(catalog: Catalog) -> None:
    parameters = {"spark.sql.sources.schema": '{"a":"\\"\u0001\t\n😀"}' * 500, "K": "", "transient_lastDdlTime": "7"}
    table = new_table(
        cols=[FieldSchema("b", "array<struct<X:int>>", ""), FieldSchema("a", "decimal(10,2)", "ü")],
        keys=[FieldSchema("P", "string", None)],
        parameters=parameters,
        lastAccessTime=3,
        retention=4,
        viewOriginalText="o",
        viewExpandedText="e",
        rewriteEnabled=True,
        ownerType=PrincipalType.ROLE,
    )
    table = with_sd(
        table,
        bucketCols=["A"],
        sortCols=[Order("B", 1), Order("a", 0)],
        parameters={"x": "y"},
        compressed=True,
        numBuckets=4,
        skewedInfo=SkewedInfo(["b"], [["1"], ["2"]], {("1",): "file:/x/b=1"}),
        storedAsSubDirectories=True,
    )
    catalog.tables.create(table)
    stored = get(catalog)
    assert stored.parameters == parameters
    assert stored.sd.cols == table.sd.cols
    assert stored.partitionKeys == [FieldSchema("p", "string", None)]
    assert stored.sd.bucketCols == ["A"]
    assert stored.sd.sortCols == [Order("b", 1), Order("a", 0)]
    assert stored.sd.skewedInfo == table.sd.skewedInfo
    assert (stored.sd.parameters, stored.sd.numBuckets, stored.sd.compressed) == ({"x": "y"}, 4, True)
    assert (stored.lastAccessTime, stored.retention, stored.rewriteEnabled) == (3, 4, True)
    assert (stored.viewOriginalText, stored.viewExpandedText) == ("o", "e")
    assert stored.ownerType == PrincipalType.ROLE


def test_what_belongs_to_the_call_is_not_stored(catalog: Catalog) -> None:
    table = new_table(
        privileges=PrincipalPrivilegeSet(), temporary=True, writeId=-1, catName="hive", createTime=-5, txnId=3
    )
    catalog.tables.create(table)
    stored = get(catalog)
    assert (stored.privileges, stored.temporary, stored.writeId, stored.catName, stored.txnId) == (None,) * 5
    assert stored.createTime == NOW


@pytest.mark.parametrize(
    ("sent", "parameters", "stored"),
    [
        ("MANAGED_TABLE", {}, "MANAGED_TABLE"),
        ("MANAGED_TABLE", EXTERNAL, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", EXTERNAL, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", {}, "MANAGED_TABLE"),
        ("EXTERNAL_TABLE", {"EXTERNAL": "true"}, "MANAGED_TABLE"),
        ("ODD", {}, "ODD"),
        (None, {}, "MANAGED_TABLE"),
        (None, EXTERNAL, "EXTERNAL_TABLE"),
    ],
)
def test_table_types(catalog: Catalog, sent: str | None, parameters: dict[str, str], stored: str) -> None:
    catalog.tables.create(new_table(table_type=sent, parameters=parameters))
    assert get(catalog).tableType == stored


def test_a_view_has_no_place(catalog: Catalog) -> None:
    catalog.tables.create(new_table(table_type="VIRTUAL_VIEW", viewOriginalText="SELECT 1"))
    assert get(catalog).sd.location is None
    assert "numFiles" not in get(catalog).parameters
    assert list(catalog.warehouse.iterdir()) == []


def test_a_view_may_name_a_place_that_nobody_makes(catalog: Catalog, tmp_path: Path) -> None:
    catalog.tables.create(new_table(table_type="VIRTUAL_VIEW", location=f"file://{tmp_path}//v/"))
    assert get(catalog).sd.location == f"file:{tmp_path}/v"
    assert not (tmp_path / "v").exists()
    up = new_table("u", table_type="VIRTUAL_VIEW", location="file:/a/../b")
    assert isinstance(refusal(lambda: catalog.tables.create(up)), MetaException)


def test_a_file_in_the_way_is_named(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    error = refusal(lambda: catalog.tables.create(new_table(location=f"file:{tmp_path}/taken")))
    assert error == MetaException(f"file:{tmp_path}/taken is not a directory or unable to create one")
    assert catalog.tables.names("default") == []


def test_a_materialized_view_and_an_external_table_have_directories(catalog: Catalog, tmp_path: Path) -> None:
    catalog.tables.create(new_table("mv", table_type="MATERIALIZED_VIEW"))
    catalog.tables.create(new_table("e", table_type="EXTERNAL_TABLE", parameters=EXTERNAL))
    catalog.tables.create(new_table("f", location=f"file:{tmp_path}/far/away/"))
    assert (catalog.warehouse / "mv").is_dir()
    assert (catalog.warehouse / "e").is_dir()
    assert (tmp_path / "far/away").is_dir()
    assert get(catalog, "f").sd.location == f"file:{tmp_path}/far/away"


def test_an_empty_location_means_the_default_one(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", locationUri="hdfs://nn/d"))
    catalog.tables.create(new_table("a/B", "d", location=""))
    assert get(catalog, "a/b", "d").sd.location == "hdfs://nn/d/a-47-b"


@pytest.mark.parametrize(
    ("table", "kind", "text"),
    [
        (new_table("a-b"), InvalidObjectException, "a-b is not a valid object name"),
        (new_table(" t"), InvalidObjectException, " t is not a valid object name"),
        (new_table(""), InvalidObjectException, " is not a valid object name"),
        (new_table("a\0b"), InvalidObjectException, "a\0b is not a valid object name"),
        (new_table(cols=columns("a xyz")), InvalidObjectException, "Invalid column type: xyz"),
        (new_table(cols=columns("a INT")), InvalidObjectException, "Invalid column type: INT"),
        (new_table(keys=columns("p nothing<x>")), InvalidObjectException, "Invalid partition column type: nothing<x>"),
        (
            with_sd(new_table(), skewedInfo=SkewedInfo(["A", "b", "c"], [], {})),
            InvalidObjectException,
            "Invalid skew column [A, c]",
        ),
        (new_table(db_name="Nope"), InvalidObjectException, "Nope"),
        (new_table(db_name=""), InvalidObjectException, None),
        (new_table(db_name="a\0b"), InvalidObjectException, "a\0b"),
        (new_table(db_name="@spark#default"), InvalidObjectException, "@spark#default"),
        (with_sd(new_table(), serdeInfo=None), MetaException, "Invalid SerDeInfo object"),
        (
            new_table(location="x://h/t"),
            MetaException,
            'Got exception: org.apache.hadoop.fs.UnsupportedFileSystemException No FileSystem for scheme "x"',
        ),
        (
            new_table(parameters={"Transactional": "maybe"}),
            MetaException,
            "'transactional' property of TBLPROPERTIES may only have value 'true': default.t",
        ),
        (
            new_table(parameters={"transactional": "true"}),
            MetaException,
            "The table must be stored using an ACID compliant format (such as ORC): default.t",
        ),
    ],
)
def test_what_is_no_table_is_refused(catalog: Catalog, table: Table, kind: type[ThriftException], text: str) -> None:
    assert refusal(lambda: catalog.tables.create(table)) == kind(text)
    assert catalog.tables.names("default") == []
    assert list(catalog.warehouse.iterdir()) == []


@pytest.mark.parametrize(
    "table",
    [
        None,
        new_table(None),
        new_table(db_name=None),
        msgspec.structs.replace(new_table(), sd=None),
        with_sd(new_table(), cols=None),
        new_table(cols=[FieldSchema("a", None, None)]),
        new_table(cols=[FieldSchema("a", "", None)]),
        new_table(cols=[FieldSchema(None, "int", None)]),
        new_table(cols=columns("a int", "A string")),
        new_table(keys=columns("p int", "P int")),
        new_table(location="file:/a/../../etc"),
        new_table(location="relative"),
        new_table(location="file:/a\0b"),
        new_table("x" * 3000),
        msgspec.structs.replace(new_table(), owner="a\0b"),
    ],
)
def test_what_cannot_be_is_a_meta_exception_and_leaves_nothing(catalog: Catalog, table: Table | None) -> None:
    assert isinstance(refusal(lambda: catalog.tables.create(table)), MetaException)
    assert list(catalog.warehouse.iterdir()) == []


def test_an_empty_column_list_is_a_table(catalog: Catalog) -> None:
    catalog.tables.create(new_table(cols=[]))
    assert get(catalog).sd.cols == []


def test_the_type_check_is_shallow(catalog: Catalog) -> None:
    types = ["array<foo>", "timestamp with local time zone", "decimal(99)", "<derived from deserializer>"]
    catalog.tables.create(new_table(cols=[FieldSchema(f"c{number}", text) for number, text in enumerate(types)]))
    assert [column.type for column in get(catalog).sd.cols] == types


def test_an_existing_table_of_any_type_is_in_the_way(catalog: Catalog) -> None:
    catalog.tables.create(new_table(table_type="VIRTUAL_VIEW"))
    error = refusal(lambda: catalog.tables.create(new_table("T")))
    assert error == AlreadyExistsException("Table T already exists")
    assert not (catalog.warehouse / "t").exists()


def test_a_refused_table_leaves_the_directory_of_the_first(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    refusal(lambda: catalog.tables.create(new_table()))
    assert (catalog.warehouse / "t").is_dir()


def test_transactional_is_spelled_uniformly(catalog: Catalog) -> None:
    acid = with_sd(new_table(parameters={"TRANSACTIONAL": "TRUE"}), inputFormat=ORC_IN, outputFormat=ORC_OUT)
    catalog.tables.create(acid)
    assert get(catalog).parameters.items() >= {"transactional": "true", "transactional_properties": "default"}.items()
    assert "TRANSACTIONAL" not in get(catalog).parameters
    catalog.tables.create(new_table("u", parameters={"transactional": "false"}))
    assert "transactional" not in get(catalog, "u").parameters


def test_an_external_table_is_not_transactional(catalog: Catalog) -> None:
    acid = with_sd(
        new_table(parameters={"transactional": "true", **EXTERNAL}, table_type="EXTERNAL_TABLE"),
        bucketCols=["a"],
        inputFormat=ORC_IN,
        outputFormat=ORC_OUT,
    )
    error = refusal(lambda: catalog.tables.create(acid))
    assert error == MetaException("default.t cannot be declared transactional because it's an external table")


def files_in(folder: Path, **sizes: int) -> str:
    folder.mkdir()
    for name, size in sizes.items():
        (folder / name).write_bytes(b"x" * size)
    return f"file:{folder}"


def test_files_that_are_there_already_are_counted(catalog: Catalog, tmp_path: Path) -> None:
    location = files_in(tmp_path / "there", a=3, b=4, _hidden=5)
    catalog.tables.create(new_table(location=location, parameters={"COLUMN_STATS_ACCURATE": "true"}))
    assert get(catalog).parameters == {"transient_lastDdlTime": str(NOW), "numFiles": "2", "totalSize": "7"}


@pytest.mark.parametrize(
    ("changed", "environment"),
    [
        ({"keys": columns("p int")}, None),
        ({"parameters": {"numFiles": "9", "totalSize": "9"}}, None),
        ({"parameters": {"DO_NOT_UPDATE_STATS": "true"}}, None),
        ({"table_type": "VIRTUAL_VIEW"}, None),
    ],
)
def test_files_are_not_counted(
    catalog: Catalog, tmp_path: Path, changed: dict[str, Any], environment: EnvironmentContext | None
) -> None:
    location = files_in(tmp_path / "there", a=3)
    catalog.tables.create(new_table(location=location, **changed), environment)
    assert get(catalog).parameters.get("numFiles") in (None, "9")


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize(
    ("changed", "stays"),
    [({}, False), ({"keys": columns("p int")}, True), ({"table_type": "VIRTUAL_VIEW"}, True)],
)
def test_the_mark_that_keeps_statistics_is_taken_where_files_are_counted(
    catalog: Catalog, changed: dict[str, Any], stays: bool, value: str
) -> None:
    catalog.tables.create(new_table(parameters={"DO_NOT_UPDATE_STATS": value}, **changed))
    assert get(catalog).parameters.get("DO_NOT_UPDATE_STATS") == (value if stays else None)


def test_a_new_directory_is_not_counted(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    assert "numFiles" not in get(catalog).parameters


def test_a_task_that_counted_makes_the_statistics_accurate(catalog: Catalog, tmp_path: Path) -> None:
    environment = EnvironmentContext({"STATS_GENERATED": "TASK"})
    catalog.tables.create(new_table(location=files_in(tmp_path / "there", a=3)), environment)
    assert get(catalog).parameters["COLUMN_STATS_ACCURATE"] == '{"BASIC_STATS":"true"}'


def test_creating_is_an_event_with_the_table(catalog: Catalog) -> None:
    catalog.tables.create(new_table("T"))
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("CREATE_TABLE", "default", "t")
    assert list(message) == [
        "server", "servicePrincipal", "db", "table", "tableType", "tableObjJson", "timestamp", "files",
    ]  # fmt: skip
    assert message["tableObjJson"].startswith('{"1":{"str":"t"},"2":{"str":"default"}')
    assert (message["tableType"], message["timestamp"], message["files"]) == ("MANAGED_TABLE", NOW, [])


def test_a_preview_stores_nothing(catalog: Catalog) -> None:
    preview = catalog.tables.preview(new_table("T"))
    assert preview.sd.location == f"{catalog.root}/t"
    assert catalog.tables.names("default") == []
    assert list(catalog.warehouse.iterdir()) == []


@pytest.mark.parametrize(
    ("db_name", "tbl_name", "text"),
    [
        ("default", "Nope", "default.Nope table not found"),
        ("Nope", "t", "Nope.t table not found"),
        ("", "t", ".t table not found"),
        ("default", "t\0", "default.t\0 table not found"),
    ],
)
def test_a_missing_table_is_named_as_asked_for(catalog: Catalog, db_name: str, tbl_name: str, text: str) -> None:
    name = TableName(db_name, tbl_name)
    assert refusal(lambda: catalog.tables.get(name)) == NoSuchObjectException(text)
    assert refusal(lambda: catalog.tables.drop(name, True)) == NoSuchObjectException(text)


def test_names_left_out_are_meta_exceptions(catalog: Catalog) -> None:
    for action in (
        lambda: catalog.tables.get(TableName(None, "t")),
        lambda: catalog.tables.get(TableName("default", None)),
        lambda: catalog.tables.drop(TableName("default", None), True),
        lambda: catalog.tables.names(None),
        lambda: catalog.tables.names(None, "*"),
    ):
        assert isinstance(refusal(action), MetaException)


def test_names_are_found_however_they_are_spelled(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    assert get(catalog, " T ", "  DEFAULT ").tableName == "t"


def test_a_managed_table_takes_its_directory_along(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    (catalog.warehouse / "t/file").write_text("x")
    catalog.tables.drop(TableName("Default", "T"), True)
    assert not (catalog.warehouse / "t").exists()
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("DROP_TABLE", "default", "t")
    assert list(message) == ["server", "servicePrincipal", "db", "table", "tableType", "tableObjJson", "timestamp"]
    assert json.loads(message["tableObjJson"])["1"] == {"str": "t"}


@pytest.mark.parametrize(
    ("parameters", "delete_data", "stays"),
    [
        ({}, True, False),
        ({}, False, True),
        (EXTERNAL, True, True),
        ({"EXTERNAL": "true"}, True, True),
        ({**EXTERNAL, "external.table.purge": "true"}, True, False),
        ({"EXTERNAL": "FALSE"}, True, False),
    ],
)
def test_whose_data_a_drop_deletes(
    catalog: Catalog, parameters: dict[str, str], delete_data: bool, stays: bool
) -> None:
    catalog.tables.create(new_table(parameters=parameters))
    catalog.tables.drop(TableName("default", "t"), delete_data)
    assert (catalog.warehouse / "t").exists() is stays


def test_a_table_that_lies_around_its_database_keeps_the_directory(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d", location=f"{catalog.root}/d.db"))
    catalog.tables.create(new_table("root", "d", location=catalog.root))
    catalog.tables.drop(TableName("d", "t"), True)
    catalog.tables.drop(TableName("d", "root"), True)
    assert (catalog.warehouse / "d.db").is_dir()


def test_a_directory_that_cannot_be_deleted_is_no_error(catalog: Catalog, tmp_path: Path) -> None:
    catalog.tables.create(new_table(location=f"file:{tmp_path}/t"))
    (tmp_path / "t").rmdir()
    catalog.tables.drop(TableName("default", "t"), True)
    assert catalog.tables.names("default") == []


def test_an_index_table_is_not_dropped(catalog: Catalog) -> None:
    catalog.tables.create(new_table(table_type="INDEX_TABLE"))
    assert refusal(lambda: catalog.tables.drop(TableName("default", "t"), True)) == MetaException(
        "java.lang.RuntimeException: The table t is an index table. Please do drop index instead."
    )
    assert catalog.tables.names("default") == ["t"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["a1", "a_2", "b1"]),
        ("*", ["a1", "a_2", "b1"]),
        (".*", ["a1", "a_2", "b1"]),
        ("A*", ["a1", "a_2"]),
        ("a.", ["a1"]),
        ("b1|a_2|b1", ["a_2", "b1"]),
        ("", []),
        ("a\0", []),
    ],
)
def test_patterns_of_names(catalog: Catalog, pattern: str | None, names: list[str]) -> None:
    for name in ("b1", "a_2", "a1"):
        catalog.tables.create(new_table(name))
    assert catalog.tables.names(" DEFAULT ", pattern) == names
    assert catalog.tables.names("unknown", pattern) == []


def test_names_of_one_type(catalog: Catalog) -> None:
    catalog.tables.create(new_table("t"))
    catalog.tables.create(new_table("v", table_type="VIRTUAL_VIEW"))
    assert catalog.tables.names_of_type("default", "*", "VIRTUAL_VIEW") == ["v"]
    assert catalog.tables.names_of_type("default", ".*", "MANAGED_TABLE") == ["t"]
    assert catalog.tables.names_of_type("unknown", "*", "MANAGED_TABLE") == []
    assert refusal(lambda: catalog.tables.names_of_type("default", "*", "virtual_view")) == MetaException(
        "java.lang.IllegalArgumentException: No enum constant org.apache.hadoop.hive.metastore.TableType.virtual_view"
    )
    error = refusal(lambda: catalog.tables.names_of_type("default", "*", None))
    assert error == MetaException("java.lang.NullPointerException: Name is null")


def test_metas(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", parameters={"comment": "c"}))
    catalog.tables.create(new_table("v", "d", table_type="VIRTUAL_VIEW"))
    everything = [
        TableMeta("d", "v", "VIRTUAL_VIEW", None, None, "nobody"),
        TableMeta("default", "t", "MANAGED_TABLE", "c", None, "nobody"),
    ]
    assert catalog.tables.metas(None, None, None) == everything
    assert catalog.tables.metas("*", "*", []) == everything
    assert catalog.tables.metas("d", "*", None) == everything[:1]
    assert catalog.tables.metas("*", "T|x", ["MANAGED_TABLE", "X"]) == everything[1:]
    assert catalog.tables.metas("*", "*", [""]) == []
    assert catalog.tables.metas("", "*", None) == []
    assert catalog.tables.metas("*", "a\0", None) == []


def test_objects_by_name(catalog: Catalog) -> None:
    for name in ("a", "b"):
        catalog.tables.create(new_table(name))
    found = catalog.tables.objects("Default", ["B", "a", "b", "missing", "\0"])
    assert sorted(table.tableName for table in found) == ["a", "b"]
    assert catalog.tables.objects("default", []) == []
    assert catalog.tables.objects("missing", []) == []


@pytest.mark.parametrize(
    ("db_name", "names", "error"),
    [
        (None, ["t"], UnknownDBException("DB name is null or empty")),
        ("", ["t"], UnknownDBException("DB name is null or empty")),
        ("D", None, InvalidOperationException("D cannot find null tables")),
        ("Nope", ["t"], UnknownDBException("Could not find database Nope")),
        ("a\0b", ["t"], UnknownDBException("Could not find database a\0b")),
    ],
)
def test_objects_that_cannot_be_asked_for(
    catalog: Catalog, db_name: str | None, names: list[str] | None, error: ThriftException
) -> None:
    assert refusal(lambda: catalog.tables.objects(db_name, names)) == error


@pytest.mark.parametrize(
    ("filter", "limit", "names"),
    [
        ("", -1, ["a", "b", "v"]),
        ("", 2, ["a", "b"]),
        ("", 0, []),
        ('hive_filter_field_params__presto_view = "true"', -1, ["v"]),
        ('hive_filter_field_params__Presto_view = "true"', -1, []),
        ('hive_filter_field_owner__ like ".*obod.*"', -1, ["a", "b", "v"]),
        ('hive_filter_field_owner__ = "x"', -1, []),
        ("hive_filter_field_last_access__ > 5", -1, ["b"]),
        ('hive_filter_field_owner__ = "nobody" and hive_filter_field_params__k <> "1"', 10, ["b"]),
    ],
)
def test_names_by_filter(catalog: Catalog, filter: str, limit: int, names: list[str]) -> None:
    catalog.tables.create(new_table("a", parameters={"k": "1"}))
    catalog.tables.create(new_table("b", parameters={"k": "2"}, lastAccessTime=6))
    catalog.tables.create(new_table("v", parameters={"presto_view": "true"}))
    assert catalog.tables.names_by_filter("Default", filter, limit) == names
    assert catalog.tables.names_by_filter("unknown", filter, limit) == []


@pytest.mark.parametrize(
    ("db_name", "filter", "kind", "text"),
    [
        (None, "", UnknownDBException, "DB name is null or empty"),
        ("", "", UnknownDBException, "DB name is null or empty"),
        ("D", None, InvalidOperationException, "D cannot apply null filter"),
        ("default", "a = ", MetaException, "Error parsing partition filter"),
        ("default", 'owner = "x"', MetaException, "Invalid key name in filter.  Use constants from"),
        (
            "default",
            'hive_filter_field_last_access__ like "1"',
            MetaException,
            "Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS",
        ),
        (
            "default",
            'hive_filter_field_params__k > "1"',
            MetaException,
            "Only [=, <>, !=, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS",
        ),
    ],
)
def test_filters_that_are_none(
    catalog: Catalog, db_name: str | None, filter: str | None, kind: type[ThriftException], text: str
) -> None:
    error = refusal(lambda: catalog.tables.names_by_filter(db_name, filter, -1))
    assert type(error) is kind
    assert error.message is not None
    assert error.message.startswith(text)


def test_extended_names(catalog: Catalog) -> None:
    catalog.tables.create(new_table("a", requiredReadCapabilities=["HIVEFULLACIDREAD"]))
    catalog.tables.create(new_table("b"))
    assert [info.tblName for info in catalog.tables.extended("default", "*", 0, None)] == ["a", "b"]
    (info,) = catalog.tables.extended("default", "*", 2147483647, 1)
    assert (info.accessType, info.requiredReadCapabilities) == (8, ["HIVEFULLACIDREAD"])
    (info,) = catalog.tables.extended("default", "b", 0, 1)
    assert (info.accessType, info.requiredReadCapabilities) == (None, None)
    assert catalog.tables.extended("unknown", "*", 3, None) == []


def test_one_of_many_creates_the_table_and_its_directory_stays(catalog: Catalog) -> None:
    def create(number: int) -> bool:
        try:
            catalog.tables.create(new_table(parameters={"number": str(number)}))
        except AlreadyExistsException:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(create, range(8))).count(True) == 1
    assert (catalog.warehouse / "t").is_dir()
    assert [event.event.event_type for event in catalog.events()].count("CREATE_TABLE") == 1


def test_creating_and_dropping_side_by_side_keeps_tables_and_directories_together(catalog: Catalog) -> None:
    def churn(number: int) -> None:
        for round_number in range(5):
            name = f"t{number}_{round_number}"
            catalog.tables.create(new_table(name))
            if round_number % 2:
                catalog.tables.drop(TableName("default", name), True)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(churn, range(8)))
    names = catalog.tables.names("default")
    assert len(names) == 24
    assert sorted(path.name for path in catalog.warehouse.iterdir()) == names
