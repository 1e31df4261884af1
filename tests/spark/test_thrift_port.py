"""A Spark session on the gateway's own Thrift port, with no bridge between."""

from collections.abc import Iterator

import pytest

from tests.spark.spark_session import SparkSessionProcess, why_not
from tests.support.server import GatewayServer, free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSessionProcess]:
    if reason := why_not():
        pytest.skip(reason)
    port, folder = free_port(), tmp_path_factory.mktemp("thrift-port")
    with (
        GatewayServer(folder / "gateway", settings={"thrift_port": port, "locks_implicit": "deny"}) as gateway,
        SparkSessionProcess(f"thrift://127.0.0.1:{port}", gateway.data_dir / "warehouse", folder / "spark") as session,
    ):
        yield session


def test_tables_partitions_and_queries(spark):
    spark.sql("CREATE DATABASE direct")
    spark.sql("CREATE TABLE direct.t (id INT) PARTITIONED BY (k INT) STORED AS TEXTFILE")
    for number in range(3):
        spark.sql(f"INSERT INTO direct.t PARTITION (k = {number}) VALUES ({number})")
    assert spark.sql("SELECT sum(id) FROM direct.t WHERE k > 0") == [[3]]
    assert spark.sql("SHOW PARTITIONS direct.t") == [["k=0"], ["k=1"], ["k=2"]]
    spark.sql("ALTER TABLE direct.t RENAME TO direct.u")
    assert spark.sql("SELECT count(*) FROM direct.u") == [[3]]
    spark.sql("DROP DATABASE direct CASCADE")
    assert spark.sql("SHOW DATABASES LIKE 'direct'") == []
