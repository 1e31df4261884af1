"""A session that cannot be opened."""

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.records import records
from hms_gateway.pipeline.jobs.state import State
from tests.pipeline.jobs.toy import ToyArguments, toy


@pytest.mark.parametrize(
    ("home", "said"), [("", "Java is not on the PATH"), ("/nowhere", "JAVA_HOME /nowhere has no bin/java")]
)
def test_a_missing_java_is_named_and_the_run_has_failed(gateway, tmp_path, monkeypatch, home, said):
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", str(tmp_path))
    options = JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"))
    with pytest.raises(UsageRefused, match=f"Spark does not start: {said}") as caught:
        toy(options, ToyArguments(database="sales", values={}))
    assert "install Java 17" in caught.value.hint
    [record] = records(State.of(options.state, {}))
    assert (record["status"], record["error"], record["ended"] is None) == ("failed", str(caught.value), False)
