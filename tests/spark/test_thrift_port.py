"""A Spark session on the gateway's own Thrift port, with no bridge between."""

import pytest

# `make test` has a block of the documents there.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]


def test_tables_partitions_and_queries(second_session):
    spark = second_session
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
