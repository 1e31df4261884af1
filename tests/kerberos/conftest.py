"""A gateway that knows a service of a private KDC."""

import os
from collections.abc import Iterator

import pytest

from tests.kerberos.sasl_doors import Doors, running_doors
from tests.support.private_kdc import KdcUnavailable, PrivateKdc
from tests.support.server import GatewayServer

SERVICE = "HTTP/localhost"


@pytest.fixture(scope="session")
def kdc() -> Iterator[PrivateKdc]:
    """With the users alice, knox/proxy and, of another realm, bob. Skips where none can be run."""
    try:
        kdc = PrivateKdc()
    except KdcUnavailable as reason:
        pytest.skip(f"no Kerberos: {reason}")
    try:
        kdc.start()
        for principal in (SERVICE, "alice", "knox/proxy", "bob@OTHER.TEST"):
            kdc.add(principal)
        yield kdc
    finally:
        kdc.delete()


@pytest.fixture(scope="session")
def gateway(kdc: PrivateKdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    folder = tmp_path_factory.mktemp("kerberos")
    kdc.write_keytab(SERVICE, folder / "http.keytab")
    settings = {"kerberos.keytab": str(folder / "http.keytab"), "proxy_users.knox.users": ["alice"]}
    with GatewayServer(folder, settings=settings, environment=kdc.environment) as server:
        yield server


@pytest.fixture(scope="session")
def doors(kdc: PrivateKdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with running_doors(kdc, tmp_path_factory.mktemp("sasl")) as doors:
        yield doors


@pytest.fixture
def log_in(kdc: PrivateKdc, monkeypatch: pytest.MonkeyPatch) -> "LogIn":
    """Gives this process, and those it starts, the tickets of a principal."""
    return LogIn(kdc, monkeypatch)


class LogIn:
    def __init__(self, kdc: PrivateKdc, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kdc = kdc
        self._monkeypatch = monkeypatch

    def __call__(self, principal: str | None) -> dict[str, str]:
        """The whole environment, for a child process. None has no tickets, but knows the realms."""
        variables = self._kdc.environment if principal is None else self._kdc.log_in(principal)
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        return dict(os.environ)
