"""What Spark itself has written gives no finding, whatever the format, but for what Spark does not count."""

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.options import JobOptions
from tests.spark.spark_session import SparkSessionProcess
from tests.support.server import GatewayServer, free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

STATEMENTS = (
    "CREATE DATABASE shop",
    "SET spark.sql.sources.partitionOverwriteMode=dynamic",
    "SET hive.exec.dynamic.partition.mode=nonstrict",
    "CREATE TABLE shop.plain (id INT, price DECIMAL(10,2), at TIMESTAMP, tags ARRAY<STRING>) USING parquet",
    "INSERT INTO shop.plain VALUES (1, 2.50, TIMESTAMP '2024-01-01 10:00:00', array('a')), (2, null, null, null)",
    "CREATE TABLE shop.days USING orc PARTITIONED BY (ds, hr) AS SELECT CAST(id AS TINYINT) AS small, 'x' AS note,"
    " DATE '2024-01-01' + CAST(id AS INT) AS ds, id AS hr FROM range(4)",
    "INSERT OVERWRITE shop.days SELECT 7, 'y', DATE '2024-01-02', 1",
    "CREATE TABLE shop.hive_orc (id BIGINT, m MAP<STRING,INT>) PARTITIONED BY (shop STRING) STORED AS ORC",
    "INSERT INTO shop.hive_orc VALUES (1, map('a', 1), 'north'), (2, null, 'a/b=c %é'), (3, null, null)",
    "CREATE TABLE shop.hive_parquet STORED AS PARQUET AS SELECT id, struct(id AS a, 'b' AS b) AS s FROM range(10)",
    "CREATE TABLE shop.hive_text (id INT) STORED AS TEXTFILE",
    "INSERT INTO shop.hive_text VALUES (1)",
    "CREATE TABLE shop.json USING json AS SELECT id, array(id) AS ids FROM range(3)",
    "CREATE TABLE shop.csv USING csv PARTITIONED BY (k) AS SELECT id, id AS k FROM range(3)",
    "CREATE VIEW shop.seen AS SELECT id FROM shop.plain",
    "ALTER TABLE shop.plain ADD COLUMNS (later STRING)",
    "INSERT INTO shop.plain VALUES (3, 1, null, null, 'now')",
)


def test_what_spark_writes_gives_no_finding(spark, tmp_path):
    port = free_port()
    with (
        GatewayServer(tmp_path / "var", settings={"thrift_port": port}) as gateway,
        SparkSessionProcess(f"thrift://127.0.0.1:{port}", gateway.data_dir / "warehouse", tmp_path / "s") as writer,
    ):
        for statement in STATEMENTS:
            writer.sql(statement)
        certificate = str(gateway.data_dir / "certificate.pem")
        options = {"url": gateway.url, "user": gateway.user, "password": gateway.password, "cafile": certificate}
        job = JobOptions(connection=Connection.of(options), state=str(tmp_path / "state"), patience_seconds=20)
        result = audit(job, AuditArguments(), spark=spark)
    found = {(one["kind"], one["table"], one["partition"]) for one in result.examples}
    # Spark does not count again when it overwrites a partition of a table in its own format: the finding is true.
    assert found <= {("stale_counts", "days", "ds=2024-01-02/hr=1")}
    assert result.exit_status == 0
    assert result.counts["files"] > 15
