"""Spark and the gateway on one bucket: Hadoop's S3A writes and reads what the gateway makes, moves and deletes.

Hadoop's library is of the jars that come with Iceberg's. It is older than Spark's Hadoop, whose defaults have units
that it does not read.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.third_peer import LIBRARIES
from tests.spark.spark_session import SparkSessionProcess, why_not
from tests.support.bucket_server import BUCKET, KEY, SECRET
from tests.support.patience import until
from tests.support.private_bucket import PrivateBucket
from tests.support.server import GatewayServer, free_port

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.slow, pytest.mark.whole]
JARS = ("hadoop-aws-", "aws-java-sdk-", "joda-time", "hadoop-shaded-guava")
SETTINGS = {
    "threads.keepalivetime": "60",
    "connection.timeout": "20000",
    "connection.establish.timeout": "5000",
    "connection.request.timeout": "0",
    "connection.ttl": "300000",
    "multipart.purge.age": "86400",
    "path.style.access": "true",
    "access.key": KEY,
    "secret.key": SECRET,
    "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
}


@pytest.fixture
def spark_on_bucket(
    bucket: PrivateBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSessionProcess]:
    if reason := why_not():
        pytest.skip(reason)
    jars = [str(path) for path in LIBRARIES.glob("*.jar") if path.name.startswith(JARS)]
    if not jars:
        pytest.skip("no jars of Hadoop's S3A (requirements/iceberg-java.txt)")
    settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in SETTINGS.items()} | {
        "spark.hadoop.fs.s3a.endpoint": bucket.endpoint,
        "spark.driver.extraClassPath": ":".join(jars),
    }
    (tmp_path / "spark-defaults.conf").write_text("\n".join(f"{name} {value}" for name, value in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    thrift_port = free_port()
    of_gateway = {
        "warehouse_dir": f"s3a://{BUCKET}/spark",
        "file_systems.s3a": "manage",
        "storage_file": str(bucket.write_options(tmp_path / "storage.toml")),
        "thrift_port": thrift_port,
    }
    with (
        GatewayServer(tmp_path / "var", settings=of_gateway),
        SparkSessionProcess(f"thrift://127.0.0.1:{thrift_port}", tmp_path, tmp_path / "spark") as session,
    ):
        yield session


def test_tables_are_made_filled_renamed_and_dropped(
    spark_on_bucket: SparkSessionProcess, bucket: PrivateBucket
) -> None:
    spark = spark_on_bucket
    spark.sql(f"CREATE DATABASE lake LOCATION 's3a://{BUCKET}/spark/lake.db'")
    spark.sql("CREATE TABLE lake.empty (id INT) STORED AS TEXTFILE")
    assert spark.sql("SELECT count(*) FROM lake.empty") == [[0]]
    spark.sql("CREATE TABLE lake.t (id INT) PARTITIONED BY (k INT) STORED AS PARQUET")
    for number in range(3):
        spark.sql(f"INSERT INTO lake.t PARTITION (k = {number}) VALUES ({number})")
    spark.sql("ALTER TABLE lake.t RENAME TO lake.u")
    assert spark.sql("SELECT sum(id) FROM lake.u WHERE k > 0") == [[3]]
    assert {key.split("/")[0] for key in bucket.keys("spark/lake.db/")} == {"empty", "u"}
    spark.sql("ALTER TABLE lake.u PARTITION (k = 2) RENAME TO PARTITION (k = 5)")
    assert spark.sql("SELECT id FROM lake.u WHERE k = 5") == [[2]]
    spark.sql("ALTER TABLE lake.u DROP PARTITION (k = 5)")
    assert spark.sql("SELECT sum(id) FROM lake.u") == [[1]]
    spark.sql(f"CREATE TABLE lake.kept (id INT) USING parquet LOCATION 's3a://{BUCKET}/spark/kept'")
    spark.sql("INSERT INTO lake.kept VALUES (7)")
    assert spark.sql("SELECT id FROM lake.kept") == [[7]]
    spark.sql("DROP DATABASE lake CASCADE")
    until(lambda: bucket.keys("spark/lake.db/") == [])
    assert any(name.endswith(".parquet") for name in bucket.keys("spark/kept/"))
