"""Which partitions a filter names."""

import pytest

from hms_gateway.pipeline.stats.selecting import partition_names

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
