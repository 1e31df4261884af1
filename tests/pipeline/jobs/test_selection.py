"""Which tables and partitions the options name."""

from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions, check_only, partition_names

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("where", ["", "ds >= '2024-01-02'", "hr = 7 or hr = 10", "ds = 'nothing'"])
def test_names_are_those_of_the_metastore_whatever_is_in_the_values(gateway, where):
    with gateway.client() as client:
        table = client.call("get_table", "sales", "orders")
        every = client.call("get_partition_names", "sales", "orders", -1)
        selected = partition_names(client, table, where)
        assert set(selected) <= set(every)
        wanted = client.call("get_partitions_by_filter", "sales", "orders", where, -1) if where else every
        assert len(selected) == len(client.call("get_partitions_by_names", "sales", "orders", selected)) == len(wanted)


def test_what_is_not_a_filter_of_the_table_is_refused_with_the_option(gateway):
    with gateway.client() as client:
        table = client.call("get_table", "sales", "orders")
        with pytest.raises(UsageRefused, match=r"--where 'nokey = 1' is not a filter of sales.orders") as refused:
            partition_names(client, table, "nokey = 1")
    assert "--only" in refused.value.hint


def test_a_pattern_that_matches_no_table_is_refused(gateway):
    options = JobOptions(connection=Connection.of(gateway.options), state="", patience_seconds=20)
    for patterns in ((), ("sales.orders",), ("SALES.*", "s*.ord*"), ("*",)):
        check_only(replace(options, only=patterns))
    for patterns in (("salse.*",), ("sales.orders", "sales.ordres"), ("sales",)):
        with pytest.raises(UsageRefused, match=f"^--only '{patterns[-1]}' matches no table$".replace("*", "[*]")):
            check_only(replace(options, only=patterns))
    check_only(replace(options, only=("salse.*",), resume="stats-1"))
