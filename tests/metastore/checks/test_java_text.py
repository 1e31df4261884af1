"""Structs as Java prints them."""

from hms_gateway.metastore.checks.errors import java_text
from hms_gateway.rpc.structs import FieldSchema, Partition, SerDeInfo, StorageDescriptor


def test_values() -> None:
    assert [java_text(value) for value in (None, True, False, 7, "x", ["a", None], {"k": "v", "l": ["w"]})] == [
        "null", "true", "false", "7", "x", "[a, null]", "{k=v, l=[w]}",
    ]  # fmt: skip


def test_absent_fields_and_primitives() -> None:
    assert java_text(Partition(values=["a"], parameters={"k": "v"})) == (
        "Partition(values:[a], dbName:null, tableName:null, createTime:0, lastAccessTime:0, sd:null, parameters:{k=v})"
    )


def test_optional_fields_appear_when_set() -> None:
    assert java_text(Partition(catName="hive")).endswith("parameters:null, catName:hive)")


def test_structs_inside_structs() -> None:
    descriptor = StorageDescriptor(cols=[FieldSchema("id", "int")], serdeInfo=SerDeInfo(parameters={}))
    assert java_text(descriptor) == (
        "StorageDescriptor(cols:[FieldSchema(name:id, type:int, comment:null)], location:null, inputFormat:null,"
        " outputFormat:null, compressed:false, numBuckets:0,"
        " serdeInfo:SerDeInfo(name:null, serializationLib:null, parameters:{}),"
        " bucketCols:null, sortCols:null, parameters:null)"
    )
