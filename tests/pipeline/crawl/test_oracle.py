"""Spark's own MSCK REPAIR TABLE, against the real metastore, finds the same partitions in the same tree.

What it found is recorded; `make test-all` asks it again. `python -m tests.pipeline.crawl.test_oracle` records anew.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.jobs.options import JobOptions
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.pipeline.crawl.trees import plant
from tests.spark.spark_session import SparkSessionProcess

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = ["2026-01-01", "a b", "a%2Fb", "a:b", "é", "x=y", "it's", "100%", "%25", "{c}", "__HIVE_DEFAULT_PARTITION__"]
# Every character that Hive or Hadoop may treat in its own way, as it is and escaped.
SPECIAL = [*map(chr, range(1, 32)), *" !\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~\x7f"]
ODD = [f"r{ord(one):03}{one}x" for one in SPECIAL] + [f"e{ord(one):03}%{ord(one):02X}x" for one in [*SPECIAL, "/"]]
RECORDED = Path(__file__).with_name("msck.json")


@pytest.fixture
def real(tmp_path):
    """Without a notification log, whose column in Derby is too short for this many partitions."""
    peer = RealMetastore(tmp_path / "real", notifies=False)
    try:
        peer.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    yield peer
    peer.stop()


def found_by_msck(real, table, folder):
    uri = f"thrift://127.0.0.1:{real.port}"
    with SparkSessionProcess(uri, folder / "warehouse", folder / "spark") as session:
        session.sql(
            "CREATE TABLE default.days (id BIGINT, note STRING) USING parquet PARTITIONED BY (ds STRING, hr INT)"
            f" LOCATION 'file:{table}'"
        )
        session.sql("MSCK REPAIR TABLE default.days")
    with Connection.of({"url": uri}).open() as client:
        return {(tuple(one.values), one.sd.location) for one in client.call("get_partitions", "default", "days", -1)}


def record(found, table):
    """Values and the place below the table, of each partition."""
    rows = sorted([list(values), place.removeprefix(f"file:{table}/")] for values, place in found)
    RECORDED.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def recorded(table):
    return {(tuple(values), f"file:{table}/{place}") for values, place in json.loads(RECORDED.read_text())}


def planted(folder):
    table = folder / "lake" / "days"
    plant(table, *(f"ds={day}/hr={hour}/f" for day in DAYS for hour in (1, 20, "__HIVE_DEFAULT_PARTITION__")))
    plant(table, *(f"ds={value}/hr=1/f" for value in ODD))
    plant(table, "ds=empty/hr=7/", "DS=upper/hr=8/f", "_temporary/hr=1/f", ".hidden/f", "ds=2026-01-01/_SUCCESS")
    return table


def test_the_same_partitions_are_found_as_by_msck(spark, gateway, tmp_path):
    table = planted(tmp_path)
    options = JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"))
    result = crawl(options, CrawlArguments(location=str(tmp_path / "lake")), spark=spark)
    with gateway.client() as client:
        ours = {(tuple(one.values), one.sd.location) for one in client.call("get_partitions", "default", "days", -1)}
        client.call("drop_table", "default", "days", False)
    assert result.refusals == []
    assert ours == recorded(table)
    assert len(ours) == 3 * len(DAYS) + len(ODD) + 2


@pytest.mark.java
@pytest.mark.whole
def test_msck_finds_what_is_recorded(real, tmp_path):
    table = planted(tmp_path)
    assert found_by_msck(real, table, tmp_path) == recorded(table)


def main():
    with TemporaryDirectory() as name, RealMetastore(Path(name, "real"), notifies=False) as real:
        table = planted(Path(name))
        record(found_by_msck(real, table, Path(name)), table)


if __name__ == "__main__":
    main()
