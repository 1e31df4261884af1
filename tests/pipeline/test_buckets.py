"""Jobs over a bucket: they list directories and read footers by fsspec, with the options of `--storage`."""

import uuid

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.storage.files.places import read_storage_options
from tests.pipeline.crawl.trees import parquet
from tests.support.bucket_server import BUCKET
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.slow, pytest.mark.whole]


def test_a_crawl_finds_what_is_in_a_bucket_and_statistics_and_an_audit_follow(spark, bucket, tmp_path):
    top = uuid.uuid4().hex
    for day in (1, 2):
        bucket.put(f"{top}/sales.db/visits/day={day}/part-0.parquet", parquet(id=day))
    bucket.put(f"{top}/sales.db/visits/day=3/")
    file = bucket.write_options(tmp_path / "storage.toml")
    settings = {"file_systems.s3a": "manage", "file_roots": [f"s3a://{BUCKET}/{top}"], "storage_file": str(file)}
    with GatewayServer(tmp_path / "var", settings=settings) as server:
        given = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
        options = JobOptions(
            connection=Connection.of(given),
            state=f"s3a://{BUCKET}/{top}-state",
            storage=read_storage_options(file),
            patience_seconds=20,
        )
        found = crawl(
            options, CrawlArguments(location=f"s3a://{BUCKET}/{top}", databases_from_folders=True), spark=spark
        )
        assert found.refusals == []
        with options.connection.open() as client:
            table = client.call("get_table", "sales", "visits")
            names = client.call("get_partition_names", "sales", "visits", -1)
            assert table.sd.location == f"s3a://{BUCKET}/{top}/sales.db/visits"
            assert names[:2] == ["day=1", "day=2"]
            counted = stats(options, StatsArguments(), spark=spark)
            assert counted.status == "done", counted
            day = client.call("get_partition_by_name", "sales", "visits", "day=2")
            assert day.parameters["numRows"] == "1"
            bucket.s3.rm_file(f"{BUCKET}/{top}/sales.db/visits/day=2/part-0.parquet")
            bucket.put(f"{top}/sales.db/visits/day=9/part-0.parquet", parquet(id=9))
            audited = audit(options, AuditArguments(quiet_seconds=0), spark=spark)
            stored = Stored.find(State.of(options.state, options.storage), f"{audited.run}/plan/findings")
            found = {(row["kind"], row["location"].rpartition("/")[2]) for row in stored}
            assert found == {("missing", "day=2"), ("empty", "day=3"), ("orphan", "day=9")}
