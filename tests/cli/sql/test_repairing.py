"""MSCK REPAIR TABLE finds the partitions that lie in the table's directory."""

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from tests.spark.spark_session import why_not

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_partitions_are_registered_and_dropped(gateway):
    if reason := why_not():
        pytest.skip(reason)
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
    try:
        assert sql("msck repair table repaired").split()[-2:] == ["2", "0"]
        assert sql("show partitions repaired").split() == ["partition", "ds=1", "ds=2"]
    finally:
        sql("drop table repaired")
