"""A gateway of these tests' own: they name everything that it has, and others fill the shared one."""

from collections.abc import Iterator

import pytest

from tests.pipeline.content import Metastore, filled_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with filled_gateway(tmp_path_factory.mktemp("source-gateway")) as metastore:
        yield metastore
