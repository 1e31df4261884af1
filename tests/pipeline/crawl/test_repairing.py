"""MSCK REPAIR TABLE of the shell finds the partitions that lie in the table's directory."""

from contextlib import nullcontext

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.parquet

from hms_gateway.cli.application import application
from hms_gateway.pipeline.jobs import run
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_partitions_are_registered_and_dropped(spark, tmp_path, monkeypatch):
    # The shell would start a session of its own, and stop it.
    monkeypatch.setattr(run, "session", lambda *_, **__: nullcontext(spark))
    monkeypatch.chdir(tmp_path)
    with GatewayServer(tmp_path / "gateway") as gateway:
        folder = gateway.data_dir / "warehouse" / "repaired"
        environment = {"HMS_GATEWAY_URL": gateway.url, "HMS_GATEWAY_PASSWORD": gateway.password}

        def sql(text):
            result = CliRunner().invoke(application, ["sql", "-k", "--format", "tsv", "-e", text], env=environment)
            assert result.exit_code == 0, result.stderr
            return result.stdout

        sql("create table repaired (id int) partitioned by (ds string) stored as parquet")
        for day in ("1", "2"):
            (folder / f"ds={day}").mkdir(parents=True)
            pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), folder / f"ds={day}" / "a.parquet")
        assert sql("msck repair table repaired").split()[-2:] == ["2", "0"]
        assert sql("show partitions repaired").split() == ["partition", "ds=1", "ds=2"]
