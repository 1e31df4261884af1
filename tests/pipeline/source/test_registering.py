"""Rows of a real Spark become partitions: once, also when a task is repeated after its calls."""

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from pyspark.errors import PySparkException

from hms_gateway.pipeline import HmsDataSource
from hms_gateway.pipeline.source.data_source import PartitionWriter
from hms_gateway.rpc.structs import NotificationEventRequest
from tests.pipeline.content import make_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def table(gateway, request):
    """The name of a new table with the keys ds and hr."""
    name = request.node.name.partition("[")[0]
    with gateway.client() as client:
        make_table(client, "stock", name, ("ds", "string"), ("hr", "int"))
    return f"stock.{name}"


def write(frame, gateway, table, format="hms", **options):
    given = {**gateway.options, "object": "partitions", "table": table, **options}
    frame.write.format(format).options(**given).mode("append").save()


def names_in(gateway, table):
    with gateway.client() as client:
        return client.call("get_partition_names", *table.split("."), -1)


def added_by_events(gateway, table):
    """How often partitions were added to the table, in calls."""
    with gateway.client() as client:
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=0)).events
    return sum(f"{event.dbName}.{event.tableName}" == table and event.eventType == "ADD_PARTITION" for event in events)


def test_rows_become_partitions(spark, gateway, table):
    frame = spark.sql(
        "SELECT concat('2024-01-0', d) AS ds, h AS hr, map('n', string(h)) AS parameters FROM"
        " (SELECT explode(sequence(1, 3)) AS d) CROSS JOIN (SELECT explode(sequence(0, 9)) AS h)"
    )
    write(frame, gateway, table, batchSize="7")
    found = gateway.read(spark, "partitions", table=table).where("key.ds = '2024-01-02' AND key.hr >= 8")
    assert sorted((row.key.hr, row.parameters["n"]) for row in found.collect()) == [(8, "8"), (9, "9")]
    assert len(names_in(gateway, table)) == 30
    write(frame, gateway, table)
    assert len(names_in(gateway, table)) == 30


def test_values_and_locations_may_be_given(spark, gateway, table):
    place = gateway.server.data_dir / "warehouse" / "elsewhere" / "one"
    frame = spark.createDataFrame([(["a/b", None], f"file:{place}")], "values array<string>, location string")
    write(frame, gateway, table)
    found = gateway.read(spark, "partitions", table=table).collect()
    assert [(row["values"], row.location) for row in found] == [
        (["a/b", "__HIVE_DEFAULT_PARTITION__"], f"file:{place}")
    ]


def test_a_task_that_fails_after_its_calls_counts_once(spark, gateway, table, tmp_path):
    """With ifExists=fail: a call that was done a second time would be refused, and so would be the task."""
    spark.dataSource.register(failing_once(tmp_path / "failed"))
    frame = spark.range(25, numPartitions=1).selectExpr("'2024-01-01' AS ds", "int(id) AS hr")
    write(frame, gateway, table, format="hms_failing", ifExists="fail", batchSize="10")
    assert (tmp_path / "failed").exists()
    assert len(names_in(gateway, table)) == 25
    assert added_by_events(gateway, table) == 3


def failing_once(mark):
    """A data source whose first task fails when its calls are done."""

    class FailingWriter(PartitionWriter):
        def write(self, iterator):
            done = super().write(iterator)
            if not mark.exists():
                mark.touch()
                raise RuntimeError("this task fails after its calls")
            return done

    class FailingSource(HmsDataSource):
        @classmethod
        def name(cls):
            return "hms_failing"

        def writer(self, schema, overwrite):
            writer = super().writer(schema, overwrite)
            writer.__class__ = FailingWriter
            return writer

    return FailingSource


def test_a_run_that_is_started_again_with_its_name_counts_once(spark, gateway, table):
    frame = spark.range(5, numPartitions=1).selectExpr("'2024-01-01' AS ds", "int(id) AS hr")
    for _ in range(2):
        write(frame, gateway, table, ifExists="fail", run="nightly 2024-01-01")
    assert added_by_events(gateway, table) == 1
    with pytest.raises(PySparkException, match="AlreadyExists"):
        write(frame, gateway, table, ifExists="fail")


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("'x' AS ds", {}, "column hr is missing; give every key of table"),
        ("'x' AS ds, 1 AS hr, 2 AS size", {}, "column size is not one of a partition of stock.test_what"),
        ("'x' AS values", {}, "column values is string; cast it to array<string>"),
        ("array('x') AS values", {}, "needs 2 values, one for each key"),
        ("'x' AS ds, 1 AS hr", {"table": "sales.customers"}, "table sales.customers has no partition keys"),
        ("'x' AS ds, 1 AS hr", {"ifExists": "maybe"}, "option ifExists is 'maybe'; it is one of skip, fail"),
        ("'x' AS ds, 1 AS hr", {"object": "tables"}, "only partitions can be written, with mode append"),
        ("'x' AS ds, 1 AS hr", {"url": "thrift://127.0.0.1:1"}, "Thrift over TCP, which is for reading"),
    ],
)
def test_what_cannot_be_registered_is_named(spark, gateway, columns, options, text):
    name = "test_what_cannot_be_registered"
    with gateway.client() as client:
        if name not in client.call("get_all_tables", "stock"):
            make_table(client, "stock", name, ("ds", "string"), ("hr", "int"))
    with pytest.raises(PySparkException) as caught:
        write(spark.sql(f"SELECT {columns}"), gateway, **{"table": f"stock.{name}", **options})
    assert text in str(caught.value)
    assert names_in(gateway, f"stock.{name}") == []


def test_only_appending_is_possible(spark, gateway, table):
    frame = spark.sql("SELECT 'x' AS ds, 1 AS hr")
    given = {**gateway.options, "object": "partitions", "table": table}
    with pytest.raises(PySparkException, match="only partitions can be written, with mode append"):
        frame.write.format("hms").options(**given).mode("overwrite").save()
