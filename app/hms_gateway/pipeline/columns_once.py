"""Partitions of one call with the columns that they share sent once (`partitionColSchema`), which is less to read."""

from collections.abc import Sequence

import msgspec

from hms_gateway.rpc.structs import FieldSchema, Partition


def columns_once(partitions: Sequence[Partition]) -> tuple[list[Partition], list[FieldSchema] | None]:
    """The partitions without the columns of the first one where theirs are the same, and these columns.

    A partition without columns would get them: then all stay as they are, and there are no common ones.
    """
    given = [partition.sd.cols if partition.sd else None for partition in partitions]
    if len(given) < 2 or not all(given):
        return list(partitions), None
    common = given[0]
    return [
        _without_columns(partition) if columns == common else partition
        for partition, columns in zip(partitions, given, strict=True)
    ], common


def _without_columns(partition: Partition) -> Partition:
    assert partition.sd is not None
    return msgspec.structs.replace(partition, sd=msgspec.structs.replace(partition.sd, cols=None))
