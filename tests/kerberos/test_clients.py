"""PyIceberg and Spark as they are on a Kerberos cluster: with a ticket, against the Thrift port and the bridge."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kerberos.conftest import LogIn
from tests.kerberos.sasl_doors import Doors
from tests.spark.spark_session import why_not
from tests.support.private_kdc import PrivateKdc

pytestmark = [pytest.mark.kerberos, pytest.mark.slow]

SECONDS_MAX = 120
CLUSTER = """<configuration>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
</configuration>
"""
PROGRAM = """
import sys
from pyspark.sql import SparkSession

uri, folder = sys.argv[1:]
options = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.warehouse.dir": folder,
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": uri,
    "spark.hadoop.hive.metastore.sasl.enabled": "true",
    "spark.hadoop.hive.metastore.kerberos.principal": "hive/localhost@LAKE.TEST",
}
builder = SparkSession.builder.master("local[1]")
for name, value in options.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print([row.namespace for row in spark.sql("SHOW DATABASES LIKE 'default'").collect()])
"""


@pytest.mark.iceberg
@pytest.mark.parametrize("door", ["port", "bridge"])
def test_pyiceberg_logs_in_with_its_ticket(doors: Doors, log_in: LogIn, door: str) -> None:
    pytest.importorskip("kerberos", reason="no package kerberos (requirements/kerberos.txt)")
    hive = pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg")
    log_in("alice")
    properties = {"uri": f"thrift://localhost:{doors.ports[door]}", "hive.kerberos-authentication": "true"}
    catalog = hive.HiveCatalog("test", **properties)
    name = f"iceberg_{door}"
    catalog.create_namespace(name, {"comment": "made over SASL"})
    try:
        assert (name,) in catalog.list_namespaces()
        assert catalog.load_namespace_properties(name)["comment"] == "made over SASL"
    finally:
        catalog.drop_namespace(name)


@pytest.mark.spark
@pytest.mark.whole
def test_spark_logs_in_with_its_ticket(doors: Doors, kdc: PrivateKdc, log_in: LogIn, tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    environment = log_in("alice")
    (tmp_path / "core-site.xml").write_text(CLUSTER)
    variables = {
        **environment,
        "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={environment['KRB5_CONFIG']}",
        # What spark-submit is given: it logs in before there is a session.
        "PYSPARK_SUBMIT_ARGS": f"--principal alice@LAKE.TEST --keytab {kdc.folder / 'alice.keytab'} pyspark-shell",
        "HADOOP_CONF_DIR": str(tmp_path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    words = (f"thrift://localhost:{doors.ports['bridge']}", tmp_path)
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        cwd=tmp_path,
        env={name: value for name, value in variables.items() if not name.startswith("HMS_GATEWAY_")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert finished.returncode == 0, finished.stderr[-3_000:]
    assert finished.stdout == "['default']\n"
    assert re.search(r"get_\w*databases\W.*alice", doors.bridge.log_text())
