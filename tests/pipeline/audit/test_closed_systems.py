"""A file system that does not open here is said once for each table, and ends no job."""

from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.compact.job import CleanArguments, clean
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from tests.pipeline.compact.warehouse import add_partitions, make_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("hdfs://absent.example.org", "hdfs: cannot be read here: "),
        pytest.param("webhdfs://", "webhdfs: cannot be read here: ", marks=pytest.mark.whole),
    ],
)
def test_a_table_there_is_named_and_the_rest_is_done(spark, gateway, tmp_path, place, said):
    name = f"closed_{place.partition(':')[0]}"
    with gateway.client() as client:
        make_table(client, name, location=f"{place}/lake/{name}", parameters={"EXTERNAL": "TRUE"})
        add_partitions(client, client.call("get_table", "lake", name), "1", "2", "3")
    connection = Connection.of(gateway.options)
    options = JobOptions(connection=connection, state=str(tmp_path), only=(f"lake.{name}",), patience_seconds=20)
    options = replace(options, roots=(f"{place}/lake",))
    audited = audit(options, AuditArguments(), spark=spark)
    [finding] = [one for one in audited.examples if one["kind"] == "unreadable"]
    assert (finding["table"], finding["text"].startswith(said), audited.passed_over) == (name, True, 4)
    assert "\n" not in finding["text"]
    taken = stats(options, StatsArguments(), spark=spark)
    assert (taken.status, taken.notes, taken.passed_over) == ("done", [], 3)
    [passed] = taken.passed_by
    assert passed["reason"].startswith(said)
    assert passed["reason"].endswith("(3 partitions)")
    assert clean(options, CleanArguments(), spark=spark).status == "done"
    with gateway.client() as client:
        client.call("drop_table", "lake", name, False)
