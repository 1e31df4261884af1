"""A gateway of these tests' own: its tables lie in folders of theirs."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("pyarrow") and find_spec("pyspark") else ["test_*.py"]


@pytest.fixture
def options(gateway, tmp_path):
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.jobs.options import JobOptions

    return JobOptions(
        connection=Connection.of(gateway.options), state=str(tmp_path / "state %20 {a,b}"), patience_seconds=20
    )
