"""What differs between two versions of an object; values only."""

import json

import pytest

from hms_gateway.pipeline.jobs.options import Only
from hms_gateway.pipeline.snapshot.diff import ObjectChange, differences
from hms_gateway.pipeline.snapshot.objects import added, as_text, digest_of
from hms_gateway.rpc.structs import FieldSchema, SerDeInfo, StorageDescriptor, Table

KEY = {"kind": "tables", "database": "d", "table": "t", "partition": "", "item": ""}


def table(**changed):
    sd = StorageDescriptor(
        cols=[FieldSchema("id", "int"), FieldSchema("note", "string")],
        location="file:/t",
        serdeInfo=SerDeInfo(parameters={"field.delim": ","}),
    )
    fields = {"dbName": "d", "tableName": "t", "sd": sd, "parameters": {"a": "1", "b": ""}}
    return as_text(Table(**{**fields, **changed}))


def found(before, after, *ignored, kind="tables"):
    return [each[6:] for each in differences({**KEY, "kind": kind}, before, after, ignored)]


def test_fields_are_named_by_their_paths():
    assert found(table(), table()) == []
    after = table(parameters={"a": "2", "c": "3"}, owner="ann")
    assert found(table(), after) == [
        ("owner", None, "ann"),
        ("parameters.a", "1", "2"),
        ("parameters.b", "", None),
        ("parameters.c", None, "3"),
    ]
    assert found(table(), after, "parameters.*") == [("owner", None, "ann")]
    assert found(table(), table(parameters={})) == [
        ("parameters", None, "{}"),
        ("parameters.a", "1", None),
        ("parameters.b", "", None),
    ]


def test_columns_of_a_table_are_objects_of_their_own_but_not_those_of_a_partition():
    other = StorageDescriptor(cols=[FieldSchema("note", "string"), FieldSchema("id", "bigint")], location="file:/t")
    assert [each[0] for each in found(table(), table(sd=other))] == ["sd.serdeInfo.parameters.field.delim"]
    changed = found(table(), table(sd=other), "sd.serdeInfo*", kind="partitions")
    assert changed == [("sd.cols[]", "id, note", "note, id"), ("sd.cols[id].type", "int", "bigint")]


def test_an_object_of_one_snapshot_is_added_or_dropped():
    assert list(differences(KEY, None, table())) == [ObjectChange("tables", "added", "d", "t", "", "")]
    assert list(differences(KEY, table(), None)) == [ObjectChange("tables", "dropped", "d", "t", "", "")]


def test_brackets_in_a_pattern_are_those_of_the_path():
    before, after = table(), table(sd=StorageDescriptor(cols=[FieldSchema("id", "bigint")]))
    assert ("sd.cols[id].type", "int", "bigint") in found(before, after, kind="partitions")
    assert not [each for each in found(before, after, "sd.cols[id].*", kind="partitions") if "[id]" in each[0]]


def test_texts_are_the_same_for_the_same_and_hold_anything():
    assert as_text(Table(parameters={"b": "1", "a": "2"})) == as_text(Table(parameters={"a": "2", "b": "1"}))
    assert json.loads(as_text(Table(tableName="half \ud800"))) == {"tableName": "half \ud800"}


def test_a_digest_does_not_depend_on_order_or_pieces():
    rows = [("tables", "d", str(number), "", "", "{}") for number in range(9)]
    whole = digest_of(rows)
    assert whole == digest_of(reversed(rows)) == added((digest_of(rows[:4]), digest_of(rows[4:])))
    assert whole != digest_of(rows[:8])
    assert digest_of([("a", "b c")]) != digest_of([("a b", "c")])
    assert added([]) == digest_of([]) == 0


@pytest.mark.parametrize(
    ("patterns", "database", "table", "wanted"),
    [
        ((), "", "", True),
        (("d.*",), "", "", False),
        (("D.*",), "d", "", True),
        (("d.*",), "e", "", False),
        (("d.a*", "e.b"), "d", "ab", True),
        (("d.a*", "e.b"), "e", "ab", False),
        (("*",), "d", "t", True),
    ],
)
def test_what_is_wanted(patterns, database, table, wanted):
    assert Only(patterns).wants(database, table) is wanted
