"""Rows become exactly the TJSON the protocol document shows, and locations survive being split."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import Partition, StorageDescriptor, Table
from hms_gateway.rpc.wire.tjson_codec import decode_value
from hms_gateway.storage.partitions.rows import (
    Descriptor,
    PartitionRow,
    StructRows,
    TjsonRows,
    full_location,
    placement,
)
from hms_gateway.storage.sql.fragments import (
    decode_descriptor,
    encode_descriptor,
    encode_map,
    encode_partition_extra,
    encode_texts,
)
from tests.contract.objects import descriptor, table

SAMPLE = Path(__file__).resolve().parents[2] / "conformance" / "samples" / "get_partitions.reply.tjson"


def rows_of(of: Table, partitions: list[Partition]) -> tuple[list[PartitionRow], list[Descriptor]]:
    """What the store would keep."""
    rows: list[PartitionRow] = []
    descriptors: list[Descriptor] = []
    for number, one in enumerate(partitions):
        name = f"{(of.partitionKeys or [])[0].name}={(one.values or [])[0]}"
        below = None
        if one.sd is not None:
            base, below = placement(one.sd.location, of.sd and of.sd.location, name)
            descriptors.append(Descriptor(number, encode_descriptor(one.sd), base))
        rows.append(
            (
                name,
                None if one.sd is None else number,
                encode_texts(one.values or []),
                one.createTime or 0,
                one.lastAccessTime or 0,
                encode_map(one.parameters),
                below,
                encode_partition_extra(one),
            )
        )
    return rows, descriptors


def test_the_documents_own_sample_is_written_as_printed() -> None:
    reply = msgspec.json.decode(SAMPLE.read_bytes())
    elements = reply[4]["0"]["lst"][2:]
    partitions = decode_value(ListType(StructType("Partition")), msgspec.json.encode(reply[4]["0"]["lst"]))
    base = partitions[0].sd.location.rpartition("/")[0]
    of = table(partitions[0].tableName, partitions[0].dbName, sd=descriptor(base))
    (of.partitionKeys or [])[0].name = "hair_color"
    rows, descriptors = rows_of(of, partitions)
    assert [(row[6], one.base_location) for row, one in zip(rows, descriptors, strict=True)] == [(None, base)] * 2
    encoder = TjsonRows(of)
    encoder.learn(descriptors)
    written = encoder.encode(rows)
    assert msgspec.json.decode(b"[" + written + b"]") == elements
    # The same order of fields too; only map entries may come in another order.
    assert [list(element) for element in msgspec.json.decode(b"[" + written + b"]")] == [list(one) for one in elements]
    assert [list(one["6"]["rec"]) for one in msgspec.json.decode(b"[" + written + b"]")] == [
        list(one["6"]["rec"]) for one in elements
    ]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        StorageDescriptor(),
        StorageDescriptor(location=""),
        StorageDescriptor(cols=[]),
        StorageDescriptor(cols=[], location="x"),
        StorageDescriptor(inputFormat="x"),
        StorageDescriptor(inputFormat="x", location="file:/warehouse/sales.db/orders/k0=a"),
        descriptor(None),
    ],
)
def test_tjson_and_structs_agree_on_sparse_descriptors(stored: StorageDescriptor | None) -> None:
    of = table()
    partition = Partition(["a"], of.dbName, of.tableName, 1, 2, stored, {})
    rows, descriptors = rows_of(of, [partition])
    encoder, builder = TjsonRows(of), StructRows(of)
    encoder.learn(descriptors)
    builder.learn(descriptors)
    assert builder.build(rows) == [partition]
    assert decode_value(StructType("Partition"), encoder.encode(rows)) == partition


PATHS = st.lists(st.sampled_from(["/", "a", "b", 'odd"\\', "\x01", "k=1", "☃", "file:", "//"]), max_size=5).map("".join)


@pytest.mark.slow
@given(st.none() | PATHS, st.none() | PATHS, st.sampled_from(["k=1", 'odd"\\', "☃"]))
def test_locations_come_together_again(location: str | None, table_location: str | None, name: str) -> None:
    base, below = placement(location, table_location, name)
    assert full_location(base, below, name) == location


def test_descriptors_with_equal_content_have_equal_hashes() -> None:
    one, other = encode_descriptor(descriptor("file:/a")), encode_descriptor(descriptor("file:/b"))
    assert one == other
    assert one.content_hash == other.content_hash
    assert one.content_hash != encode_descriptor(descriptor(numBuckets=3)).content_hash
    assert one.content_hash != one.with_columns(None).content_hash
    assert decode_descriptor(one, "file:/c") == descriptor("file:/c")
