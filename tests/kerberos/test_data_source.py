"""The data source of Spark with Kerberos tickets, on driver and executors, in a program of its own."""

import subprocess
import sys

import pytest

from tests.kerberos.test_tickets import url
from tests.spark.spark_session import why_not
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.kerberos, pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

PROGRAM = """
import sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.python.filterPushdown.enabled", "true").config("spark.log.level", "OFF")
spark = builder.config("spark.sql.warehouse.dir", sys.argv[2]).getOrCreate()
try:
    frame = spark.read.format("hms").options(url=sys.argv[1], verify="false", auth="kerberos", object="databases")
    print([row.database for row in frame.load().collect()])
except PySparkException as error:
    print("refused:", error)
"""


@pytest.fixture
def read_databases(gateway, tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

    def run(environment):
        variables = {**environment, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM, url(gateway), str(tmp_path)],
            cwd=tmp_path,
            env={name: value for name, value in variables.items() if not name.startswith("HMS_GATEWAY_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert finished.returncode == 0, finished.stderr[-3_000:]
        return finished.stdout

    return run


def test_a_ticket_lets_in(read_databases, log_in):
    assert read_databases(log_in("alice")) == "['default']\n"


def test_without_a_ticket_the_error_says_so(read_databases, log_in):
    said = read_databases(log_in(None))
    assert said.startswith("refused:")
    assert "no Kerberos ticket" in said
