"""README's blocks for PySpark and PyIceberg, run as printed, on a port of ours."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
SECONDS_MAX = 120

pytestmark = pytest.mark.slow


def block(first_line: str) -> str:
    """The Python block of README that begins with this line."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return next(text for text in blocks if text.startswith(first_line))


def run(text: str, port: int, data_dir: Path, folder: Path) -> str:
    """What it prints in a folder whose `var` is the gateway's."""
    (folder / "var").symlink_to(data_dir)
    ran = subprocess.run(
        [sys.executable, "-c", text.replace(":9083", f":{port}")],
        cwd=folder,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.spark
def test_pyspark(gateway, bridge, tmp_path):
    printed = run(block("from pyspark.sql"), bridge.port, gateway.data_dir, tmp_path)
    assert re.search(r"\|\s*default\|", printed)


@pytest.mark.iceberg
def test_pyiceberg(gateway, bridge, tmp_path):
    pytest.importorskip("pyiceberg.catalog.hive", reason="no PyIceberg (requirements/spark.txt)")
    printed = run(block("from pyiceberg.catalog"), bridge.port, gateway.data_dir, tmp_path)
    assert "('default',)" in printed
