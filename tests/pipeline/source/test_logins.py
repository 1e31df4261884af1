"""With a token over HTTPS, and without encryption over framed Thrift."""

import time
from pathlib import Path

import pytest

from hms_gateway.gateway.auth.tokens import create_token, revoke_tokens
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.pipeline.content import Metastore, fill
from tests.support.patience import until
from tests.support.server import GatewayServer, free_port

PySparkException = pytest.importorskip("pyspark.errors", reason="no PySpark (requirements/spark.txt)").PySparkException
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def by_token(gateway):
    """The gateway as it is called with a token of the user etl."""
    file = gateway.server.data_dir / "tokens"
    secret, token = create_token(file, "etl", now=int(time.time()), seconds=600)
    options = {name: gateway.options[name] for name in ("url", "cafile")}
    yield Metastore({**options, "token": secret}, gateway.server)
    revoke_tokens(file, ids=[token.id])


def test_a_token_reads(spark, by_token):
    frame = by_token.read(spark, "tables").where("database = 'sales'")
    plan = frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended")
    assert by_token.options["token"] not in plan
    assert {row.table for row in frame.collect()} == {"customers", "days", "orders"}


def test_calls_with_a_token_are_those_of_its_user(spark, by_token):
    since = len(by_token.server.log_text())
    by_token.read(spark, "databases").collect()
    until(lambda: '"user":"etl"' in by_token.server.log_text()[since:], "the access log does not name the token's user")


def test_a_token_that_is_wrong_is_named(spark, gateway, by_token):
    wrong = Metastore({**by_token.options, "token": "hmsgw_wrong"})
    with pytest.raises(PySparkException) as caught:
        wrong.read(spark, "databases").collect()
    assert "401" in str(caught.value)
    assert "The token is wrong or was revoked" in str(caught.value)
    assert "hmsgw_wrong" not in str(caught.value)


@pytest.mark.whole
def test_framed_thrift_of_the_real_metastore(spark, tmp_path):
    peer = RealMetastore(Path(tmp_path / "framed"), settings={"hive.metastore.thrift.framed.transport.enabled": "true"})
    try:
        peer.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        framed = Metastore({"url": f"thrift://127.0.0.1:{peer.port}", "framed": "true"})
        fill(framed)
        check_framed(spark, framed)
    finally:
        peer.stop()


def test_framed_thrift_of_a_gateway(spark, tmp_path):
    port = free_port()
    with GatewayServer(tmp_path / "var", settings={"thrift_port": port, "administrators": ["etl"]}):
        framed = Metastore({"url": f"thrift://127.0.0.1:{port}", "framed": "true", "user": "etl"})
        fill(framed)
        check_framed(spark, framed)


def check_framed(spark, metastore):
    frame = metastore.read(spark, "partitions", table="sales.orders", partitionsPerTask="5")
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.location.rpartition("/orders/")[2] for row in frame.where("key.hr = 10").collect()) == [
        f"ds=2024-01-0{day}/hr=10" for day in (1, 2, 3)
    ]
