"""`hms-gateway bridge` as a child process, and Apache thrift's Python client over TCP."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_gateway.rpc.structs import METHODS, Method
from tests.support.apache import ApacheBinary
from tests.support.ending import Process, end
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port, started
from tests.support.warm_program import COMMAND

POLL_SECONDS = 0.02


class BridgeProcess:
    """A running bridge to `gateway`, on a port of loopback, by itself a free one. A context manager."""

    def __init__(
        self,
        gateway: GatewayServer,
        *options: str,
        password: str | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port, self.side_port = port or free_port(), free_port()
        self.log = gateway.data_dir / f"bridge-{self.port}.log"
        self._command = [
            COMMAND,
            *("bridge", "--url", gateway.url, "--user", gateway.user),
            *("--port", str(self.port), "--health-port", str(self.side_port)),
            *(options or ("--cacert", str(gateway.data_dir / "certificate.pem"))),
        ]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HMS_GATEWAY_")}
        password = gateway.password if password is None else password
        self._environment = {**inherited, "HMS_GATEWAY_PASSWORD": password, **(environment or {})}
        self._process: Process | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start and return when it takes connections."""
        with self.log.open("ab") as output:
            self._process = started(self._command, self._environment, output)
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return self
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_SECONDS)
                break
        self.stop()
        raise AssertionError(f"the bridge did not start\n{self.log_text()}")

    def stop(self) -> int | None:
        """Ask it to stop; its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        return end(process, PATIENCE_SECONDS)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")


class ApacheClient:
    """Calls by IDL name; declared exceptions and TApplicationException are raised."""

    def __init__(self, transport: Any, protocol_class: Any = ApacheBinary) -> None:
        self._transport = transport
        self._protocol = protocol_class(transport)
        self._seqid = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.call(name, *arguments)

    def call(self, name: str, *arguments: Any, method: Method | None = None) -> Any:
        """`method` is for names that the IDL does not know."""
        method = method or METHODS[name]
        self._seqid += 1
        self._send(name, method.arguments(*arguments), method.oneway)
        if method.oneway:
            return None
        answered, kind, seqid = self._protocol.readMessageBegin()
        assert (answered, seqid) == (name, self._seqid)
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(self._protocol)
            self._protocol.readMessageEnd()
            raise error
        result = method.result()
        self._protocol.readStruct(result, method.result.thrift_spec)
        self._protocol.readMessageEnd()
        for field in method.definition.throws:
            declared = getattr(result, field.name)
            if declared is not None:
                raise declared
        return getattr(result, "success", None)

    def _send(self, name: str, arguments: Any, is_oneway: bool) -> None:
        kind = TMessageType.ONEWAY if is_oneway else TMessageType.CALL
        self._protocol.writeMessageBegin(name, kind, self._seqid)
        self._protocol.writeStruct(arguments, type(arguments).thrift_spec)
        self._protocol.writeMessageEnd()
        self._transport.flush()


class Listening(Protocol):
    """What answers Thrift over TCP on loopback."""

    @property
    def port(self) -> int: ...


@contextlib.contextmanager
def connected(
    server: Listening, transport_class: Any = TBufferedTransport, protocol_class: Any = ApacheBinary
) -> Iterator[ApacheClient]:
    """A client on a connection of its own."""
    sock = TSocket("127.0.0.1", server.port)
    sock.setTimeout(30_000)
    transport = transport_class(sock)
    transport.open()
    try:
        yield ApacheClient(transport, protocol_class)
    finally:
        transport.close()


class OldBinary(ApacheBinary):
    """With headers of the first Thrift versions."""

    def __init__(self, transport: Any) -> None:
        TBinaryProtocol.__init__(self, transport, strictRead=False, strictWrite=False)
