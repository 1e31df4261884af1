"""A gateway of these tests' own, since they make tables and change statistics."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.pipeline.content import Metastore, filled_gateway

collect_ignore_glob = [] if find_spec("pyarrow") and find_spec("pyspark") else ["test_*.py"]


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with filled_gateway(tmp_path_factory.mktemp("stats-gateway")) as metastore:
        yield metastore


@pytest.fixture
def options(gateway, tmp_path):
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.jobs.options import JobOptions

    state = str(tmp_path / "state %20 {a,b}")
    connection = Connection.of(gateway.options)
    return JobOptions(connection=connection, state=state, patience_seconds=20, roots=(str(tmp_path),))
