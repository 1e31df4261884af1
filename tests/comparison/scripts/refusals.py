"""Exceptions that the other scripts do not come by."""

from collections.abc import Iterator

from app.structs import (
    DropPartitionsExpr,
    DropPartitionsRequest,
    PartitionValuesRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
)
from app.structs import FieldSchema as Column
from tests.comparison.objects import SOME_KEYS, database, partition, table
from tests.comparison.scripts.statistics import statistics
from tests.comparison.servers import Step, call


def steps() -> Iterator[Step]:
    yield call("create_database", database("refusing"))
    yield call("create_table", table("refusing", "t", SOME_KEYS))
    yield call("create_table", table("refusing", "flat"))
    yield call("append_partition", "refusing", "t", ["a", "1"])
    for given in (
        statistics("nosuch", "id", db_name="refusing"),
        statistics("nosuch", "id", db_name="refusing", part_name="ds=a/hr=1"),
        statistics("t", "id", db_name="refusing", part_name="ds=b/hr=1"),
        statistics("t", "nosuch", db_name="refusing", part_name="ds=a/hr=1"),
        statistics("flat", "nosuch", db_name="refusing"),
        statistics("t", "id", db_name="refusing", part_name="nonsense"),
    ):
        yield call("set_aggr_stats_for", SetPartitionsStatsRequest([given]))
        yield call("update_partition_column_statistics", given)
        yield call("update_table_column_statistics", given)
    for parts in (
        RequestPartsSpec(),
        RequestPartsSpec([]),
        RequestPartsSpec(["nonsense"]),
        RequestPartsSpec([""]),
        RequestPartsSpec(exprs=[]),
        RequestPartsSpec(exprs=[DropPartitionsExpr(b"junk")]),
    ):
        for if_exists in (True, False):
            yield call("drop_partitions_req", DropPartitionsRequest("refusing", "t", parts, True, if_exists))
    for tbl_name in ("t", "flat", "nosuch"):
        request = PartitionValuesRequest("refusing", tbl_name, [Column("ds", "string")], filter="nokey = 1")
        yield call("get_partition_values", request)
        yield call("get_partition_values", PartitionValuesRequest("refusing", tbl_name, [Column("nosuch", "string")]))
    yield call("get_partition_values", None)
    yield call("drop_type", "nosuch")
    yield call("drop_type", None)
    for source in ("nosuch", "flat", "t"):
        for target in ("nosuch", "flat", "t"):
            yield call("exchange_partition", {"ds": "a", "hr": "1"}, "refusing", source, "refusing", target)
    yield call("add_partition", partition("refusing", "t", ["a", "1"], sd=None))
    yield call("partition_name_has_valid_characters", None, True)
    for db_name in ("nosuch", "refusing"):
        yield call("get_fields", db_name, "nosuch")
    for method in ("get_partitions", "get_partition_names", "get_partitions_pspec"):
        yield call(method, "refusing", "t", -2)
    yield call("set_ugi", None, None)
    yield call("list_roles", "ann", 99)
    yield call("list_privileges", "ann", 99, None)
