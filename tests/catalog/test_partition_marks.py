"""Marks on partitions, row by row of semantics §2.12."""

from collections.abc import Callable

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    InvalidPartitionException,
    MetaException,
    PartitionEventType,
    ThriftException,
    UnknownTableException,
)
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")
TABLE = (" DEFAULT ", "T")
SPEC = {"ds": "2024", "hr": "1"}
DONE = PartitionEventType.LOAD_DONE


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


@pytest.fixture
def partitioned(catalog: Catalog) -> Catalog:
    catalog.tables.create(new_table(keys=columns("ds string", "hr int")))
    return catalog


def test_a_mark_is_found_by_values(partitioned: Catalog) -> None:
    marks = partitioned.partition_marks
    assert not marks.isPartitionMarkedForEvent(CALL, *TABLE, SPEC, DONE)
    marks.markPartitionForEvent(CALL, *TABLE, {"hr": "1", "ds": "2024"}, DONE)
    marks.markPartitionForEvent(CALL, *TABLE, SPEC, DONE)
    assert marks.isPartitionMarkedForEvent(CALL, *TABLE, SPEC, DONE)
    assert not marks.isPartitionMarkedForEvent(CALL, *TABLE, {"ds": "2024", "hr": "01"}, DONE)


def test_what_is_refused(partitioned: Catalog) -> None:
    marks = partitioned.partition_marks
    count = "Number of partition columns in table: 2 doesn't match with number of supplied partition values: "
    for name, spec, error in [
        (("default", "Missing"), SPEC, UnknownTableException("Table: Missing is not found.")),
        (("missing", "t"), SPEC, UnknownTableException("Table: t is not found.")),
        (("default", "\0"), SPEC, UnknownTableException("Table: \0 is not found.")),
        (TABLE, {}, InvalidPartitionException(f"{count}0")),
        (TABLE, {**SPEC, "x": "1"}, InvalidPartitionException(f"{count}3")),
        (TABLE, {"DS": "1", "HR": "1"}, InvalidPartitionException("No value found for partition column: ds")),
        (TABLE, {"ds": "1", "x": "1"}, InvalidPartitionException("No value found for partition column: hr")),
    ]:
        for method in (marks.markPartitionForEvent, marks.isPartitionMarkedForEvent):
            assert refusal(lambda method=method, name=name, spec=spec: method(CALL, *name, spec, DONE)) == error


def test_what_is_left_out_or_unknown_is_a_meta_exception(partitioned: Catalog) -> None:
    for method in (
        partitioned.partition_marks.markPartitionForEvent,
        partitioned.partition_marks.isPartitionMarkedForEvent,
    ):
        for name, spec, kind in (
            ((None, "t"), SPEC, DONE),
            (("default", None), SPEC, DONE),
            (TABLE, None, DONE),
            (TABLE, SPEC, None),
            (TABLE, SPEC, 7),
        ):
            error = refusal(lambda method=method, name=name, spec=spec, kind=kind: method(CALL, *name, spec, kind))
            assert isinstance(error, MetaException)


def test_a_mark_goes_with_its_table(partitioned: Catalog) -> None:
    partitioned.partition_marks.markPartitionForEvent(CALL, *TABLE, SPEC, DONE)
    partitioned.tables.drop(TableName(*TABLE), True)
    partitioned.tables.create(new_table(keys=columns("ds string", "hr int")))
    assert not partitioned.partition_marks.isPartitionMarkedForEvent(CALL, *TABLE, SPEC, DONE)
