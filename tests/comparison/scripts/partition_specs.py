"""Specs of partitions: a list, or a storage descriptor that partitions share, and where these lie."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
)
from tests.comparison.objects import SOME_KEYS, database, descriptor, partition, table
from tests.comparison.servers import Step, call

TABLE = "{warehouse}/sales.db/part"


def steps() -> Iterator[Step]:
    """The whole script."""
    yield call("create_database", database("sales"))
    yield call("create_table", table("sales", "part", SOME_KEYS))
    yield call("add_partitions_pspec", [_spec("a", TABLE, "/ds=a/hr=1")])
    yield call("add_partitions_pspec", [_spec("b", f"{TABLE}/b", "", root_path="{elsewhere}/root")])
    yield call("add_partitions_pspec", [_spec("c", f"{TABLE}/shared", "/x/y", root_path="{elsewhere}/root")])
    for location, relative_path in ((None, "y"), (None, ""), (None, None), ("", "y"), ("file:", "y"), ("x", "/y")):
        yield call("add_partitions_pspec", [_spec("refused", location, relative_path)])
    both = _spec("shared", TABLE, "/shared")
    both.partitionList = PartitionListComposingSpec([partition("sales", "part", ["listed", "1"])])
    yield call("add_partitions_pspec", [both])
    yield call("get_partitions", "sales", "part", -1)
    yield from _otherwise()


def _otherwise() -> Iterator[Step]:
    """What Hive makes of texts that are appended to each other, in tables of their own."""
    for name, location, relative_path in (
        ("no_slash", f"{TABLE}/shared", "y"),
        ("no_path", f"{TABLE}/shared", None),
    ):
        yield call("create_table", table("sales", name, SOME_KEYS))
        yield call("add_partitions_pspec", [_spec("a", location, relative_path, tbl_name=name)])
        yield call("get_partitions", "sales", name, -1)
    yield call("create_table", table("sales", "no_location", SOME_KEYS))
    yield call("add_partitions_pspec", [_spec("a", "", "{elsewhere}/here", tbl_name="no_location")])


def _spec(
    value: str,
    location: str | None,
    relative_path: str | None,
    *,
    root_path: str | None = None,
    tbl_name: str = "part",
) -> PartitionSpec:
    bare = PartitionWithoutSD([value, "1"], 0, 0, relative_path, {"a": "b"})
    shared = PartitionSpecWithSharedSD([bare], descriptor(location=location))
    return PartitionSpec("sales", tbl_name, root_path, shared)
