"""What compacting looks at."""

from functools import partial

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow

from hms_gateway.pipeline.compact.looking import NAMES
from hms_gateway.pipeline.compact.rules import left_alone
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import PartitionNames

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("where", ["", "ds >= '2024-01-02'", "hr = 7 or hr = 10", "ds = 'nothing'"])
def test_a_filter_finds_the_partitions_that_the_metastore_finds_whatever_is_in_their_values(gateway, where):
    with gateway.client() as client:
        every = client.call("get_partition_names", "sales", "orders", -1)
        wanted = client.call("get_partitions_by_filter", "sales", "orders", where, -1) if where else every
    look = PartitionNames(partial(PatientClient, Connection.of(gateway.options), 20), NAMES, where, left_alone)
    batches = list(look(pyarrow.Table.from_pylist([{"database": "sales", "table": "orders"}])))
    names = [row["name"] for batch in batches for row in batch.to_pylist()]
    assert set(names) <= set(every)
    assert len(names) == len(wanted)
