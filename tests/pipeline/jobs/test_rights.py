"""Which grants a user of the jobs needs, as docs/pipeline.md says."""

import dataclasses

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.gateway.auth.users import add_user
from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.errors import JobFailed
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.snapshot.job import SnapshotArguments, snapshot
from hms_gateway.pipeline.stats.job import StatsArguments, stats
from hms_gateway.rpc.structs import Database, PrincipalType
from tests.handlers.rights.privileges import bag
from tests.pipeline.crawl.trees import plant
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PASSWORD = "a password of each"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with GatewayServer(tmp_path_factory.mktemp("rights") / "var", settings={"authorization": "grants"}) as running:
        for name in ("loader", "counter", "reader"):
            add_user(running.data_dir / "users", name, PASSWORD)
        yield running


def test_jobs_of_users_with_grants(spark, server, tmp_path):
    tree = server.data_dir / "warehouse" / "lake.db"
    plant(tree, "orders/ds=1/a.parquet", "orders/ds=2/b.parquet")
    grant(server, "loader", "create", "insert")
    grant(server, "counter", "select", "insert")
    grant(server, "reader", "select")
    loader, counter, reader = (options(server, tmp_path, user) for user in ("loader", "counter", "reader"))

    crawled = crawl(loader, CrawlArguments(location=f"file:{tree}"), spark=spark)
    assert (crawled.counts["tables"], crawled.counts["partitions"], crawled.refused) == (1, 2, 0)
    with pytest.raises(JobFailed, match=r"lacks ALTER on table lake\.orders"):
        stats(counter, StatsArguments(), spark=spark)
    grant(server, "counter", "alter")
    assert stats(counter, StatsArguments(), spark=spark).status == "done"

    audited = audit(reader, AuditArguments(), spark=spark)
    assert (audited.status, audited.counts["tables"]) == ("done", 1)
    assert snapshot(reader, SnapshotArguments(path=str(tmp_path / "taken")), spark=spark).counts["partitions"] == 2


def grant(server, user, *actions):
    """On the database `lake`, which is made where it is missing."""
    with connection(server, server.user, server.password).open() as client:
        if "lake" not in client.call("get_all_databases"):
            client.call("create_database", Database(name="lake"))
        for action in actions:
            client.call("grant_privileges", bag(action, "lake", user, PrincipalType.USER))


def connection(server, user, password):
    return Connection.of({"url": server.url, "user": user, "password": password, "verify": "false"})


def options(server, tmp_path, user):
    its = connection(server, user, PASSWORD)
    only = JobOptions(connection=its, state=str(tmp_path / f"state-{user}"), patience_seconds=20)
    return dataclasses.replace(only, only=("lake.*",))
