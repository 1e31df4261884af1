"""The Thrift port of a gateway and a bridge to it, with a service of the KDC; and a client of SASL GSSAPI."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hms_gateway.bridge.thrift.sasl import SaslStatus
from tests.bridge.bridge_process import ApacheClient, BridgeProcess
from tests.support.private_kdc import PrivateKdc
from tests.support.sasl_client import SaslTransport, logged_in
from tests.support.server import GatewayServer, free_port

HIVE_SERVICE = "hive/localhost"


class Doors:
    def __init__(self, gateway: GatewayServer, thrift_port: int, bridge: BridgeProcess, keytab: Path) -> None:
        self.gateway, self.bridge, self.keytab = gateway, bridge, keytab
        self.ports = {"port": thrift_port, "bridge": bridge.port}


@contextlib.contextmanager
def running_doors(kdc: PrivateKdc, folder: Path) -> Iterator[Doors]:
    kdc.add(HIVE_SERVICE)
    keytab = folder / "hive.keytab"
    kdc.write_keytab(HIVE_SERVICE, keytab)
    thrift_port = free_port()
    settings: dict[str, object] = {
        "kerberos.keytab": str(keytab),
        "thrift_port": thrift_port,
        "thrift_sasl": "require",
        "delegation_tokens": True,
        "proxy_users.admin.users": ["alice", "knox"],
    }
    with GatewayServer(folder, settings=settings, environment=kdc.environment) as gateway:
        options = ("--cacert", str(folder / "certificate.pem"), "--sasl", "require", "--keytab", str(keytab))
        with BridgeProcess(gateway, *options, environment=kdc.environment) as bridge:
            yield Doors(gateway, thrift_port, bridge, keytab)


class GssTransport(SaslTransport):
    """Tokens, then the choice of a layer."""

    def __init__(
        self,
        port: int,
        layer: int = 1,
        acts_for: str = "",
        tamper: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        import gssapi

        name = gssapi.Name("hive@localhost", gssapi.NameType.hostbased_service)
        self._context = gssapi.SecurityContext(name=name, usage="initiate")
        self._layer = layer
        self._acts_for = acts_for
        self._tamper = tamper
        super().__init__(port, context)

    def log_in(self) -> None:
        self.send(SaslStatus.START, b"GSSAPI")
        token = self._context.step()
        while not self._context.complete:
            self.send(SaslStatus.OK, token)
            token = self._context.step(self.receive(SaslStatus.OK)) or b""
        self.send(SaslStatus.OK, token)
        self.offered = self._context.unwrap(self.receive(SaslStatus.OK)).message[0]
        choice = bytes([self._layer]) + (64 * 1024).to_bytes(3, "big") + self._acts_for.encode()
        self.send(SaslStatus.COMPLETE, self._context.wrap(choice, False).message)
        self.receive(SaslStatus.COMPLETE)

    def wrap(self, content: bytes) -> bytes:
        if self._layer > 1:
            content = self._context.wrap(content, self._layer == 4).message
        return content[:-1] + bytes([content[-1] ^ 1]) if self._tamper else content

    def unwrap(self, piece: bytes) -> bytes:
        content: bytes = self._context.unwrap(piece).message if self._layer > 1 else piece
        return content


def client(port: int, **options: Any) -> contextlib.AbstractContextManager[ApacheClient]:
    """A client that is logged in with this process's ticket."""
    return logged_in(GssTransport(port, **options))
