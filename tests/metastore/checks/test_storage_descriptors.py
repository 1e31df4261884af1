"""What partitions of one request share of their descriptors must not show in what is stored and told."""

from copy import deepcopy

import pytest

from hms_gateway.metastore.checks.table_shape import PartitionTexts, StoredDescriptors
from hms_gateway.rpc.structs import FieldSchema, MetaException, Partition, SerDeInfo, StorageDescriptor
from tests.support.catalog import to_tjson


def descriptor(location: str | None, **fields: object) -> StorageDescriptor:
    columns = [FieldSchema(" C ", "int", "")]
    given: dict[str, object] = {"cols": columns, "location": location, "serdeInfo": SerDeInfo(), **fields}
    return StorageDescriptor(**given)  # type: ignore[arg-type]


def partitions() -> list[Partition]:
    """Alike and different ones in turns."""
    descriptors = [
        descriptor("file:/t/ds=1"),
        descriptor("file:/t/ds=2"),
        descriptor('file:/t/"\\\u0001é'),
        descriptor("file:/t/ds=3", numBuckets=4),
        descriptor("file:/t/ds=4", serdeInfo=SerDeInfo("s", "lib", {"k": "\0location\0"})),
        descriptor("file:/t/ds=5", serdeInfo=SerDeInfo("s", "lib", {"k": "\0location\0"})),
        descriptor("\0location\0"),
        descriptor(None),
        descriptor(""),
        StorageDescriptor(location="file:/t/ds=6", serdeInfo=SerDeInfo()),
        descriptor("file:/t/ds=7", cols=[]),
        None,
        descriptor("file:/t/ds=8"),
    ]
    return [
        Partition([str(number)], "db", "t", 1, 0, sd, {"number": str(number)}) for number, sd in enumerate(descriptors)
    ]


def test_texts_are_those_of_the_partitions_one_by_one() -> None:
    texts = PartitionTexts(to_tjson)
    assert [texts.of(one) for one in partitions()] == [to_tjson(one).decode() for one in partitions()]


def test_partitions_stay_as_they_are() -> None:
    given, texts, stored = partitions(), PartitionTexts(to_tjson), StoredDescriptors()
    before = deepcopy(given)
    for one in given:
        texts.of(one)
        if one.sd is not None:
            stored.of(one.sd)
    assert given == before


def test_stored_descriptors_are_those_of_the_partitions_one_by_one() -> None:
    together = StoredDescriptors()
    given = [one.sd for one in partitions() if one.sd is not None]
    assert [together.of(one) for one in given] == [StoredDescriptors().of(one) for one in given]


def test_alike_ones_share_their_columns() -> None:
    stored = StoredDescriptors()
    first, second, other = (stored.of(sd) for sd in (descriptor("a"), descriptor("b"), descriptor("c", cols=[])))
    assert (first.location, second.location) == ("a", "b")
    assert first.cols is second.cols
    assert first.cols == [FieldSchema("c", "int", "")]
    assert other.cols == []


@pytest.mark.parametrize("columns", [None, []])
def test_columns_that_were_not_sent_stay_absent(columns: list[FieldSchema] | None) -> None:
    assert StoredDescriptors().of(descriptor(None, cols=columns)).cols == columns


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cols": [FieldSchema("a", "int"), FieldSchema(None, "int")]}, "column name must not be null"),
        ({"cols": [FieldSchema("a", None)]}, "column type must not be null"),
        ({"serdeInfo": None}, "Invalid SerDeInfo object"),
        ({"cols": [FieldSchema()], "serdeInfo": None}, "column name must not be null"),
    ],
)
def test_what_lacks_a_part_is_refused_also_behind_whole_ones(fields: dict[str, object], text: str) -> None:
    stored = StoredDescriptors()
    stored.of(descriptor("a"))
    with pytest.raises(MetaException) as refused:
        stored.of(descriptor("b", **fields))
    assert refused.value.message == text
