"""Columns that the partitions of a call share are sent once, and those of others stay theirs."""

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.pipeline.catalog import columns_once
from hms_gateway.rpc.structs import FieldSchema, Partition, StorageDescriptor

COLUMNS = [FieldSchema("id", "int"), FieldSchema("note", "string")]
WIDER = [*COLUMNS, FieldSchema("more", "string")]


def partition(value, columns):
    return Partition(values=[value], sd=StorageDescriptor(cols=columns, location=f"/t/{value}"))


def columns_of(partitions):
    return [one.sd.cols for one in partitions]


def test_those_of_the_first_are_common():
    given = [partition("a", list(COLUMNS)), partition("b", list(COLUMNS)), partition("c", WIDER)]
    sent, common = columns_once(given)
    assert (columns_of(sent), common) == ([None, None, WIDER], COLUMNS)
    assert [one.sd.location for one in sent] == ["/t/a", "/t/b", "/t/c"]
    assert columns_of(given) == [COLUMNS, COLUMNS, WIDER]


@pytest.mark.parametrize("columns", [None, []])
def test_a_partition_without_columns_does_not_get_any(columns):
    given = [partition("a", COLUMNS), partition("b", columns)]
    assert columns_once(given) == (given, None)


def test_a_view_has_no_storage():
    given = [Partition(values=["a"]), Partition(values=["b"])]
    assert columns_once(given) == (given, None)


def test_nothing_is_nothing():
    assert columns_once([]) == ([], None)
