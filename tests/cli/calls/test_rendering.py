"""Answers as people see them."""

import io

from rich.console import Console

from hms_gateway.cli.calls.plain_values import print_value
from hms_gateway.rpc.idl import BaseType, ListType, MapType, StructType
from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
    TableMeta,
)


def shown(kind, value):
    console = Console(file=io.StringIO(), width=100)
    print_value(console, kind, value)
    return console.file.getvalue()


def test_names_stand_one_per_line():
    assert shown(ListType(BaseType.STRING), ["default", "[b]sales[/b]"]) == "default\n[b]sales[/b]\n"


def test_nothing_is_said():
    assert shown(ListType(BaseType.STRING), []) == "nothing\n"
    assert shown(ListType(StructType("Partition")), []) == "nothing\n"
    assert shown(None, None) == "done\n"


def test_single_values():
    assert shown(BaseType.STRING, "3.0") == "3.0\n"
    assert shown(BaseType.BOOL, True) == "true\n"
    assert shown(BaseType.I64, 12) == "12\n"


def test_a_list_of_structs_is_a_table_of_what_fits():
    metas = [TableMeta(dbName="sales", tableName="orders", tableType="MANAGED_TABLE", comments="[x] what")]
    text = shown(ListType(StructType("TableMeta")), metas)
    assert "1 × TableMeta" in text
    for word in ("dbName", "tableName", "orders", "[x] what"):
        assert word in text


def test_what_does_not_fit_in_a_table_is_named():
    sd = StorageDescriptor(location="file:/x")
    partitions = [Partition(values=["2024", "01"], dbName="d", parameters={"a": "b"}, sd=sd)]
    text = shown(ListType(StructType("Partition")), partitions)
    assert "2024, 01" in text
    assert "not shown: sd, parameters" in text


def test_a_struct_is_a_tree_with_every_field():
    table = Table(
        tableName="orders",
        parameters={"comment": "[red]no markup[/red]"},
        partitionKeys=[FieldSchema(name="ds", type="string")],
        sd=StorageDescriptor(serdeInfo=SerDeInfo(parameters={}), compressed=False),
    )
    text = shown(StructType("Table"), table)
    for word in ("tableName  orders", "comment  [red]no markup[/red]", "parameters  none", "compressed  false"):
        assert word in text
    assert "partitionKeys (1)" in text
    assert "name ds  type string" in text


def test_enums_have_their_name():
    assert "ownerType  GROUP" in shown(StructType("Database"), Database(ownerType=int(PrincipalType.GROUP)))


def test_a_map_is_a_tree():
    text = shown(MapType(BaseType.STRING, BaseType.I64), {"calls": 3})
    assert "1 entries" in text
    assert "calls  3" in text
