"""Parts of partitions (semantics §10.3)."""

from collections.abc import Iterator

import pytest

from hms_gateway.catalog.partitions.specs import ProjectedPartitions, Projection
from hms_gateway.rpc.structs import FieldSchema, GetProjectionsSpec, Partition, SerDeInfo, StorageDescriptor, Struct
from tests.metastore.partition_world import to_tjson

PARTITION = Partition(
    values=["a"],
    createTime=5,
    sd=StorageDescriptor(
        cols=[FieldSchema("id", "int")], location="file:/x", serdeInfo=SerDeInfo(name="n", serializationLib="lib")
    ),
    parameters={"numFiles": "1", "numRows": "2", "my.key": "3", "myXkey": "4", "": "5"},
)


class FakeList:
    """Two chunks of partitions."""

    def __init__(self) -> None:
        self.is_closed = False

    def __len__(self) -> int:
        return 3

    def struct_chunks(self) -> Iterator[list[Struct]]:
        yield [PARTITION, PARTITION]
        yield [PARTITION]

    def tjson_chunks(self) -> Iterator[bytes]:
        raise AssertionError("has to be projected")

    def close(self) -> None:
        self.is_closed = True


def test_fields() -> None:
    projection = Projection(fields=("values", "sd.location", "sd.serdeInfo.serializationLib", "no.such.field"))
    assert projection.apply(PARTITION) == Partition(
        values=["a"], sd=StorageDescriptor(location="file:/x", serdeInfo=SerDeInfo(serializationLib="lib"))
    )


def test_a_whole_struct() -> None:
    assert Projection(fields=("sd",)).apply(PARTITION) == Partition(sd=PARTITION.sd)


@pytest.mark.parametrize(
    ("include", "exclude", "keys"),
    [
        (None, None, ["numFiles", "numRows", "my.key", "myXkey", ""]),
        ("", "", ["numFiles", "numRows", "my.key", "myXkey", ""]),
        ("num%", None, ["numFiles", "numRows"]),
        (None, "num%", ["my.key", "myXkey", ""]),
        ("num%", "%Rows", ["numFiles"]),
        ("my_key", None, ["my.key", "myXkey"]),
        ("my.key", None, ["my.key"]),
        ("%", "%", []),
        ("%a%a%a%a%a%a%a%a%a%a%b", None, []),
    ],
)
def test_parameter_patterns(include: str | None, exclude: str | None, keys: list[str]) -> None:
    projected = Projection(include=include, exclude=exclude).apply(PARTITION)
    assert list(projected.parameters or {}) == keys


def test_without_columns() -> None:
    projected = Projection(skips_columns=True).apply(PARTITION)
    assert projected.sd is not None
    assert projected.sd.cols is None
    assert PARTITION.sd is not None
    assert PARTITION.sd.cols


def test_from_a_request() -> None:
    assert Projection.of(None).keeps_everything
    assert Projection.of(GetProjectionsSpec(fieldList=[])).keeps_everything
    assert Projection.of(GetProjectionsSpec(["values"], "a%", None)) == Projection(("values",), "a%", None)


def test_a_list_is_projected_while_it_is_read() -> None:
    source = FakeList()
    projected = ProjectedPartitions(source, Projection(fields=("values",)), to_tjson)
    assert len(projected) == 3
    assert [len(chunk) for chunk in projected.struct_chunks()] == [2, 1]
    text = b",".join(projected.tjson_chunks())
    assert text == b",".join([b'{"1":{"lst":["str",1,"a"]}}'] * 3)
    projected.close()
    assert source.is_closed
