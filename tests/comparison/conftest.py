"""Ours beside the real metastore, each started once for all comparisons."""

from collections.abc import Iterator

import pytest

from hms_gateway.storage.migrations.revisions import migrate
from tests.comparison.servers import Metastore
from tests.oracle.peer import RealMetastore
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import GatewayServer


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with Metastore.gateway(tmp_path_factory.mktemp("gateway")) as server:
        yield server


@pytest.fixture(scope="session")
def gateway_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PrivatePostgres
) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("gateway_on_postgres")
    migrate(postgres_server.url())
    with Metastore.gateway(folder, postgres_server.url()) as server:
        yield server


@pytest.fixture
def theirs(real_metastore: RealMetastore) -> Iterator[Metastore]:
    yield from _clean(Metastore.real(real_metastore))


@pytest.fixture
def ours(gateway: GatewayServer) -> Iterator[Metastore]:
    yield from _clean(Metastore.ours(gateway))


def _clean(metastore: Metastore) -> Iterator[Metastore]:
    metastore.clean()
    yield metastore
    metastore.close()
