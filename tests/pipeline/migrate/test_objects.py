"""Objects of two metastores, compared field by field."""

from hms_gateway.pipeline.migrate.sides import Difference, differences, of_chunk, plain, without
from hms_gateway.rpc.structs import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table


def table(**fields):
    sd = StorageDescriptor(cols=[FieldSchema("id", "int", "")], serdeInfo=SerDeInfo(parameters={"a": "1"}))
    return plain(Table(tableName="t", dbName="d", sd=sd, **fields))


def found(kind, source, target):
    return list(of_chunk(kind, source, target))


def test_what_is_unset_and_what_is_empty_is_the_same():
    full = table(parameters={}, partitionKeys=[], retention=0, temporary=False, viewOriginalText=None)
    assert full == table()


def test_an_empty_text_is_not_an_unset_one():
    assert found("table", {"t": table(parameters={"a": ""})}, {"t": table()}) == [
        Difference("table", "t", "parameters.a", '""', "")
    ]


def test_numbers_that_each_metastore_gives_are_not_compared():
    assert table(id=7, writeId=9, catName="hive") == table()


def test_fields_differ_by_their_paths():
    source = table(owner="ann", parameters={"x": "1", "same": "2"}, partitionKeys=[FieldSchema("ds", "date")])
    target = table(owner="bob", parameters={"same": "2", "y": "3"}, partitionKeys=[FieldSchema("ds", "string")])
    assert list(differences("table", "d.t", source, target)) == [
        Difference("table", "d.t", "owner", "ann", "bob"),
        Difference("table", "d.t", "parameters.x", "1", ""),
        Difference("table", "d.t", "parameters.y", "", "3"),
        Difference("table", "d.t", "partitionKeys[ds].type", "date", "string"),
    ]


def test_an_object_of_one_side_differs_as_a_whole():
    one = plain(Partition(values=["1"], dbName="d", tableName="t"))
    assert found("partition", {"a": one, "b": one}, {"b": one, "c": one}) == [
        Difference("partition", "a", "", "there", ""),
        Difference("partition", "c", "", "", "there"),
    ]


def test_declared_fields_are_left_out_by_their_paths():
    value = {"createTime": 5, "grantInfo": {"createTime": 6, "privilege": "SELECT"}}
    assert without(value, ["createTime", "grantInfo.createTime"]) == {"grantInfo": {"privilege": "SELECT"}}
    assert value["grantInfo"]["createTime"] == 6
