"""A gateway that commands are tried on, with a user who is not an administrator."""

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from hms_gateway.cli.application import application
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.gateway.auth.users import add_user
from tests.support.server import PASSWORD, USER, GatewayServer

OTHER_USER = "ann"

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("commands")
    for name in (USER, OTHER_USER):
        add_user(folder / "users", name, PASSWORD)
    with GatewayServer(folder) as server:
        yield server


@pytest.fixture
def run(gateway: GatewayServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command of hms-gateway against the gateway."""
    monkeypatch.setenv("HMS_GATEWAY_PASSWORD", PASSWORD)

    def invoke(*words: str, user: str = USER) -> Result:
        group, command, *rest = words
        where = ["-k", "--url", gateway.url, "--user", user]
        return CliRunner().invoke(application, [group, command, *where, *rest])

    return invoke


@pytest.fixture
def client(gateway: GatewayServer) -> Iterator[MetastoreClient]:
    with MetastoreClient(gateway.url, (USER, PASSWORD), verify=False) as client:
        yield client
