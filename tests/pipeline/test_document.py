"""The blocks of docs/pipeline.md, run as printed in one program, on a port of ours."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.readme import PORT, ROOT, prepare

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCUMENT = ROOT / "docs" / "pipeline.md"
SECONDS_MAX = 240


def program():
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return "\n".join(blocks)


def test_the_document_runs_as_printed_and_its_logs_hold_no_password(spark, gateway):
    folder = prepare(gateway.server.data_dir.parent, gateway.server)
    # `spark` is only there so that what can be skipped is; this is a program of its own, found without registration.
    variables = {
        "HMS_GATEWAY_PASSWORD": gateway.server.password,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--conf spark.log.level=INFO --conf spark.ui.enabled=false"
        " --conf spark.driver.memory=768m --conf spark.sql.shuffle.partitions=1 pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program().replace(f"localhost:{PORT}", f"127.0.0.1:{gateway.server.port}")],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert "PushedFilters: [" in ran.stdout
    assert "GreaterThan(key.hr,1)" in ran.stdout
    assert re.search(r"^\|ds=2024-01-03/hr=10 *\|file:", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *2024-01-01\| *3\|$", ran.stdout, re.MULTILINE)
    assert re.search(r"^\| *CREATE_TABLE\| *3\|$", ran.stdout, re.MULTILINE)
    assert "INFO" in ran.stderr
    assert gateway.server.password not in ran.stdout + ran.stderr
    with gateway.client() as client:
        assert "ds=2024-02-01/hr=2" in client.call("get_partition_names", "sales", "orders", -1)
        client.call("drop_partition_by_name", "sales", "orders", "ds=2024-02-01/hr=1", True)
        client.call("drop_partition_by_name", "sales", "orders", "ds=2024-02-01/hr=2", True)
